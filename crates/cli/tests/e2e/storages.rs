//! Copies between storages: daemons, servers of FTP and HTTP, and hosts by ssh on both sides, and sources of this machine beside
//! them. The data pass through the program that is started here.

use crate::common::daemon::{Client, Daemon, said};
use crate::common::web::Web;
use crate::common::{Sshd, wait_until};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime};
use xtask::servers::ftp::{PlainFtp, Style};

/// A client and two daemons that may be written to.
struct Rig {
    client: Client,
    one: Daemon,
    two: Daemon,
}

impl Rig {
    fn up(name: &str) -> Self {
        let client = Client::new(name);
        let keys = client.authorized("keys", "");
        let serve = |root: &str| {
            fs::create_dir(client.at(root)).unwrap();
            Daemon::start_with(&client, &client.at(root), &keys, &["--writable"])
        };
        let (one, two) = (serve("one"), serve("two"));
        Self { client, one, two }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.client.at(name)
    }

    /// A path of the first daemon.
    fn one(&self, path: &str) -> String {
        format!("hikyaku://{}/{path}", self.one.address)
    }

    /// A path of the second daemon.
    fn two(&self, path: &str) -> String {
        format!("hikyaku://{}/{path}", self.two.address)
    }

    fn cp(&self, arguments: &[&str]) -> Output {
        self.client
            .command(&[&["cp"], arguments].concat())
            .current_dir(self.at(""))
            .output()
            .unwrap()
    }

    fn copies(&self, arguments: &[&str]) {
        let output = self.cp(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    }

    fn fails(&self, arguments: &[&str], code: i32, words: &[&str]) {
        let output = self.cp(arguments);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{arguments:?}: {text}");
    }
}

/// Bytes that differ by their place.
fn bytes(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|n| (n ^ (n >> 8) ^ (n >> 16) ^ seed) as u8).collect()
}

#[test]
fn a_tree_goes_from_a_daemon_to_a_daemon() {
    let rig = Rig::up("storages-tree");
    let mut files = Vec::new();
    fs::create_dir_all(rig.at("one/run7/deep/er")).unwrap();
    for (number, size) in
        [0, 1, 300, 65_536, 70_000, 1 << 20, (5 << 20) + 17].into_iter().enumerate()
    {
        for dir in ["run7", "run7/deep/er"] {
            let name = format!("{dir}/{number}");
            fs::write(rig.at("one").join(&name), bytes(number, size)).unwrap();
            files.push((name, bytes(number, size)));
        }
    }
    for number in 0..200 {
        let name = format!("run7/deep/small {number}");
        fs::write(rig.at("one").join(&name), bytes(number, 100)).unwrap();
        files.push((name, bytes(number, 100)));
    }
    std::os::unix::fs::symlink("deep/er", rig.at("one/run7/link")).unwrap();
    let (source, target) = (rig.one("run7"), rig.two("backup/"));
    rig.fails(&["-r", &source, &rig.two("gone/backup")], 6, &["there is no directory 'gone'"]);
    fs::create_dir(rig.at("two/backup")).unwrap();
    rig.fails(&[&source, &target], 6, &["-r was not given"]);
    rig.copies(&["-n", "-r", &source, &target]);
    assert_eq!(fs::read_dir(rig.at("two/backup")).unwrap().count(), 0);
    for copied in [files.len(), 0] {
        let output = rig.cp(&["--json", "-a", &source, &target]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let events = String::from_utf8_lossy(&output.stdout).into_owned();
        let end = events.lines().last().unwrap();
        assert!(end.contains(&format!("\"files\":{copied},")), "{end}");
    }
    for (name, bytes) in &files {
        assert!(fs::read(rig.at("two/backup").join(name)).unwrap() == *bytes, "{name}");
        let modified = |root: &str| fs::metadata(rig.at(root).join(name)).unwrap().modified();
        assert_eq!(modified("one").unwrap(), modified("two/backup").unwrap(), "{name}");
    }
    let link = fs::read_link(rig.at("two/backup/run7/link")).unwrap();
    assert_eq!(link.to_str(), Some("deep/er"));
    // One file under another name, also where the older one is kept.
    rig.copies(&[&rig.one("run7/6"), &rig.two("six")]);
    assert!(fs::read(rig.at("two/six")).unwrap() == bytes(6, (5 << 20) + 17));
    fs::write(rig.at("two/six"), "mine").unwrap();
    rig.copies(&["--ignore-existing", &rig.one("run7/6"), &rig.two("six")]);
    assert_eq!(fs::read(rig.at("two/six")).unwrap(), b"mine");
}

#[test]
fn sources_of_several_storages_go_together() {
    let rig = Rig::up("storages-mixed");
    fs::create_dir_all(rig.at("one/tree")).unwrap();
    fs::write(rig.at("one/tree/a"), "of the first").unwrap();
    fs::write(rig.at("two/b"), "of the second").unwrap();
    fs::write(rig.at("c"), "of this machine").unwrap();
    fs::create_dir_all(rig.at("here")).unwrap();
    let sources = [&*rig.one("tree"), "c", &*rig.two("b")];
    rig.copies(&[&["-r"], &sources[..], &["here"]].concat());
    rig.copies(&[&["-r"], &sources[..], &[&*rig.one("")]].concat());
    for root in ["here", "one"] {
        for (name, text) in
            [("tree/a", "of the first"), ("b", "of the second"), ("c", "of this machine")]
        {
            assert_eq!(fs::read_to_string(rig.at(root).join(name)).unwrap(), text, "{root}/{name}");
        }
    }
    // A name belongs to the first source that has it, and the others are copied.
    fs::write(rig.at("b"), "of this machine").unwrap();
    let twice = [&*rig.two("b"), "b", "c"];
    for target in ["again", &rig.one("again/")] {
        for dir in ["again", "one/again"] {
            fs::create_dir_all(rig.at(dir)).unwrap();
        }
        let arguments = [&twice[..], &[target]].concat();
        rig.fails(&arguments, 6, &["another source has this name"]);
    }
    for dir in ["again", "one/again"] {
        assert_eq!(fs::read_to_string(rig.at(dir).join("b")).unwrap(), "of the second");
        assert_eq!(fs::read_to_string(rig.at(dir).join("c")).unwrap(), "of this machine");
    }
    // Several sources need a directory, and one that is missing does not end the copy.
    rig.fails(&["c", &rig.two("b"), "new"], 6, &["no such directory"]);
    rig.fails(&["c", &rig.two("none"), "again"], 6, &["none"]);
    rig.fails(&["none", &rig.two("b"), "again"], 6, &["none"]);
}

#[test]
fn files_of_any_storage_go_to_several_daemons_each_to_one() {
    let rig = Rig::up("storages-several");
    let mut files = Vec::new();
    fs::create_dir_all(rig.at("one/run7/empty")).unwrap();
    for (number, size) in [0, 1, 300, 65_536, 300_000, 1 << 20, (9 << 20) + 17]
        .into_iter()
        .cycle()
        .take(70)
        .enumerate()
    {
        let name = format!("run7/{number}");
        fs::write(rig.at("one").join(&name), bytes(number, size)).unwrap();
        files.push((name, bytes(number, size)));
    }
    std::os::unix::fs::symlink("6", rig.at("one/run7/link")).unwrap();
    fs::write(rig.at("here"), "of this machine").unwrap();
    // Both get the directory of the target, which only one has. An older version is replaced where it is.
    fs::create_dir_all(rig.at("two/copy/run7")).unwrap();
    fs::write(rig.at("two/copy/run7/3"), "older").unwrap();
    let both = |path: &str| format!("hikyaku://{},{}/{path}", rig.one.address, rig.two.address);
    let (source, target) = (rig.one("run7"), both("copy/"));
    rig.copies(&["-n", "-r", &source, &target]);
    assert!(!rig.at("one/copy").exists());
    for copied in [files.len() + 1, 0] {
        let output = rig.cp(&["--json", "-a", &source, "here", &target]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let events = String::from_utf8_lossy(&output.stdout).into_owned();
        let end = events.lines().last().unwrap();
        assert!(end.contains(&format!("\"files\":{copied},")), "{end}");
    }
    let roots = ["one/copy", "two/copy"];
    let there = |name: &str| roots.map(|root| rig.at(root).join(name)).map(|at| fs::read(at).ok());
    for (name, bytes) in &files {
        let found: Vec<_> = there(name).into_iter().flatten().collect();
        assert!(found == [bytes.clone()], "{name}: {}", found.len());
    }
    assert!(there("run7/3")[1].is_some(), "an older version was there");
    assert_eq!(there("here").iter().flatten().count(), 1);
    for root in roots {
        assert!(rig.at(root).join("run7/empty").is_dir(), "{root}");
        let link = fs::read_link(rig.at(root).join("run7/link")).unwrap();
        assert_eq!(link.to_str(), Some("6"), "{root}");
    }
    rig.fails(&[&rig.one("none"), &target], 6, &["none"]);
    rig.fails(&["-r", &source, &both("gone/new")], 6, &["there is no directory 'gone'"]);
}

#[test]
fn what_cannot_be_combined_is_refused_with_a_command_to_try() {
    let rig = Rig::up("storages-refused");
    fs::write(rig.at("one/a"), "a").unwrap();
    let only_read = ["can only be read", "try: a storage that can be written to"];
    rig.fails(&[&rig.one("a"), "http://127.0.0.1:1/a"], 1, &only_read);
    rig.fails(&["-r", "http://127.0.0.1:1/a", "b"], 1, &["-r", "from web servers", "try: "]);
    rig.fails(&["file://elsewhere/a", &rig.one("b")], 1, &["a file of this machine", "try: "]);
    rig.fails(&["--verify", &rig.one("a"), &rig.two("a")], 1, &["--verify", "try: "]);
    assert!(!rig.at("two/a").exists());
}

#[test]
fn files_of_a_web_server_go_here_and_to_a_daemon() {
    let rig = Rig::up("storages-web");
    let large = bytes(3, (17 << 20) + 5);
    let web = Web::start(&[("d/large", large.clone()), ("d/a%20b", b"small".to_vec())]);
    fs::create_dir(rig.at("here")).unwrap();
    let sources = [web.url("d/large"), web.url("d/a%20b")];
    let [large_url, small_url] = &sources;
    for (target, root) in [("here".to_owned(), "here"), (rig.two(""), "two")] {
        rig.copies(&[large_url, small_url, &target]);
        assert!(fs::read(rig.at(root).join("large")).unwrap() == large, "{root}");
        assert_eq!(fs::read(rig.at(root).join("a b")).unwrap(), b"small", "{root}");
    }
    // The server sends no date: the copy is as old as it is.
    let modified = fs::metadata(rig.at("here/large")).unwrap().modified().unwrap();
    assert!(modified > SystemTime::now() - Duration::from_secs(3600));
    rig.copies(&[small_url, "renamed"]);
    assert_eq!(fs::read(rig.at("renamed")).unwrap(), b"small");
    rig.fails(&[&web.url("none"), "here"], 6, &["none"]);
    // One that is missing does not end the copy.
    rig.fails(&[&web.url("none"), small_url, "here"], 6, &["none"]);
}

#[test]
fn files_of_a_web_server_share_a_connection() {
    let client = Client::new("storages-web-shared");
    let web = Web::start(&["a", "b", "c"].map(|name| (name, name.as_bytes().to_vec())));
    let urls = ["a", "b", "c"].map(|name| web.url(name));
    fs::create_dir(client.at("to")).unwrap();
    let to = client.at("to").display().to_string();
    let words = ["cp", "--connections", "1", &urls[0], &urls[1], &urls[2], &to];
    let output = client.run(&words);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(client.at("to/c")).unwrap(), b"c");
    assert_eq!(web.connections(), 1);
}

#[test]
fn files_of_a_web_server_share_the_connections_that_it_grants() {
    let rig = Rig::up("storages-web-full");
    let files: Vec<(String, Vec<u8>)> =
        (0..4).map(|at| (format!("d/{at}"), bytes(at, 12 << 20))).collect();
    let served: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    let web = Web::granting(&served, 2);
    fs::create_dir(rig.at("here")).unwrap();
    let urls: Vec<String> = files.iter().map(|(name, _)| web.url(name)).collect();
    let words: Vec<&str> = urls.iter().map(String::as_str).chain(["here"]).collect();
    rig.copies(&words);
    for (name, bytes) in &files {
        let name = name.trim_start_matches("d/");
        assert!(fs::read(rig.at("here").join(name)).unwrap() == *bytes, "{name}");
    }
    assert!((1..=6).contains(&web.refused()), "{}", web.refused());
}

#[test]
fn a_tree_goes_from_an_ftp_server_and_back() {
    for style in [Style::Facts, Style::Bare] {
        let rig = Rig::up(&format!("storages-ftp-{style:?}"));
        let server = PlainFtp::start(&rig.at("served"), style).unwrap();
        let url = |path: &str| format!("{}/{path}", server.url());
        let tree = |root: &str| crate::common::listing(&rig.at(root));
        fs::create_dir_all(rig.at("served/run7/deep")).unwrap();
        for (name, size) in [("a", 0), ("b.h5", 70_000), ("deep/c.h5", (5 << 20) + 17)] {
            fs::write(rig.at("served/run7").join(name), bytes(size, size)).unwrap();
        }
        fs::create_dir(rig.at("here")).unwrap();
        rig.copies(&["-r", &url("run7"), "here"]);
        rig.copies(&["-r", "here/run7", &url("back")]);
        rig.copies(&["-r", &url("run7"), &rig.one("")]);
        rig.copies(&["-r", &rig.one("run7"), &url("again/")]);
        for copy in ["here/run7", "served/back", "one/run7", "served/again"] {
            assert!(tree("served/run7") == tree(copy), "{style:?} {copy}");
        }
        // Equal files are not copied again. A server without facts has times of its own.
        let again = rig.cp(&["--json", "-r", &url("run7"), "here"]);
        let end = String::from_utf8_lossy(&again.stdout).lines().last().unwrap().to_owned();
        assert!(end.contains("\"files\":0,"), "{style:?} {end}");
        rig.copies(&[&url("run7/*.h5"), &rig.two("")]);
        assert!(fs::read(rig.at("two/b.h5")).unwrap() == bytes(70_000, 70_000), "{style:?}");
        rig.fails(&[&url("run7/none"), "here"], 6, &["none: no such file"]);
        rig.fails(&[&url("run7"), "here"], 6, &["-r was not given"]);
    }
    let rig = Rig::up("storages-ftp-away");
    rig.fails(&["ftp://127.0.0.1:1/a", "b"], 5, &["ftp://127.0.0.1:1/a", "cannot connect"]);
    rig.fails(&["gsiftp://127.0.0.1:1/a", "b"], 6, &["X509_USER_PROXY"]);
}

#[test]
fn a_host_by_ssh_is_an_end_beside_storages() {
    let rig = Rig::up("storages-ssh");
    let sshd = Sshd::with_lines("storages-ssh-host", "Subsystem sftp internal-sftp\n");
    let config = sshd.at("ssh_config").display().to_string();
    fs::create_dir_all(sshd.at("run7/deep")).unwrap();
    for (name, size) in [("a", 0), ("b", 70_000), ("deep/c", (5 << 20) + 17)] {
        fs::write(sshd.at("run7").join(name), bytes(size, size)).unwrap();
    }
    std::os::unix::fs::symlink("run7", sshd.at("link")).unwrap();
    let wanted = crate::common::listing(&sshd.at("run7"));
    for (number, (program, note)) in
        [(env!("CARGO_BIN_EXE_hikyaku"), ""), ("no-such-hikyaku", "data go through ssh")]
            .into_iter()
            .enumerate()
    {
        let options = ["-F", &config, "--remote-path", program];
        let copies = |words: &[&str]| {
            let output = rig.cp(&[&options[..], words].concat());
            assert_eq!(output.status.code(), Some(0), "{words:?}: {}", said(&output));
            assert!(said(&output).contains(note), "{words:?}: {}", said(&output));
        };
        let (to, back) = (rig.one(&format!("copy{number}")), format!("back{number}"));
        copies(&["-rp", &sshd.far("run7"), &to]);
        copies(&["-rp", &to, &sshd.far(&back)]);
        assert!(crate::common::listing(&rig.at(&format!("one/copy{number}"))) == wanted);
        assert!(crate::common::listing(&sshd.at(&back)) == wanted);
        // By a link, a pattern, and an address; beside a file of this machine.
        fs::write(rig.at("mine"), "mine").unwrap();
        let dir = sshd.at("run7").display().to_string();
        let address = format!("sftp://far/{dir}/deep/c");
        let (link, pattern) = (sshd.far("link/b"), sshd.far("run7/[a]"));
        fs::create_dir(rig.at(&format!("two/{number}"))).unwrap();
        copies(&[&address, "mine", &link, &pattern, &rig.two(&format!("{number}/"))]);
        for name in ["a", "b", "c", "mine"] {
            assert!(rig.at(&format!("two/{number}")).join(name).exists(), "{name}");
        }
        let output = rig.cp(&[&options[..], &[&sshd.far("none"), &rig.one("x")]].concat());
        assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    }
    // Without hikyaku on the host an option that protects something is refused by name.
    let words = ["--policy", "fair", "-F", &config, "--remote-path", "no-such-hikyaku"];
    let ends = [sshd.far("run7/b"), rig.one("x")];
    let refused = [&words[..], &[&ends[0], &ends[1]]].concat();
    rig.fails(&refused, 1, &["--policy", "try: "]);
    assert!(!rig.at("one/x").exists());
}

#[test]
fn hikyaku_on_a_host_serves_its_files_to_storages() {
    let rig = Rig::up("storages-far");
    // No SFTP server: only the host's hikyaku serves files.
    let sshd = Sshd::with_lines("storages-far-host", "Subsystem sftp /bin/false\n");
    let config = sshd.at("ssh_config").display().to_string();
    let options = ["-F", &config, "--remote-path", env!("CARGO_BIN_EXE_hikyaku")];
    let copies = |words: &[&str]| rig.copies(&[&options[..], words].concat());
    fs::create_dir_all(sshd.at("run7/deep")).unwrap();
    for (name, size) in [("a", 0), ("b", 70_000), ("deep/c", (5 << 20) + 17)] {
        fs::write(sshd.at("run7").join(name), bytes(size, size)).unwrap();
    }
    std::os::unix::fs::symlink("run7/deep", sshd.at("link")).unwrap();
    for via in ["auto", "tcp"] {
        let (to, back) = (rig.one(&format!("by-{via}")), format!("back-{via}"));
        copies(&["--via", via, "-rp", &sshd.far("run7"), &to]);
        copies(&["--via", via, "-rp", &to, &sshd.far(&back)]);
        for name in ["a", "b", "deep/c"] {
            let file = |root: PathBuf| {
                let at = root.join(name);
                (fs::metadata(&at).unwrap().modified().unwrap(), fs::read(at).unwrap())
            };
            // Times have nanoseconds.
            let wanted = file(sshd.at("run7"));
            assert!(file(rig.at(&format!("one/by-{via}"))) == wanted, "{via}: {name}");
            assert!(file(sshd.at(&back)) == wanted, "{via}: {name}");
        }
    }
    let ftp = PlainFtp::start(&rig.at("served"), Style::Facts).unwrap();
    copies(&["--via", "ssh", "-r", &sshd.far("run7"), &format!("{}/by-ssh", ftp.url())]);
    let tree = crate::common::listing(&sshd.at("run7"));
    assert!(crate::common::listing(&rig.at("served/by-ssh")) == tree);
    // Links before '..' are followed, and a path without a slash begins in the home directory.
    let above = format!("far:{}/link/../b", sshd.at("").display());
    copies(&[&above, &rig.two("above")]);
    assert!(fs::read(rig.at("two/above")).unwrap() == bytes(70_000, 70_000));
    let x = rig.one("x");
    let missing = [&options[..], &["far:none/of/this name", &x]].concat();
    rig.fails(&missing, 6, &["none/of/this name", "no such file"]);
    // A server cannot know the size of a file of the kernel.
    rig.fails(&[&options[..], &["far:/proc/cpuinfo", &x]].concat(), 6, &["/proc"]);
    assert!(!rig.at("one/x").exists());
    let listing = ["ls", "--ssh-config", &config, options[2], options[3], &sshd.far("run7")];
    let output = rig.client.run(&listing);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\nb\ndeep\n");
}

#[test]
fn a_copy_between_a_host_and_a_storage_goes_on_over_another_connection() {
    for side in ["source", "target"] {
        let rig = Rig::up(&format!("storages-lost-{side}"));
        let sshd = Sshd::with_lines(&format!("storages-lost-{side}-host"), "");
        let config = sshd.at("ssh_config").display().to_string();
        for root in [sshd.at("tree"), rig.at("one/tree")] {
            fs::create_dir_all(&root).unwrap();
            for number in 0..12 {
                fs::write(root.join(number.to_string()), bytes(number, 1 << 20)).unwrap();
            }
        }
        let (ends, made) = match side {
            "source" => ([sshd.far("tree/."), rig.two("copy")], rig.at("two/copy")),
            _ => ([rig.one("tree/."), sshd.far("copy")], sshd.at("copy")),
        };
        fs::create_dir(&made).unwrap();
        let program = env!("CARGO_BIN_EXE_hikyaku");
        let words = ["cp", "-r", "-l", "16m", "-F", &config, "--remote-path", program];
        let mut command = rig.client.command(&[&words[..], &[&ends[0], &ends[1]]].concat());
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("a file of the copy", || crate::common::listing(&made).len() > 2);
        // The far side dies, as in a restart of the host.
        sshd.end_sessions();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{side}: {}", said(&output));
        assert!(
            said(&output).contains("the connection is lost; trying again"),
            "{}",
            said(&output)
        );
        assert!(
            crate::common::listing(&made) == crate::common::listing(&sshd.at("tree")),
            "{side}"
        );
    }
}

#[test]
fn an_address_of_a_file_is_a_path_of_this_machine() {
    let rig = Rig::up("storages-file");
    fs::write(rig.at("a b"), "mine").unwrap();
    let address = format!("file://{}/a%20b", rig.at("").canonicalize().unwrap().display());
    rig.copies(&[&address, &rig.one("x")]);
    assert_eq!(fs::read_to_string(rig.at("one/x")).unwrap(), "mine");
    rig.copies(&[&rig.one("x"), &address.replace("a%20b", "y")]);
    assert_eq!(fs::read_to_string(rig.at("y")).unwrap(), "mine");
}

#[test]
fn events_name_what_limits_a_copy() {
    let rig = Rig::up("storages-limited");
    fs::write(rig.at("one/f"), bytes(3, 4 << 20)).unwrap();
    for (number, (from, to)) in [
        (rig.one("f"), "here".to_owned()),
        (rig.one("f"), rig.two("other")),
        ("one/f".to_owned(), rig.two("third")),
    ]
    .into_iter()
    .enumerate()
    {
        let output = rig.cp(&["--json-lines", "--rate", "16m", &from, &to]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let events = String::from_utf8_lossy(&output.stdout).into_owned();
        let named = events.lines().filter(|line| line.contains("\"limited_by\":\"limit\""));
        assert!(named.count() > 0, "{number}: {events}");
    }
    // The writer is slower than the path.
    let mut copy = rig.client.command(&["cp", "--json-lines", "-", &rig.two("slow")]);
    let pipes = copy.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..20 {
        stdin.write_all(&bytes(4, 30_000)).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let events = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(events.contains("\"limited_by\":\"source\""), "{events}");
}
