//! Copies between storages: daemons on both sides, and sources of this machine beside them. The data pass through the
//! program that is started here.

use crate::common::daemon::{Client, Daemon, said};
use std::fs;
use std::path::PathBuf;
use std::process::Output;

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
        let output = rig.cp(&["--json", "-r", &source, &target]);
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
fn what_cannot_be_combined_is_refused_with_a_command_to_try() {
    let rig = Rig::up("storages-refused");
    fs::write(rig.at("one/a"), "a").unwrap();
    let several = format!("hikyaku://{},{}/", rig.one.address, rig.two.address);
    rig.fails(&[&rig.one("a"), &several], 1, &["go to one daemon", "try: "]);
    rig.fails(&[&rig.one("a"), "host:a"], 1, &["reached through ssh", "try: "]);
    rig.fails(&["host:a", &rig.one("b")], 1, &["reached through ssh", "try: "]);
    rig.fails(&["--verify", &rig.one("a"), &rig.two("a")], 1, &["--verify", "try: "]);
    assert!(!rig.at("two/a").exists());
}
