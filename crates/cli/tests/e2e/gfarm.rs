//! Copies from a Gfarm file system, and listings of one: `hikyaku cp gfarm:///PATH DIR`, with Gfarm's own servers.

use crate::common::process;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;
use xtask::servers::gfarm::{Gfarm, NEEDS, Plan};

/// Servers and a client's directory, removed with the test.
struct Rig {
    gfarm: Gfarm,
    dir: PathBuf,
}

impl Rig {
    /// `None` where Debian's packages are missing.
    fn up(name: &str, nodes: u8) -> Option<Self> {
        if !NEEDS.iter().all(xtask::Need::is_present) {
            let why = "no Gfarm here (try: apt-get install gfmd gfsd gfarm-client)";
            crate::common::skipped(name, why);
            return None;
        }
        let dir = crate::common::scratch(&format!("gfarm-{name}"));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let gfarm = Gfarm::up(&dir.join("servers"), &Plan { nodes, ..Plan::default() }).unwrap();
        Some(Self { gfarm, dir })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Stores a file of so many bytes on so many nodes; its bytes.
    fn put(&self, name: &str, length: usize, copies: usize) -> Vec<u8> {
        let mut rng = fastrand::Rng::with_seed(length as u64);
        let bytes: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(length).collect();
        let local = self.at("local");
        fs::write(&local, &bytes).unwrap();
        self.gfarm.run("gfreg", &[local.to_str().unwrap(), name]).unwrap();
        if copies > 1 {
            self.gfarm.run("gfrep", &["-q", "-N", &copies.to_string(), name]).unwrap();
        }
        bytes
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program();
        command.arg("cp").args(arguments);
        command
    }

    fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command
            .env("GFARM_CONFIG_FILE", self.gfarm.config())
            .env("XDG_STATE_HOME", self.at("state"))
            .current_dir(&self.dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn cp(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.gfarm.down().unwrap();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn assert_good(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_file_comes_from_one_node_and_from_three() {
    let Some(rig) = Rig::up("file", 3) else { return };
    let one = rig.put("/one", 5_000_000, 1);
    let three = rig.put("/three", 30_000_001, 3);
    assert_good(&rig.cp(&["gfarm:///one", "gfarm:///three", "."]));
    assert!(read(&rig.at("one")) == one);
    assert!(read(&rig.at("three")) == three);
    let port = rig.gfarm.gfmd_port();
    assert_good(&rig.cp(&[&format!("gfarm://127.0.0.1:{port}/one"), "renamed"]));
    assert!(read(&rig.at("renamed")) == one);
}

#[test]
fn a_tree_comes_with_its_links_and_empty_files() {
    let Some(rig) = Rig::up("tree", 2) else { return };
    rig.gfarm.run("gfmkdir", &["/run7", "/run7/deep", "/run7/empty"]).unwrap();
    rig.gfarm.run("gfln", &["-s", "deep/1", "/run7/link"]).unwrap();
    let files: Vec<(String, Vec<u8>)> = (0..40)
        .map(|n| {
            let length = [0, 10, 200_000, 2_500_000][n % 4] + n * usize::from(n % 4 != 0);
            let name = format!("/run7/deep/{n}");
            let bytes = rig.put(&name, length, 1 + n % 2);
            (name, bytes)
        })
        .collect();
    let plain = rig.cp(&["gfarm:///run7", "."]);
    assert_eq!(plain.status.code(), Some(6), "{}", said(&plain));
    assert!(said(&plain).contains("-r was not given"), "{}", said(&plain));
    assert_good(&rig.cp(&["-a", "gfarm:///run7", "."]));
    for (name, bytes) in &files {
        assert!(read(&rig.dir.join(&name[1..])) == *bytes, "{name}");
    }
    assert_eq!(fs::read_link(rig.at("run7/link")).unwrap(), Path::new("deep/1"));
    assert!(rig.at("run7/empty").is_dir());
    // What is there is kept.
    let again = rig.cp(&["--json", "-a", "gfarm:///run7", "."]);
    assert_good(&again);
    let told = String::from_utf8_lossy(&again.stdout).into_owned();
    let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(told.lines().last().unwrap().contains(&format!("\"kept_bytes\":{bytes}")), "{told}");
}

#[test]
fn a_listing_has_the_nodes_of_each_file() {
    let Some(rig) = Rig::up("ls", 2) else { return };
    rig.gfarm.run("gfmkdir", &["/run7", "/run7/deep"]).unwrap();
    rig.put("/run7/both", 1536, 2);
    rig.put("/run7/deep/one", 5, 1);
    rig.gfarm.run("gfln", &["-s", "run7", "/link"]).unwrap();
    let ls = |arguments: &[&str]| {
        let output = rig.program().arg("ls").args(arguments).output().unwrap();
        assert_good(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ls(&["gfarm:///run7"]), "both\ndeep\n");
    assert_eq!(ls(&["-r", "gfarm:///link/"]), "both\ndeep\ndeep/one\n");
    assert!(ls(&["-lh", "gfarm:///run7"]).contains(" 1.5K "));
    assert!(ls(&["-l", "gfarm:///link"]).ends_with(" gfarm:///link -> run7\n"));
    for arguments in [&["--where"][..], &["--where", "-r"]] {
        let told = ls(&[arguments, &["gfarm:///run7"]].concat());
        let of_both = told.lines().find(|line| line.ends_with(" both")).unwrap();
        let nodes: Vec<&str> = of_both.split(' ').next().unwrap().split(',').collect();
        assert_eq!(nodes.len(), 2, "{told}");
        let deep = told.lines().find(|line| line.ends_with(" deep")).unwrap();
        assert!(deep.starts_with("- "), "{told}");
    }
    let missing = rig.program().args(["ls", "gfarm:///none"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(6), "{}", said(&missing));
    let text = said(&missing);
    assert!(text.contains("gfarm:///none: no such file or directory"), "{text}");
}

#[test]
fn sources_that_are_links_are_followed_and_patterns_mean_what_matches_them() {
    let Some(rig) = Rig::up("links", 2) else { return };
    rig.gfarm.run("gfmkdir", &["/tree", "/tree/s1", "/tree/s2", "/other"]).unwrap();
    let files: Vec<(&str, Vec<u8>)> = ["/tree/s1/a", "/tree/s1/b", "/tree/s2/a", "/tree/.s1"]
        .into_iter()
        .zip([10, 2_000_000, 30, 40])
        .map(|(name, length)| (name, rig.put(name, length, 1)))
        .collect();
    let bytes_of = |name: &str| &files.iter().find(|(path, _)| *path == name).unwrap().1;
    for (text, name) in [
        ("tree/s1/b", "/file"),
        ("../tree/s1", "/other/dir"),
        ("/other/dir", "/twice"),
        ("none", "/nowhere"),
        ("round", "/round"),
    ] {
        rig.gfarm.run("gfln", &["-s", text, name]).unwrap();
    }
    fs::create_dir(rig.at("to")).unwrap();
    assert_good(&rig.cp(&["gfarm:///file", "to/"]));
    assert!(read(&rig.at("to/file")) == *bytes_of("/tree/s1/b"));
    assert_good(&rig.cp(&["gfarm:///file", "renamed"]));
    assert!(read(&rig.at("renamed")) == *bytes_of("/tree/s1/b"));
    assert_good(&rig.cp(&["-r", "gfarm:///twice", "to"]));
    assert!(rig.at("to/twice").symlink_metadata().unwrap().is_dir());
    assert!(read(&rig.at("to/twice/b")) == *bytes_of("/tree/s1/b"));
    assert_good(&rig.cp(&["gfarm:///twice/a", "through"]));
    assert!(read(&rig.at("through")) == *bytes_of("/tree/s1/a"));
    for (name, words) in [("nowhere", "no such file"), ("round", "a symbolic link is in the way")] {
        let failed = rig.cp(&[&format!("gfarm:///{name}"), "to/"]);
        assert_eq!(failed.status.code(), Some(6), "{}", said(&failed));
        assert!(said(&failed).contains(words), "{}", said(&failed));
        assert!(rig.at("to").join(name).symlink_metadata().is_err());
    }

    // Those below a source as well, unless they are kept. Their files may be on nodes that no other file is on.
    rig.gfarm.run("gfmkdir", &["/links", "/links/below"]).unwrap();
    for (text, name) in [
        ("../tree/s1", "/links/dir"),
        ("../../tree/s2/a", "/links/below/file"),
        ("dir", "/links/again"),
        ("..", "/links/below/circle"),
        ("none", "/links/nowhere"),
    ] {
        rig.gfarm.run("gfln", &["-s", text, name]).unwrap();
    }
    let followed = rig.cp(&["-r", "gfarm:///links", "."]);
    assert_eq!(followed.status.code(), Some(6), "{}", said(&followed));
    for words in ["links/below/circle: a link leads back to a directory above it", "links/nowhere"]
    {
        assert!(said(&followed).contains(words), "{}", said(&followed));
    }
    for (copy, source) in
        [("dir/b", "/tree/s1/b"), ("again/a", "/tree/s1/a"), ("below/file", "/tree/s2/a")]
    {
        let copy = rig.at("links").join(copy);
        assert!(read(&copy) == *bytes_of(source), "{copy:?}");
        assert!(!copy.parent().unwrap().is_symlink() && !copy.is_symlink(), "{copy:?}");
    }
    assert_good(&rig.cp(&["-a", "gfarm:///links/.", "kept"]));
    for (name, text) in [("dir", "../tree/s1"), ("below/circle", ".."), ("nowhere", "none")] {
        assert_eq!(fs::read_link(rig.at("kept").join(name)).unwrap(), Path::new(text));
    }

    fs::create_dir(rig.at("all")).unwrap();
    assert_good(&rig.cp(&["-r", "gfarm:///tree/s*", "all"]));
    let names = |dir: &str| {
        let all = fs::read_dir(rig.at(dir)).unwrap();
        let mut all: Vec<_> = all.map(|one| one.unwrap().file_name()).collect();
        all.sort();
        all
    };
    assert_eq!(names("all"), ["s1", "s2"]);
    fs::create_dir(rig.at("some")).unwrap();
    assert_good(&rig.cp(&["gfarm:///t??e/s[12]/b", "some"]));
    assert_eq!(names("some"), ["b"]);
    let none = rig.cp(&["gfarm:///tree/x*", "some"]);
    assert_eq!(none.status.code(), Some(6), "{}", said(&none));
    assert!(said(&none).contains("gfarm:///tree/x*: no such file"), "{}", said(&none));
    // A name is itself first.
    rig.put("/tree/s1/*", 5, 1);
    assert_good(&rig.cp(&["gfarm:///tree/s1/*", "itself"]));
    assert_eq!(read(&rig.at("itself")).len(), 5);
}

#[test]
fn names_mean_what_they_mean_to_cp() {
    let Some(rig) = Rig::up("as-cp", 1) else { return };
    rig.gfarm.run("gfmkdir", &["/tree", "/tree/s1", "/tree/s2"]).unwrap();
    let [a, b] = [("/tree/a", 10), ("/tree/s1/b", 20)].map(|(name, size)| rig.put(name, size, 1));
    // Files and directories match: a file has nothing below it, and a directory without -r stops no file.
    fs::create_dir(rig.at("mixed")).unwrap();
    let mixed = rig.cp(&["gfarm:///tree/*", "mixed"]);
    assert_eq!(mixed.status.code(), Some(6), "{}", said(&mixed));
    let told = said(&mixed);
    assert_eq!(told.matches("is a directory, and -r was not given").count(), 2, "{told}");
    assert!(read(&rig.at("mixed/a")) == a);
    assert_good(&rig.cp(&["gfarm:///tree/*/b", "through"]));
    assert!(read(&rig.at("through")) == b);
    // What is in a directory.
    assert_good(&rig.cp(&["-r", "gfarm:///tree/.", "contents"]));
    assert!(read(&rig.at("contents/a")) == a && read(&rig.at("contents/s1/b")) == b);
    // Daemons are used where they are, and there are none.
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let direct = rig.cp(&[&format!("--gfarm-daemons={port}"), "gfarm:///tree/a", "direct"]);
    assert_good(&direct);
    assert!(said(&direct).contains("files come by Gfarm's own protocol"), "{}", said(&direct));
    assert!(read(&rig.at("direct")) == a);
    // A target that is a link is written through.
    for (text, name) in [("tree/a", "/file"), ("nothing", "/dangling"), ("/tree/s1", "/dir")] {
        rig.gfarm.run("gfln", &["-s", text, name]).unwrap();
    }
    fs::write(rig.at("new"), "new").unwrap();
    for target in ["file", "dir", "dir/newer"] {
        assert_good(&rig.cp(&["new", &format!("gfarm:///{target}")]));
    }
    for name in ["/tree/a", "/tree/s1/new", "/tree/s1/newer"] {
        assert_eq!(rig.gfarm.run("gfexport", &[name]).unwrap(), "new", "{name}");
    }
    let refused = rig.cp(&["new", "gfarm:///dangling"]);
    assert_eq!(refused.status.code(), Some(6), "{}", said(&refused));
    assert!(said(&refused).contains("leads nowhere"), "{}", said(&refused));
    // A link takes the place of another one.
    fs::create_dir(rig.at("links")).unwrap();
    std::os::unix::fs::symlink("elsewhere", rig.at("links/file")).unwrap();
    assert_good(&rig.cp(&["-a", "links/.", "gfarm:///"]));
    assert_good(&rig.cp(&["-a", "gfarm:///", "back"]));
    assert_eq!(fs::read_link(rig.at("back/file")).unwrap().to_str(), Some("elsewhere"));
}

/// A killed writer leaves its temporary name, and Gfarm tells of it in each listing.
#[test]
fn what_a_killed_copy_has_left_is_no_part_of_a_tree() {
    let Some(rig) = Rig::up("leftover", 1) else { return };
    rig.gfarm.run("gfmkdir", &["/d"]).unwrap();
    let whole = rig.put("/d/a", 1000, 1);
    rig.put("/d/.big.abcdefghabcde.hikyaku", 500, 1);
    assert_good(&rig.cp(&["-r", "gfarm:///d", "back"]));
    let names: Vec<_> = fs::read_dir(rig.at("back")).unwrap().collect();
    assert!(names.len() == 1 && read(&rig.at("back/a")) == whole, "{names:?}");
}

#[test]
fn the_next_copy_removes_what_a_killed_one_has_left() {
    let Some(rig) = Rig::up("swept", 1) else { return };
    rig.gfarm.run("gfmkdir", &["/d"]).unwrap();
    // A hole would be there at once, whatever the limit is.
    fs::write(rig.at("big"), vec![7; 100_000_000]).unwrap();
    fs::write(rig.at("small"), "x").unwrap();
    let drafts = || {
        let listed = rig.gfarm.run("gfls", &["-a", "/d"]).unwrap();
        listed.split_whitespace().filter(|name| name.ends_with(".hikyaku")).count()
    };
    let begin = || {
        let mut copy = rig.command(&["-l", "8m", "big", "gfarm:///d/big"]).spawn().unwrap();
        while drafts() == 0 {
            assert!(copy.try_wait().unwrap().is_none(), "it ended without an unfinished file");
            thread::sleep(Duration::from_millis(20));
        }
        copy
    };
    let mut killed = begin();
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(drafts(), 1);
    assert_good(&rig.cp(&["small", "gfarm:///d/one"]));
    assert_eq!(drafts(), 0);
    // What somebody writes stays.
    let mut copy = begin();
    assert_good(&rig.cp(&["small", "gfarm:///d/two"]));
    assert_eq!(drafts(), 1);
    copy.kill().unwrap();
    copy.wait().unwrap();
}

/// gfmd lets a process have 1,024 files open by default.
#[test]
fn a_tree_of_more_files_and_directories_than_gfmd_lets_be_open_goes_and_comes() {
    let Some(rig) = Rig::up("many", 2) else { return };
    let tree = rig.at("many");
    for n in 0..1100 {
        let dir = tree.join(format!("d{n}"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("f"), n.to_string()).unwrap();
    }
    assert_good(&rig.cp(&["-r", "many", "gfarm:///"]));
    assert_good(&rig.cp(&["-r", "gfarm:///many", "back"]));
    let differ = Command::new("diff").args(["-r", "many", "back"]).current_dir(&rig.dir).output();
    assert_eq!(differ.unwrap().status.code(), Some(0));
}

#[test]
fn a_node_that_is_killed_on_the_way_is_made_up_for() {
    let Some(rig) = Rig::up("killed", 3) else { return };
    let mut files = Vec::new();
    for n in 0..4 {
        let name = format!("/f{n}");
        files.push((name.clone(), rig.put(&name, 60_000_000 + n, 3)));
    }
    let mut copy = rig.command(&["-r", "gfarm:///", "."]).spawn().unwrap();
    // The first bytes are there.
    let begun = || fs::read_dir(&rig.dir).unwrap().count() > 2;
    while !begun() && copy.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(2));
    }
    for pid in gfsd_of(&rig, 1) {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        // A process that ended by itself serves nobody.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    assert_good(&copy.wait_with_output().unwrap());
    for (name, bytes) in files {
        assert!(read(&rig.dir.join(&name[1..])) == bytes, "{name}");
    }
}

#[test]
fn a_paused_node_is_left_out_where_others_have_its_files() {
    let Some(rig) = Rig::up("paused", 2) else { return };
    let both = rig.put("/both", 3_000_000, 2);
    let paused = gfsd_of(&rig, 1);
    paused.iter().for_each(|pid| process::stop(pid.cast_unsigned()));
    let copied = rig.cp(&["gfarm:///both", "there"]);
    paused.iter().for_each(|pid| process::go_on(pid.cast_unsigned()));
    assert_good(&copied);
    assert!(read(&rig.at("there")) == both);
    let (text, address) = (said(&copied), format!("{}:", rig.gfarm.nodes()[1]));
    // gfmd may have noticed it by then.
    assert!(text.is_empty() || text.contains("no answer within 5 s"), "{text}");
    assert!(text.matches(&address).count() <= 1, "{text}");
}

/// A daemon on a node.
struct Daemon(Child);

impl Daemon {
    /// Serves the file system at the address of a node, to the keys in `keys`.
    fn start(rig: &Rig, node: usize, port: u16, keys: &Path) -> Self {
        Self::with(rig, node, port, keys, &[])
    }

    /// The same with further options.
    fn with(rig: &Rig, node: usize, port: u16, keys: &Path, options: &[&str]) -> Self {
        let address = rig.gfarm.nodes()[node].to_string();
        let mut child = Command::new(env!("CARGO_BIN_EXE_hikyaku"))
            .env("GFARM_CONFIG_FILE", rig.gfarm.config())
            .env("XDG_STATE_HOME", rig.at(&format!("state-of-{node}")))
            .args(["serve", "--listen", &format!("{address}:{port}"), "--gfarm", &address])
            .arg("--authorized-keys")
            .arg(keys)
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("serving gfarm://127.0.0.1:"), "{line:?}");
        Self(child)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn daemons_on_the_nodes_send_what_the_nodes_have() {
    let Some(rig) = Rig::up("daemons", 3) else { return };
    rig.gfarm.run("gfmkdir", &["/run7"]).unwrap();
    let files: Vec<(String, Vec<u8>)> = (0..12)
        .map(|n| {
            let name = format!("/run7/{n}");
            let bytes = rig.put(&name, [0, 900, 300_000, 6_000_000][n % 4] + n, 1 + n % 3);
            (name, bytes)
        })
        .collect();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let daemons = format!("--gfarm-daemons={port}");
    let arguments = ["-r", "-v", &daemons, "gfarm:///run7", "."];

    let nobody = rig.at("nobody");
    fs::write(&nobody, "").unwrap();
    let key = {
        let _daemon = Daemon::start(&rig, 0, port, &nobody);
        // A file that all nodes have.
        let refused = said(&rig.cp(&["-q", &daemons, "gfarm:///run7/2", "."]));
        let key = refused.split_whitespace().find(|word| word.starts_with("ed25519:"));
        key.unwrap_or_else(|| panic!("{refused}")).to_owned()
    };
    let keys = rig.at("keys");
    fs::write(&keys, key).unwrap();
    let _daemons = [0, 1].map(|node| Daemon::start(&rig, node, port, &keys));
    let copied = rig.cp(&arguments);
    assert_good(&copied);
    for (name, bytes) in &files {
        assert!(read(&rig.dir.join(&name[1..])) == *bytes, "{name}");
    }
    let said = said(&copied);
    let by_daemon = said.lines().filter(|line| line.ends_with(": a daemon")).count();
    let direct = said.lines().filter(|line| line.ends_with("Gfarm's own protocol")).count();
    assert_eq!((by_daemon, direct), (2, 1), "{said}");
}

#[test]
fn programs_write_through_a_mount_of_a_served_file_system() {
    let Some(rig) = Rig::up("mounted", 2) else { return };
    if !crate::mount::can_mount() {
        return;
    }
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let hikyaku = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.env("XDG_STATE_HOME", rig.at("state")).current_dir(&rig.dir).args(arguments);
        command.output().unwrap()
    };
    let told = String::from_utf8(hikyaku(&["keys", "new"]).stdout).unwrap();
    let key = told.split_whitespace().find(|word| word.starts_with("ed25519:"));
    fs::write(rig.at("keys"), key.unwrap()).unwrap();
    fs::create_dir(rig.at("mnt")).unwrap();
    let mut large = rig.put("/old", 2_000_000, 2);
    for options in [&["--writable"][..], &["--writable", "--leases"]] {
        let _daemon = Daemon::with(&rig, 0, port, &rig.at("keys"), options);
        let at = format!("hikyaku://{}:{port}/", rig.gfarm.nodes()[0]);
        assert_good(&hikyaku(&["mount", "-o", "rw", &at, "mnt"]));
        fs::write(rig.at("mnt/large"), &large).unwrap();
        let shell =
            "echo hello > mnt/b; echo tail >> mnt/b; touch mnt/c; mkdir mnt/d; mv mnt/b mnt/d/b";
        let ran = Command::new("sh").args(["-ec", shell]).current_dir(&rig.dir).output().unwrap();
        assert_good(&ran);
        let old = fs::File::options().write(true).open(rig.at("mnt/old")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&old, b"in place", 1_000_000).unwrap();
        drop(old);
        assert_good(&hikyaku(&["umount", "mnt"]));
        assert_eq!(rig.gfarm.run("gfexport", &["/d/b"]).unwrap(), "hello\ntail\n");
        assert_eq!(rig.gfarm.run("gfexport", &["/c"]).unwrap(), "");
        assert_good(&rig.cp(&["gfarm:///large", "gfarm:///old", "."]));
        assert!(read(&rig.at("large")) == large);
        large[1_000_000..1_000_008].copy_from_slice(b"in place");
        assert!(read(&rig.at("old")) == large);
        rig.gfarm.run("gfrm", &["-r", "/d", "/c", "/large"]).unwrap();
    }
}

#[test]
fn a_file_in_gfarm_is_read_back_and_is_written_in_place() {
    let Some(rig) = Rig::up("in-place", 1) else { return };
    let fill = |length: usize| {
        let mut rng = fastrand::Rng::with_seed(length as u64);
        let bytes: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(length).collect();
        fs::write(rig.at("f"), &bytes).unwrap();
        bytes
    };
    let stored = || {
        assert_good(&rig.cp(&["--fresh", "gfarm:///f", "back"]));
        let bytes = read(&rig.at("back"));
        fs::remove_file(rig.at("back")).unwrap();
        bytes
    };
    let inode = || {
        let listed = rig.gfarm.run("gfls", &["-i", "/f"]).unwrap();
        listed.split_whitespace().next().unwrap().to_owned()
    };
    // Small, of one segment, and of several; the second one is also shorter than the file that it replaces.
    for length in [300, 3_000_017, 700_000] {
        let bytes = fill(length);
        assert_good(&rig.cp(&["--verify", "f", "gfarm:///f"]));
        assert!(stored() == bytes, "{length}");
    }
    let first = inode();
    for length in [3_000_017, 500, 2_000_000] {
        let bytes = fill(length);
        assert_good(&rig.cp(&["--inplace", "--verify", "f", "gfarm:///f"]));
        assert!(stored() == bytes, "{length}");
        assert_eq!(inode(), first, "it is the same file");
    }
    fill(10);
    assert_good(&rig.cp(&["f", "gfarm:///f"]));
    assert_ne!(inode(), first, "without the option it is another one");
}

/// The processes of a node's gfsd: it has one for each connection.
fn gfsd_of(rig: &Rig, node: usize) -> Vec<i32> {
    let address = rig.gfarm.nodes()[node].to_string();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_of = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
        words[0].ends_with(b"gfsd") && words.contains(&address.as_bytes())
    };
    pids.filter(is_of).collect()
}

#[test]
fn a_tree_goes_to_the_nodes_and_comes_back() {
    let Some(rig) = Rig::up("up", 3) else { return };
    let tree = rig.at("run8");
    fs::create_dir_all(tree.join("deep")).unwrap();
    let mut rng = fastrand::Rng::with_seed(8);
    for n in 0..30 {
        let length = [0, 10, 200_000, 3_000_000][n % 4] + n;
        let bytes: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(length).collect();
        fs::write(tree.join(format!("deep/{n}")), bytes).unwrap();
    }
    std::os::unix::fs::symlink("deep/1", tree.join("link")).unwrap();
    assert_good(&rig.cp(&["-a", "run8", "gfarm:///"]));
    // Gfarm's own program sees what was written.
    let told = rig.gfarm.run("gfls", &["-l", "/run8/deep/3"]).unwrap();
    assert!(told.contains("3000003"), "{told}");
    let hosts: std::collections::BTreeSet<String> = (0..30)
        .map(|n| rig.gfarm.run("gfwhere", &[&format!("/run8/deep/{n}")]).unwrap())
        .map(|hosts| hosts.trim().to_owned())
        .collect();
    assert!(hosts.len() > 1, "all files are on one node: {hosts:?}");
    assert_good(&rig.cp(&["-a", "gfarm:///run8", "back"]));
    let differ = Command::new("diff").args(["-r", "run8", "back"]).current_dir(&rig.dir).output();
    assert!(differ.unwrap().stdout.is_empty());
    assert_eq!(fs::read_link(rig.at("back/link")).unwrap().to_str(), Some("deep/1"));
    // The same once more sends nothing, and a newer file is replaced.
    fs::write(tree.join("deep/0"), "newer").unwrap();
    let again = rig.cp(&["--json", "-a", "run8", "gfarm:///"]);
    assert_good(&again);
    assert_good(&rig.cp(&["gfarm:///run8/deep/0", "replaced"]));
    assert_eq!(read(&rig.at("replaced")), b"newer");
    let written = rig.gfarm.run("gfls", &["-a", "/run8/deep"]).unwrap();
    assert!(!written.contains(".hikyaku"), "{written}");
}

#[test]
fn what_cannot_be_read_is_told() {
    let Some(rig) = Rig::up("told", 1) else { return };
    rig.put("/a", 1000, 1);
    let told = |output: Output, code: i32, words: &[&str]| {
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    told(rig.cp(&["gfarm:///none", "."]), 6, &["gfarm:///none: no such file"]);
    fs::write(rig.at("new"), "x").unwrap();
    told(rig.cp(&["new", "gfarm:///none/b"]), 6, &["there is no directory 'none'"]);
    told(rig.cp(&["new", "gfarm:///a/b"]), 6, &["gfarm:///a/b: "]);
    told(rig.cp(&["none", "gfarm:///b"]), 6, &["none: no such file"]);
    told(rig.cp(&["gfarm:///none", "gfarm:///b"]), 6, &["gfarm:///none: no such file"]);
    // A copy within the file system passes through this machine.
    assert_good(&rig.cp(&["gfarm:///a", "gfarm:///b"]));
    fs::create_dir(rig.at("both")).unwrap();
    assert_good(&rig.cp(&["new", "gfarm:///b", "both"]));
    assert_eq!((read(&rig.at("both/b")).len(), read(&rig.at("both/new")).len()), (1000, 1));

    let key = rig.at("servers/shared_key");
    let good = fs::read(&key).unwrap();
    fs::write(&key, format!("7fffffff {}\n", "5a".repeat(32))).unwrap();
    // The servers read it anew as well: the client gets a file of its own.
    let wrong = rig.at("wrong_key");
    fs::rename(&key, &wrong).unwrap();
    fs::write(&key, good).unwrap();
    restrict(&key);
    restrict(&wrong);
    let config = fs::read_to_string(rig.gfarm.config()).unwrap();
    let own = format!("shared_key_file {}\n{config}", wrong.display());
    fs::write(rig.at("own.conf"), own).unwrap();
    let mut command = rig.command(&["gfarm:///a", "."]);
    command.env("GFARM_CONFIG_FILE", rig.at("own.conf"));
    told(command.output().unwrap(), 6, &["does not accept the shared key of", "try: "]);

    rig.gfarm.kill_gfmd().unwrap();
    told(rig.cp(&["gfarm:///a", "."]), 5, &["cannot connect (connection refused)"]);
}

fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn files_are_chosen_kept_and_limited_in_both_directions() {
    let Some(rig) = Rig::up("choice", 2) else { return };
    rig.gfarm.run("gfmkdir", &["/run", "/run/d"]).unwrap();
    let large = rig.put("/run/large", 4_000_000, 2);
    rig.put("/run/a.tmp", 10, 1);
    let small = rig.put("/run/d/small", 300, 1);
    fs::write(rig.at("list"), "d/small\n").unwrap();
    assert_good(&rig.cp(&["-r", "--exclude", "*.tmp", "gfarm:///run", "chosen"]));
    assert!(read(&rig.at("chosen/large")) == large && !rig.at("chosen/a.tmp").exists());
    assert_good(&rig.cp(&["--files-from", "list", "gfarm:///run", "listed"]));
    assert!(read(&rig.at("listed/d/small")) == small && !rig.at("listed/large").exists());
    let told = rig.cp(&["-n", "-r", "gfarm:///run", "told"]);
    assert_good(&told);
    assert!(String::from_utf8_lossy(&told.stdout).contains("told/large"), "{told:?}");
    assert!(!rig.at("told").exists());
    fs::write(rig.at("listed/d/small"), "mine").unwrap();
    for option in ["--ignore-existing", "-u"] {
        assert_good(&rig.cp(&["-r", option, "gfarm:///run/d", "listed"]));
        assert_eq!(read(&rig.at("listed/d/small")), b"mine", "{option}");
    }
    // A file from two nodes at 16 Mbit/s in all, and the same into the file system.
    for (source, target) in [("gfarm:///run/large", "slow"), ("slow", "gfarm:///slow")] {
        let begin = std::time::Instant::now();
        assert_good(&rig.cp(&["-l", "16m", source, target]));
        assert!(begin.elapsed() > Duration::from_secs(1), "{source}: {:?}", begin.elapsed());
    }
    assert!(read(&rig.at("slow")) == large);
    assert_good(&rig.cp(&["-r", "--exclude", "a*", "chosen", "gfarm:///up"]));
    assert_good(&rig.cp(&["-n", "-r", "chosen", "gfarm:///never"]));
    let never = rig.cp(&["-r", "gfarm:///never", "."]);
    assert_eq!(never.status.code(), Some(6), "{}", said(&never));
}
