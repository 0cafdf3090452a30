//! `hikyaku guc` with a real GridFTP server, if its package is there: what is promised beside the copying itself.

mod changes;
mod common_options;
mod pairs;
mod plain;
mod stopped;
mod trees;

use crate::common::{gridftp_folder, scratch};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::servers::authority::Keys;
use xtask::servers::gridftp::{self, GridFtp};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder for a client, and servers. All end with it.
struct Stage {
    folder: PathBuf,
    servers: Vec<PathBuf>,
}

impl Stage {
    /// `None` without the server's package.
    fn new(name: &str) -> Option<Self> {
        let folder = gridftp_folder(name)?;
        fs::create_dir(folder.join("here")).unwrap();
        Some(Self { folder, servers: Vec::new() })
    }

    fn server(&mut self, name: &str, ip: IpAddr) -> GridFtp {
        let folder = self.folder.join(name);
        let server = gridftp::up(&folder, ip).unwrap();
        self.servers.push(folder);
        server
    }

    fn striped(&mut self, name: &str) -> GridFtp {
        let folder = self.folder.join(name);
        let server = gridftp::up_striped(&folder, 2).unwrap();
        self.servers.push(folder);
        server
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.arg("guc").args(words).current_dir(self.folder.join("here"));
        command.env("XDG_STATE_HOME", self.folder.join("state"));
        command
    }

    fn guc(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs it and expects success.
    fn does(&self, words: &[&str]) -> Output {
        let output = self.guc(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        output
    }

    /// Runs it, expects this exit code, and returns what it said.
    fn fails(&self, words: &[&str], code: i32) -> String {
        let output = self.guc(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
        said(&output)
    }

    fn here(&self, path: &str) -> PathBuf {
        self.folder.join("here").join(path)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for server in &self.servers {
            let _ = gridftp::down(server);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn names_that_the_server_would_take_for_others_are_refused() {
    let Some(mut stage) = Stage::new("guc-names") else { return };
    let (server, other) = (stage.server("one", LOOPBACK), stage.server("two", LOOPBACK));
    let (here, there) = (stage.here("t"), server.data.join("t"));
    for folder in [&here, &there] {
        fs::create_dir_all(folder).unwrap();
        for name in [".txt", "a.txt", "\u{65e5}\u{672c}.txt", "\u{4e2d}\u{56fd}.txt"] {
            fs::write(folder.join(name), name).unwrap();
        }
    }
    let (from, to) = (format!("{}/t/", server.url), format!("{}/up/", server.url));
    let between = format!("{}/t/", other.url);
    let copies: [(&str, &str, PathBuf); 3] = [
        ("t/", &to, server.data.join("up")),
        (&from, "got/", stage.here("got")),
        (&from, &between, other.data.join("t")),
    ];
    for (source, target, folder) in copies {
        for options in [&["-r", "-cd", "-c"][..], &["-r", "-cd", "-c", "-pp=1", "-p", "2"]] {
            let said = stage.fails(&[options, &[source, target]].concat(), 6);
            assert!(said.contains(".txt") && said.contains("ASCII"), "{said}");
            assert_eq!(names(&folder), [".txt", "a.txt"], "{source} {target} {options:?}");
            for name in names(&folder) {
                assert_eq!(fs::read_to_string(folder.join(&name)).unwrap(), name);
            }
        }
    }
    let single = format!("{}/\u{e9}.txt", server.url);
    let said = stage.fails(&["t/a.txt", &single], 6);
    assert!(said.contains("try: "), "{said}");
    assert_eq!(names(&server.data), ["t", "up"]);
}

#[test]
fn missing_directories_are_made_at_all_levels() {
    let Some(mut stage) = Stage::new("guc-cd") else { return };
    let (server, other) = (stage.server("one", LOOPBACK), stage.server("two", LOOPBACK));
    fs::create_dir_all(stage.here("t/s")).unwrap();
    fs::write(stage.here("t/s/f"), "f").unwrap();
    let at = |server: &GridFtp, path: &str| format!("{}/{path}", server.url);
    stage.does(&["-cd", "t/s/f", &at(&server, "a/b/c")]);
    stage.does(&["-cd", "t/s/f", &at(&server, "d/")]);
    stage.does(&["-cd", "-r", "t/", &at(&server, "e/g/h/")]);
    stage.does(&["-cd", "t/s/*", &at(&server, "i/j/")]);
    for path in ["a/b/c", "d/f", "e/g/h/s/f", "i/j/f"] {
        assert_eq!(fs::read(server.data.join(path)).unwrap(), b"f", "{path}");
    }
    stage.does(&["-cd", &at(&server, "d/f"), &at(&other, "a/b/c")]);
    stage.does(&["-cd", "-r", &at(&server, "e/"), &at(&other, "k/l/")]);
    for path in ["a/b/c", "k/l/g/h/s/f"] {
        assert_eq!(fs::read(other.data.join(path)).unwrap(), b"f", "{path}");
    }
    // Without the option nothing is made.
    stage.fails(&["t/s/f", &at(&server, "x/y")], 6);
    assert!(!server.data.join("x").exists());
}

#[test]
fn a_refusal_for_good_leaves_nothing_behind() {
    let Some(mut stage) = Stage::new("guc-litter") else { return };
    let (server, other) = (stage.server("one", LOOPBACK), stage.server("two", LOOPBACK));
    fs::create_dir_all(server.data.join("t")).unwrap();
    fs::write(server.data.join("t/a"), vec![7; 2_000_000]).unwrap();
    // Nobody can store what the disk has no room for.
    let at = |server: &GridFtp, path: &str| format!("{}/{path}", server.url);
    let no_folder = at(&other, "no/folder/x");
    stage.fails(&[&at(&server, "t/a"), &no_folder], 6);
    stage.fails(&["-off", "5", &at(&server, "t/none"), "part"], 6);
    fs::write(stage.here("f"), vec![7; 2_000_000]).unwrap();
    stage.fails(&["f", &no_folder], 6);
    // Their sizes are not known before they are read.
    for source in ["/proc/version", "/dev/zero"] {
        stage.fails(&[&format!("file://{source}"), &at(&other, "sizeless")], 6);
    }
    assert_eq!(names(&stage.here("")), ["f"]);
    assert_eq!(names(&other.data), [""; 0]);
    assert_eq!(names_of_state(&stage), [""; 0], "and no journal");
}

#[test]
fn a_fixed_number_of_connections_keeps_what_is_done() {
    let Some(mut stage) = Stage::new("guc-fixed") else { return };
    let server = stage.server("one", LOOPBACK);
    fs::File::create(server.data.join("big")).unwrap().set_len(2 << 30).unwrap();
    let url = format!("{}/big", server.url);
    for options in [&["-p", "2"][..], &["-noapt"]] {
        let words = [options, &["-json", &url, "got"]].concat();
        // The rate leaves time to kill it.
        let first = [&["--rate", "2gbit"], &words[..]].concat();
        let mut first = stage.command(&first).stdout(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + PATIENCE;
        while !has_chunks(&stage) {
            assert!(Instant::now() < until, "{options:?}: nothing is recorded");
            assert!(first.try_wait().unwrap().is_none(), "it ended before it could be killed");
            sleep(Duration::from_millis(1));
        }
        first.kill().unwrap();
        first.wait().unwrap();
        let output = stage.does(&words);
        let text = String::from_utf8_lossy(&output.stdout);
        let end: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert!(end["kept_bytes"].as_u64().unwrap() > 0, "{options:?}: {end}");
        assert_eq!(fs::metadata(stage.here("got")).unwrap().len(), 2 << 30);
        fs::remove_file(stage.here("got")).unwrap();
    }
}

#[test]
fn a_tree_goes_on_with_the_files_that_are_missing() {
    use std::os::unix::fs::MetadataExt;
    let Some(mut stage) = Stage::new("guc-tree-again") else { return };
    let server = stage.server("one", LOOPBACK);
    fs::create_dir_all(server.data.join("t/d")).unwrap();
    let files = ["a", "b", "c", "d/e", "large"];
    for (name, bytes) in files.iter().zip([1_000, 2_000, 3_000, 4_000, 3_000_000]) {
        fs::write(server.data.join("t").join(name), vec![7; bytes]).unwrap();
    }
    let url = format!("{}/t/", server.url);
    for options in [&[][..], &["-pp=1"], &["-cc", "2"]] {
        // A directory is in the way of one file.
        fs::create_dir_all(stage.here("got/b")).unwrap();
        let words = [&["-r", "-c", "-json"], options, &[&url, "got/"]].concat();
        stage.fails(&words, 6);
        let inode = |name: &str| fs::metadata(stage.here("got").join(name)).unwrap().ino();
        let before = [inode("a"), inode("d/e"), inode("large")];
        fs::remove_dir(stage.here("got/b")).unwrap();
        fs::write(stage.here("got/c"), vec![8; 3_000]).unwrap();
        for kept in [1_000 + 4_000 + 3_000_000, 0] {
            let output = stage.does(&words);
            let text = String::from_utf8_lossy(&output.stdout);
            let end: serde_json::Value =
                serde_json::from_str(text.lines().last().unwrap()).unwrap();
            assert_eq!(end["kept_bytes"], kept, "{options:?}: {end}");
            let after = [inode("a"), inode("d/e"), inode("large")];
            assert_eq!(before == after, kept > 0, "{options:?}");
            for name in files {
                let wanted = fs::read(server.data.join("t").join(name)).unwrap();
                assert_eq!(fs::read(stage.here("got").join(name)).unwrap(), wanted, "{name}");
            }
            let left = names_of_state(&stage);
            assert_eq!(left, [""; 0], "{options:?}: what is complete is forgotten");
        }
        fs::remove_dir_all(stage.here("got")).unwrap();
    }
}

#[test]
fn a_tree_to_a_server_goes_on_with_the_files_that_are_missing() {
    use std::os::unix::fs::MetadataExt;
    let Some(mut stage) = Stage::new("guc-tree-there") else { return };
    let server = stage.server("one", LOOPBACK);
    fs::create_dir_all(stage.here("t/d")).unwrap();
    let files = ["a", "b", "c", "d/e", "large"];
    for (name, bytes) in files.iter().zip([1_000, 2_000, 3_000, 4_000, 3_000_000]) {
        fs::write(stage.here("t").join(name), vec![7; bytes]).unwrap();
    }
    let (url, there) = (format!("{}/up/", server.url), server.data.join("up"));
    for options in [&[][..], &["-pp=1"], &["-cc", "2"]] {
        // A directory is in the way of one file.
        fs::create_dir_all(there.join("b")).unwrap();
        let words = [&["-r", "-cd", "-c", "-json"], options, &["t/", &url]].concat();
        stage.fails(&words, 6);
        let inode = |name: &str| fs::metadata(there.join(name)).unwrap().ino();
        let before = [inode("d/e"), inode("large")];
        fs::remove_dir(there.join("b")).unwrap();
        // One was changed at the server, and one here, to the same size.
        fs::write(there.join("c"), vec![8; 3_000]).unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        fs::File::options().write(true).open(there.join("c")).unwrap().set_modified(old).unwrap();
        fs::write(stage.here("t/a"), vec![9; 1_000]).unwrap();
        for kept in [4_000 + 3_000_000, 0] {
            let output = stage.does(&words);
            let text = String::from_utf8_lossy(&output.stdout);
            let end: serde_json::Value =
                serde_json::from_str(text.lines().last().unwrap()).unwrap();
            assert_eq!(end["kept_bytes"], kept, "{options:?}: {end}");
            assert_eq!(before == [inode("d/e"), inode("large")], kept > 0, "{options:?}");
            for name in files {
                let wanted = fs::read(stage.here("t").join(name)).unwrap();
                assert_eq!(fs::read(there.join(name)).unwrap(), wanted, "{options:?} {name}");
            }
            let left = names_of_state(&stage);
            assert_eq!(left, [""; 0], "{options:?}: what is complete is forgotten");
        }
        fs::remove_dir_all(&there).unwrap();
    }
}

/// The folder of the journals.
const JOURNALS: &str = "state/hikyaku/copies";

fn names_of_state(stage: &Stage) -> Vec<String> {
    names(&stage.folder.join(JOURNALS))
}

/// Whether a journal records several complete segments.
fn has_chunks(stage: &Stage) -> bool {
    has_recorded(stage, 4_000)
}

/// Whether the journal of a copy has more than this number of bytes.
fn has_recorded(stage: &Stage, bytes: u64) -> bool {
    let folder = stage.folder.join(JOURNALS);
    let length = |name: &String| fs::metadata(folder.join(name)).map_or(0, |meta| meta.len());
    names(&folder).iter().any(|name| length(name) > bytes)
}

#[test]
fn data_from_another_address_are_told_with_the_remedy() {
    let Some(mut stage) = Stage::new("guc-strangers") else { return };
    // The kernel lets its data connections leave from 127.0.0.1.
    let server = stage.server("one", Ipv4Addr::new(127, 0, 0, 11).into());
    fs::create_dir_all(server.data.join("t")).unwrap();
    fs::write(server.data.join("t/f"), "f").unwrap();
    let (file, tree) = (format!("{}/t/f", server.url), format!("{}/t/", server.url));
    for words in [&[&*file, "got"][..], &["-r", "-cd", &tree, "tree/"]] {
        let said = stage.fails(words, 6);
        for word in ["127.0.0.1 ", "127.0.0.11", "try: --trust-pasv"] {
            assert!(said.contains(word), "{words:?}: {said}");
        }
        stage.does(&[&["--trust-pasv"], words].concat());
    }
    assert_eq!(fs::read(stage.here("got")).unwrap(), b"f");
    assert_eq!(fs::read(stage.here("tree/f")).unwrap(), b"f");
}

/// `hikyaku guc` with the certificate of `keys`.
fn with_certificate(stage: &Stage, keys: &Keys, words: &[&str]) -> Output {
    let mut command = stage.command(words);
    command.env("X509_USER_CERT", &keys.user.0).env("X509_USER_KEY", &keys.user.1);
    command.env("X509_CERT_DIR", &keys.authorities).env_remove("X509_USER_PROXY");
    command.output().unwrap()
}

#[test]
fn an_authority_signs_only_what_its_policy_allows() {
    let Some(mut stage) = Stage::new("guc-policy") else { return };
    let server = stage.server("one", LOOPBACK);
    fs::write(server.data.join("f"), "f").unwrap();
    let mut entries = fs::read_dir(&server.keys.authorities).unwrap().flatten();
    let is_policy = |path: &PathBuf| path.extension().is_some_and(|end| end == "signing_policy");
    let policy = entries.find_map(|entry| Some(entry.path()).filter(is_policy)).unwrap();
    let text = fs::read_to_string(&policy).unwrap();
    let words = ["-nodcau", &format!("{}/f", server.gsi_url), "got"];
    let output = with_certificate(&stage, &server.keys, &words);
    assert!(output.status.success(), "{}", said(&output));
    for (from, to) in [("/O=hikyaku tests/*", "/O=Other/*"), ("CN=Authority", "CN=Another")] {
        fs::write(&policy, text.replace(from, to)).unwrap();
        let output = with_certificate(&stage, &server.keys, &words);
        assert_eq!(output.status.code(), Some(6), "{to}: {}", said(&output));
        assert!(said(&output).contains("signing policy"), "{to}: {}", said(&output));
    }
    fs::write(&policy, text).unwrap();
    let output = with_certificate(&stage, &server.keys, &words);
    assert!(output.status.success(), "{}", said(&output));
    // A key that others may read is no secret.
    fs::set_permissions(&server.keys.user.1, fs::Permissions::from_mode(0o640)).unwrap();
    let output = with_certificate(&stage, &server.keys, &words);
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    assert!(said(&output).contains("0640") && said(&output).contains("try: chmod"));
}

#[test]
fn a_striped_server_stores_in_place_what_is_not_there() {
    let Some(mut stage) = Stage::new("guc-stripes") else { return };
    let server = stage.striped("one");
    fs::write(stage.here("f"), vec![7; 3_000_000]).unwrap();
    stage.does(&["-stripe", "-inplace", "f", &format!("{}/new", server.url)]);
    assert_eq!(fs::metadata(server.data.join("new")).unwrap().len(), 3_000_000);
}

#[test]
fn data_nodes_send_a_large_file_whole_and_store_it_in_parts() {
    let Some(mut stage) = Stage::new("guc-stripes-large") else { return };
    let (one, two) = (stage.striped("one"), stage.striped("two"));
    // Many chunks of the tuner, and of a fixed number of connections.
    let bytes: Vec<u8> = (0..300_000_003_u32).map(|at| (at ^ (at >> 11)) as u8).collect();
    fs::write(stage.here("file"), &bytes).unwrap();
    fs::write(one.data.join("file"), &bytes).unwrap();
    let (from, up) = (format!("{}/file", one.url), format!("{}/up", one.url));
    let between = format!("{}/between", two.url);
    for options in [&["-apt-delta", "0.1"][..], &["-p", "2"]] {
        for (source, target, there) in [
            (&*from, "got", stage.here("got")),
            ("file", &*up, one.data.join("up")),
            (&*from, &*between, two.data.join("between")),
        ] {
            stage.does(&[&["-stripe"], options, &[source, target]].concat());
            assert!(fs::read(&there).unwrap() == bytes, "{options:?} {source} {target}");
            fs::remove_file(there).unwrap();
        }
    }
    let said = stage.fails(&["-stripe", "-off", "5000000", "-len", "7000000", &from, "part"], 2);
    assert!(said.contains("try: without -stripe"), "{said}");
}

#[test]
fn the_last_event_tells_the_exit_code_of_a_signal() {
    let Some(mut stage) = Stage::new("guc-signal") else { return };
    let server = stage.server("one", LOOPBACK);
    fs::File::create(server.data.join("big")).unwrap().set_len(100 << 30).unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let url = format!("{}/big", server.url);
        let mut command = stage.command(&["--json", "-p", "1", &url, "/dev/null"]);
        let client = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_secs(1));
        kill_process(Pid::from_child(&client), signal).unwrap();
        let output = client.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(signal.as_raw()));
        let text = String::from_utf8_lossy(&output.stdout);
        let end: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(end["exit_code"], 128 + signal.as_raw(), "{end}");
        assert_eq!(end["error"], "stopped; nothing was kept", "{end}");
    }
}

#[test]
fn passwords_on_the_command_line_are_warned_of_and_closed_ports_are_told_at_once() {
    let folder = scratch("guc-closed");
    fs::create_dir_all(&folder).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let guc = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.arg("guc").args(words).current_dir(&folder).env("XDG_STATE_HOME", &folder);
        command.output().unwrap()
    };
    let begin = Instant::now();
    let output = guc(&["-rst-interval", "60", &format!("ftp://u:secret@127.0.0.1:{port}/f"), "f"]);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(begin.elapsed() < Duration::from_secs(50), "no other attempt");
    let text = said(&output);
    assert!(text.contains(&port.to_string()) && text.to_lowercase().contains("refused"), "{text}");
    assert!(text.contains("no program listens on 127.0.0.1 TCP port"), "{text}");
    assert!(text.contains("process list") && !text.contains("secret"), "{text}");
    for words in [["a", "b"], ["gopher://h/a", "b"]] {
        assert_eq!(guc(&words).status.code(), Some(1), "{words:?}");
    }
    let _ = fs::remove_dir_all(&folder);
}
