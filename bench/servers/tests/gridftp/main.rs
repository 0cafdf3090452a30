//! `hikyaku guc` with a real GridFTP server, if its package is there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod ahead;
mod gate;
mod guarded;
mod killed;
mod store;
mod striped;

use gate::Gate;
use hikyaku_bench_servers::{Scene, events, is_same, said, write_file};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::servers::authority::Keys;
use xtask::servers::gridftp::{self, GridFtp};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PATIENCE: Duration = Duration::from_secs(60);
/// The length of the journal when a copy is ended: that of some hundred segments. The next run compares the last 4 MiB and
/// keeps the others.
const JOURNAL_BYTES: u64 = 4_000;

/// A server, and a folder for its client. Both end with it.
struct Stage {
    scene: Scene,
    server: GridFtp,
}

impl Stage {
    /// `None` without the server's package.
    fn new(name: &str) -> Option<Self> {
        is_there().then(|| {
            let scene = Scene::new(name);
            let server = gridftp::up(&scene.at("server"), LOOPBACK).unwrap();
            Self { scene, server }
        })
    }

    fn guc(&self, words: &[&str]) -> Output {
        self.scene.hikyaku().arg("guc").args(words).output().unwrap()
    }

    /// Runs it and expects success.
    fn does(&self, words: &[&str]) -> Output {
        let output = self.guc(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        output
    }

    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.server.url)
    }

    /// A path at the client.
    fn here(&self, path: &str) -> std::path::PathBuf {
        self.scene.at(path)
    }

    /// A path at the server.
    fn there(&self, path: &str) -> std::path::PathBuf {
        self.server.data.join(path)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = gridftp::down(&self.scene.at("server"));
    }
}

fn is_there() -> bool {
    let is_there = xtask::on_path("globus-gridftp-server");
    if !is_there {
        eprintln!("\n*** SKIPPED, because globus-gridftp-server is not installed ***\n");
    }
    is_there
}

#[test]
fn files_come_and_go_whole() {
    let Some(stage) = Stage::new("guc-files") else { return };
    for (name, bytes) in [("empty", 0), ("one", 1), ("some", 300_001), ("many", 20_000_003)] {
        write_file(&stage.there(name), bytes);
        for options in [&[][..], &["-p", "1"], &["-p", "7"], &["-apt-delta", "0.005"]] {
            let url = stage.url(name);
            stage.does(&[options, &[&url, name]].concat());
            assert!(is_same(&stage.here(name), &stage.there(name)), "{name} {options:?}");
            let up = stage.url("up");
            stage.does(&[options, &[name, &up]].concat());
            assert!(is_same(&stage.here(name), &stage.there("up")), "{name} {options:?} up");
        }
    }
    let names: Vec<_> = fs::read_dir(&stage.server.data).unwrap().collect();
    assert_eq!(names.len(), 5, "no temporary file is left: {names:?}");
}

#[test]
fn trees_come_and_go_whole() {
    let Some(stage) = Stage::new("guc-trees") else { return };
    for (name, bytes) in [("a", 5), ("sub/b c", 3_000_000), ("sub/deep/%41", 0)] {
        write_file(&stage.there("tree").join(name), bytes);
    }
    let output = stage.guc(&["-cd", &stage.url("tree/"), "got/"]);
    assert!(!output.status.success() && said(&output).contains("-r was not given"));
    stage.does(&["-r", "-cd", &stage.url("tree/"), "got/"]);
    stage.does(&["-r", "-cd", "got/", &stage.url("back/")]);
    for tree in [stage.here("got"), stage.there("back")] {
        let status = Command::new("diff").arg("-r").args([stage.there("tree"), tree]).status();
        assert!(status.unwrap().success());
    }
}

#[test]
fn several_files_go_at_once() {
    let Some(stage) = Stage::new("guc-several") else { return };
    for at in 0..40 {
        write_file(&stage.there("tree").join(format!("{}/{at}", at % 3)), 10_000 * at + 1);
    }
    let json = stage.does(&["-r", "-cd", "-cc", "4", "-json", &stage.url("tree/"), "got/"]);
    stage.does(&["-r", "-cd", "-cc", "4", "got/", &stage.url("back/")]);
    for tree in [stage.here("got"), stage.there("back")] {
        let status = Command::new("diff").arg("-r").args([stage.there("tree"), tree]).status();
        assert!(status.unwrap().success());
    }
    let events = events(&json);
    let end = events.last().unwrap();
    assert_eq!((&end["files"], &end["bytes"]), (&Value::from(40), &Value::from(7_800_040)));
    // One that cannot be written does not keep the others from being copied.
    fs::remove_dir_all(stage.here("got/1")).unwrap();
    fs::write(stage.here("got/1"), "in the way").unwrap();
    fs::remove_dir_all(stage.here("got/2")).unwrap();
    let output = stage.guc(&["-r", "-c", "-cc", "4", &stage.url("tree/"), "got/"]);
    assert!(!output.status.success());
    assert_eq!(fs::read_dir(stage.here("got/2")).unwrap().count(), 13);
}

#[test]
fn a_pattern_means_files() {
    let Some(stage) = Stage::new("guc-pattern") else { return };
    for name in ["set/a1.h5", "set/a2.h5", "set/b1.h5", "set/a3.txt", "set/a4.h5/in"] {
        write_file(&stage.there(name), 1000);
    }
    let names = |dir: &str| {
        let entries = fs::read_dir(stage.here(dir)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let url = stage.url("set/a*.h5");
    stage.does(&["-cd", &url, "got/"]);
    assert_eq!(names("got"), ["a1.h5", "a2.h5"]);
    stage.does(&["-cd", "-r", &url, "all/"]);
    assert_eq!(names("all"), ["a1.h5", "a2.h5", "a4.h5"]);
    let none = stage.guc(&[&stage.url("set/x*"), "got/"]);
    assert_eq!(none.status.code(), Some(6), "{}", said(&none));
}

#[test]
fn a_part_goes_to_the_same_place() {
    let Some(stage) = Stage::new("guc-parts") else { return };
    write_file(&stage.there("file"), 1_000_000);
    let want = fs::read(stage.there("file")).unwrap();
    fs::write(stage.here("part"), vec![7; 600_000]).unwrap();
    stage.does(&["-off", "1000", "-len", "500000", &stage.url("file"), "part"]);
    let part = fs::read(stage.here("part")).unwrap();
    assert!(part[1000..501_000] == want[1000..501_000]);
    assert!(part.len() == 600_000 && part[..1000] == [7; 1000] && part[599_999] == 7);
    fs::write(stage.there("up"), vec![7; 600_000]).unwrap();
    stage.does(&["-off", "1000", "-len", "500000", "part", &stage.url("up")]);
    assert!(is_same(&stage.here("part"), &stage.there("up")));
}

/// `hikyaku guc` with a certificate of `keys`, which trusts the authorities of `trusted`.
fn guc_as(stage: &Stage, keys: &Keys, trusted: &Keys, words: &[&str]) -> Output {
    let mut command = stage.scene.hikyaku();
    command.env("X509_USER_CERT", &keys.user.0).env("X509_USER_KEY", &keys.user.1);
    command.env("X509_CERT_DIR", &trusted.authorities).env_remove("X509_USER_PROXY");
    command.arg("guc").args(words).output().unwrap()
}

#[test]
fn a_certificate_logs_in() {
    let Some(stage) = Stage::new("guc-gsi") else { return };
    write_file(&stage.there("file"), 3_000_000);
    let (url, keys) = (format!("{}/file", stage.server.gsi_url), &stage.server.keys);
    let words = ["-nodcau", &url, "got"];
    let output = guc_as(&stage, keys, keys, &words);
    assert!(output.status.success(), "{}", said(&output));
    assert!(is_same(&stage.here("got"), &stage.there("file")));
    let output = guc_as(&stage, keys, keys, &["-nodcau", "got", &format!("{url}-up")]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(is_same(&stage.here("got"), &stage.there("file-up")));

    // Another authority has signed the server, or the user.
    let others = Keys::make(&stage.here("others"), LOOPBACK).unwrap();
    for (keys, trusted) in [(keys, &others), (&others, keys)] {
        let output = guc_as(&stage, keys, trusted, &words);
        assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    }
    // Authorities without a policy are not trusted.
    for entry in fs::read_dir(&others.authorities).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "signing_policy") {
            fs::remove_file(path).unwrap();
        }
    }
    let output = guc_as(&stage, keys, &others, &words);
    assert!(said(&output).contains("signing policy"), "{}", said(&output));
}

#[test]
fn a_download_that_never_pauses_can_be_interrupted() {
    let Some(stage) = Stage::new("guc-stop") else { return };
    // Holes: no disk is read, and it is more than a minute's work.
    let file = fs::File::create(stage.there("file")).unwrap();
    file.set_len(100 << 30).unwrap();
    let mut client = stage.scene.hikyaku();
    client.args(["guc", "--json-lines", "-p", "1", &stage.url("file"), "/dev/null"]);
    let client = client.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    sleep(Duration::from_secs(1));
    kill_process(Pid::from_child(&client), Signal::INT).unwrap();
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()));
    let end = events(&output).pop().unwrap();
    assert!(end["event"] == "end" && end["total_bytes"].as_u64() == Some(100 << 30), "{end}");
    assert!(end["bytes"].as_u64() < Some(100 << 30), "{end}");
}

#[test]
fn devices_are_not_replaced() {
    let Some(stage) = Stage::new("guc-devices") else { return };
    write_file(&stage.there("file"), 1_000_000);
    let output = stage.does(&["--json-lines", &stage.url("file"), "/dev/null"]);
    assert_eq!(events(&output).pop().unwrap()["bytes"], 1_000_000);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let fifo = stage.here("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let output = stage.guc(&[&stage.url("file"), "fifo"]);
    assert!(said(&output).contains("not a regular file; it is left"), "{}", said(&output));
    assert!(!fs::metadata(&fifo).unwrap().is_file());
}

#[test]
fn what_is_wrong_is_said() {
    let Some(stage) = Stage::new("guc-wrong") else { return };
    write_file(&stage.there("file"), 10);
    let file = stage.url("file");
    let cases: [(&[&str], &str, i32); 6] = [
        (&[&stage.url("nothing"), "x"], "no such file", 6),
        (&[&file, "/no/folder/x"], "no such file or directory", 6),
        (&["-rst-retries", "0", "ftp://127.0.0.1:1/x", "x"], "connection refused", 5),
        (&["file", &stage.url("up")], "file: no such file or directory", 6),
        (&[&file, &file], "the source is the target", 6),
        (&["-no-such-option", &file, "x"], "--no-such-option", 1),
    ];
    for (words, want, code) in cases {
        let output = stage.guc(words);
        assert!(said(&output).contains(want), "{words:?}: {}", said(&output));
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
    }
}

/// Whether a copy of this client has recorded a part.
fn is_recorded(state: &Path) -> bool {
    let journals = fs::read_dir(state.join("hikyaku/copies")).into_iter().flatten().flatten();
    // A journal names many segments.
    journals.filter_map(|entry| entry.metadata().ok()).any(|meta| meta.len() > JOURNAL_BYTES)
}

/// Starts a copy in chunks of some milliseconds, ends it by `signal` when a part of it is recorded and its server gets no more
/// commands, and lets the same command finish it. Returns the last event of the second run and its first attempt's signal.
fn interrupted(
    stage: &Stage,
    words: impl Fn(&dyn Fn(&str) -> String) -> [String; 2],
    signal: Signal,
) -> (Value, Option<i32>) {
    let state = stage.here("state");
    let of_gate = state.clone();
    let gate = Gate::before(&stage.server.url, move || is_recorded(&of_gate));
    let words = words(&|path| gate.url(&stage.url(path)));
    let words = [&*words[0], &*words[1]];
    let options = ["guc", "--json-lines", "-apt-delta", "0.01"];
    let mut command = stage.scene.hikyaku();
    command.args(options).args(words).stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = command.spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    while !is_recorded(&state) {
        assert!(Instant::now() < until, "nothing is recorded");
        assert!(first.try_wait().unwrap().is_none(), "it ended before it could be interrupted");
        sleep(Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&first), signal).unwrap();
    let ended_by = first.wait().unwrap().signal();
    gate.open();
    let second = stage.does(&[&options[1..], &words].concat());
    (events(&second).pop().unwrap(), ended_by)
}

#[test]
fn the_same_command_goes_on_after_an_interruption() {
    let Some(stage) = Stage::new("guc-again") else { return };
    write_file(&stage.there("big"), 400_000_000);
    for signal in [Signal::KILL, Signal::INT] {
        let (end, by) = interrupted(&stage, |url| [url("big"), "got".to_owned()], signal);
        assert_eq!(by, Some(signal.as_raw()));
        assert!(end["kept_bytes"].as_u64().unwrap() > 0, "{end}");
        assert!(is_same(&stage.here("got"), &stage.there("big")));
        let (end, by) = interrupted(&stage, |url| ["got".to_owned(), url("up")], signal);
        assert_eq!(by, Some(signal.as_raw()));
        assert!(end["kept_bytes"].as_u64().unwrap() > 0, "{end}");
        assert!(is_same(&stage.here("got"), &stage.there("up")));
        fs::remove_file(stage.here("got")).unwrap();
    }
    let left = fs::read_dir(stage.here("state/hikyaku/copies")).unwrap().count();
    assert_eq!(left, 0, "journals of complete files are removed");
    let left = fs::read_dir(&stage.server.data).unwrap().count();
    assert_eq!(left, 2, "no temporary file is left at the server");
}

#[test]
fn a_source_that_has_changed_is_copied_from_its_start() {
    let Some(stage) = Stage::new("guc-changed") else { return };
    write_file(&stage.there("big"), 400_000_000);
    let url = stage.url("big");
    let mut first = stage.scene.hikyaku();
    first.args(["guc", "-apt-delta", "0.01", &url, "got"]);
    let mut first = first.stderr(Stdio::null()).spawn().unwrap();
    sleep(Duration::from_millis(150));
    let _ = kill_process(Pid::from_child(&first), Signal::KILL);
    first.wait().unwrap();
    write_file(&stage.there("big"), 1_000_000);
    let output = stage.does(&["--json-lines", &url, "got"]);
    assert_eq!(events(&output).pop().unwrap()["kept_bytes"], 0);
    assert!(is_same(&stage.here("got"), &stage.there("big")));
}

#[test]
fn a_server_that_is_back_soon_is_waited_for() {
    let Some(stage) = Stage::new("guc-back") else { return };
    write_file(&stage.there("big"), 1_000_000);
    let url = stage.url("big");
    gridftp::down(&stage.here("server")).unwrap();
    let mut client = stage.scene.hikyaku();
    client.args(["guc", "-rst-interval", "0.2", "-rst-retries", "100", &url, "got"]);
    let mut client = client.stderr(Stdio::null()).spawn().unwrap();
    sleep(Duration::from_millis(400));
    let port = url.split([':', '/']).nth(4).unwrap().parse().unwrap();
    let (_, mut command) = gridftp::prepare(&stage.here("server"), LOOPBACK, port).unwrap();
    let mut server = command.stderr(Stdio::null()).spawn().unwrap();
    let status = client.wait().unwrap();
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    server.wait().unwrap();
    assert!(status.success() && is_same(&stage.here("got"), &stage.there("big")));
}

#[test]
fn connections_are_added_while_they_bring_more() {
    if !is_there() {
        return;
    }
    if !xtask::is_root() {
        eprintln!("\n*** SKIPPED, because the lab needs root ***\n");
        return;
    }
    let scene = Scene::new("guc-lab");
    let ip = IpAddr::from([10, 77, 1, 1]);
    let (server, command) = gridftp::prepare(&scene.at("server"), ip, 2811).unwrap();
    // 1 Gbit/s carries 64 KB in 10 ms twenty times, so that 4, 8 and 16 connections each double what there was.
    write_file(&server.data.join("big"), 200_000_000);
    let options = ["--rate", "1gbit", "--rtt", "10ms", "--queue", "500p", "--server-cmd"];
    let mut lab = scene.hikyaku();
    lab.args(["lab", "run"]).args(options).arg(format!("{command:?}"));
    lab.arg("--").arg(lab_program(&scene)).args(["guc", "--json-lines", "-tcp-bs", "65536"]);
    let output = lab.args(["-apt-delta", "0.4", &format!("{}/big", server.url), "got"]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(is_same(&scene.at("got"), &server.data.join("big")));
    let chunks = events(&output).into_iter().filter(|event| event["event"] == "chunk");
    let numbers: Vec<_> = chunks.map(|event| event["connections"].as_u64().unwrap()).collect();
    assert_eq!(numbers[..3], [4, 8, 16], "{numbers:?}");
}

#[test]
fn the_number_grows_while_a_file_is_transferred() {
    if !is_there() {
        return;
    }
    if !xtask::is_root() {
        eprintln!("\n*** SKIPPED, because the lab needs root ***\n");
        return;
    }
    let scene = Scene::new("guc-grows");
    let ip = IpAddr::from([10, 77, 1, 1]);
    let (server, command) = gridftp::prepare(&scene.at("server"), ip, 2811).unwrap();
    write_file(&server.data.join("big"), 150_000_000);
    // A connection with a window of 64 KB has 10 Mbit/s over 50 ms.
    let options = ["--rate", "400mbit", "--rtt", "50ms", "--queue", "500p", "--server-cmd"];
    let there = |name: &str| format!("{}/{name}", server.url);
    for (from, to) in [(there("big"), "got".to_owned()), ("got".to_owned(), there("up"))] {
        let mut lab = scene.hikyaku();
        lab.args(["lab", "run"]).args(options).arg(format!("{command:?}"));
        lab.arg("--").arg(lab_program(&scene)).args(["guc", "--json-lines", "-tcp-bs", "65536"]);
        let output = lab.args([&from, &to]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let epochs = events(&output).into_iter().filter(|event| event["event"] == "epoch");
        let numbers: Vec<_> = epochs.map(|event| event["connections"].as_u64().unwrap()).collect();
        assert!(numbers.first() == Some(&16), "{from}: {numbers:?}");
        assert!(numbers.iter().any(|n| *n >= 28), "{from}: {numbers:?}");
    }
    assert!(is_same(&scene.at("got"), &server.data.join("big")));
    assert!(is_same(&scene.at("got"), &server.data.join("up")));
}

/// The program's path, for a command line.
fn lab_program(scene: &Scene) -> std::ffi::OsString {
    scene.hikyaku().get_program().to_owned()
}

#[test]
fn files_go_from_one_server_to_another_and_are_compared() {
    let Some(stage) = Stage::new("guc-between") else { return };
    let other = gridftp::up(&stage.scene.at("other"), LOOPBACK).unwrap();
    let _other = Down(stage.scene.at("other"));
    for (name, bytes) in [("a1", 5), ("a2", 20_000_003), ("sub/b c", 300_000), ("sub/deep/0", 0)] {
        write_file(&stage.there("tree").join(name), bytes);
    }
    let to = |path: &str| format!("{}/{path}", other.url);
    let there = |path: &str| other.data.join(path);
    // Several chunks, on connections that are used again.
    let json = stage.does(&[
        "-cksm",
        "adler32",
        "-apt-delta",
        "0.02",
        "--json-lines",
        &stage.url("tree/a2"),
        &to("one"),
    ]);
    assert!(is_same(&stage.there("tree/a2"), &there("one")));
    let events = events(&json);
    assert!(events.iter().filter(|event| event["event"] == "chunk").count() > 1, "{events:?}");
    assert_eq!(events.last().unwrap()["bytes"], Value::from(20_000_003));
    stage.does(&["-p", "3", "-inplace", &stage.url("tree/a1"), &to("one")]);
    assert_eq!(fs::read(there("one")).unwrap().len(), 5);
    stage.does(&["-r", "-cd", "-cksm", "sha256", &stage.url("tree/"), &to("copy/")]);
    let status = Command::new("diff").arg("-r").args([stage.there("tree"), there("copy")]).status();
    assert!(status.unwrap().success());
    stage.does(&["-r", "-cd", "-cc", "3", &stage.url("tree/"), &to("beside/")]);
    let status =
        Command::new("diff").arg("-r").args([stage.there("tree"), there("beside")]).status();
    assert!(status.unwrap().success());
    stage.does(&["-cd", &stage.url("tree/a*"), &to("some/")]);
    assert_eq!(fs::read_dir(there("some")).unwrap().count(), 2, "and no temporary files");
    let output = stage.guc(&[&stage.url("nothing"), &to("x")]);
    assert!(
        !output.status.success() && said(&output).contains("no such file"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_copy_between_two_servers_goes_on_after_an_interruption() {
    let Some(stage) = Stage::new("guc-between-again") else { return };
    let other = gridftp::up(&stage.scene.at("other"), LOOPBACK).unwrap();
    let _other = Down(stage.scene.at("other"));
    write_file(&stage.there("big"), 400_000_000);
    let to = format!("{}/copy", other.url);
    let (end, _) = interrupted(&stage, |url| [url("big"), to.clone()], Signal::KILL);
    assert!(end["kept_bytes"].as_u64().unwrap() > 0, "{end}");
    assert!(is_same(&stage.there("big"), &other.data.join("copy")));
    let names: Vec<_> = fs::read_dir(&other.data).unwrap().collect();
    assert_eq!(names.len(), 1, "no temporary file is left: {names:?}");
}

/// A server that ends with this.
struct Down(std::path::PathBuf);

impl Drop for Down {
    fn drop(&mut self) {
        let _ = gridftp::down(&self.0);
    }
}

#[test]
fn a_pattern_means_files_of_this_machine_too() {
    let Some(stage) = Stage::new("guc-pattern-up") else { return };
    for name in ["set/a1.h5", "set/a2.h5", "set/b1.h5", "set/a4.h5/in", "set/odd[1]"] {
        write_file(&stage.here(name), 1000);
    }
    stage.does(&["-cd", "-cksm", "sha1", "set/a*.h5", &stage.url("up/")]);
    let mut names: Vec<_> =
        fs::read_dir(stage.there("up")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a1.h5", "a2.h5"]);
    stage.does(&["-r", "set/a*", &stage.url("up/")]);
    assert!(stage.there("up/a4.h5/in").exists());
    // A file that has such a name is itself meant.
    stage.does(&["set/odd[1]", &stage.url("odd")]);
    assert!(is_same(&stage.here("set/odd[1]"), &stage.there("odd")));
    let output = stage.guc(&["set/z*", &stage.url("up/")]);
    assert!(
        !output.status.success() && said(&output).contains("no such file"),
        "{}",
        said(&output)
    );
}
