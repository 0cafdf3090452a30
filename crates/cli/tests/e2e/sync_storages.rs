//! `hikyaku sync` between any two of this machine, hosts behind ssh and daemons. The resulting tree is the one that
//! rsync makes of equal trees on this machine, and the second run has nothing to do.

use crate::common::daemon::{Client, Daemon, said};
use crate::common::{Sshd, listing, random, wait_until};
use crate::sftp::trees::{Entry, state};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use xtask::servers::ftp::{PlainFtp, Style};

/// An end of a synchronization.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Here,
    Ssh,
    One,
    Two,
}

/// A client, two daemons that may be written to, and an sshd.
struct Rig {
    client: Client,
    daemons: [Daemon; 2],
    sshd: Sshd,
}

impl Rig {
    fn up(name: &str) -> Self {
        let sshd = Sshd::with_lines(name, "Subsystem sftp internal-sftp\n");
        let client = Client::new(&format!("{name}-ends"));
        let keys = client.authorized("keys", "");
        let serve = |name: &str| {
            fs::create_dir(client.at(name)).unwrap();
            let own = client.at(&format!("{name}.key")).display().to_string();
            let options = ["--writable", "--key", &own];
            Daemon::start_with(&client, &client.at(name), &keys, &options)
        };
        let daemons = [serve("one"), serve("two")];
        Self { client, daemons, sshd }
    }

    /// Where the files of an end are.
    fn at(&self, kind: Kind, path: &str) -> PathBuf {
        match kind {
            Kind::Here => self.client.at("here").join(path),
            Kind::Ssh => self.client.at("ssh").join(path),
            Kind::One => self.client.at("one").join(path),
            Kind::Two => self.client.at("two").join(path),
        }
    }

    /// A path of an end as it is typed.
    fn typed(&self, kind: Kind, path: &str) -> String {
        let [one, two] = &self.daemons;
        match kind {
            Kind::Here => self.at(kind, path).display().to_string(),
            Kind::Ssh => format!("far:{}", self.at(kind, path).display()),
            Kind::One => format!("hikyaku://{}/{path}", one.address),
            Kind::Two => format!("hikyaku://{}/{path}", two.address),
        }
    }

    fn sync(&self, options: &[&str], ends: [&str; 2]) -> Output {
        let mut command = self.client.command(&["sync"]);
        command.args(options);
        if ends.iter().any(|end| end.starts_with("far:")) {
            let rsh = format!("ssh -F {}", self.sshd.at("ssh_config").display());
            command.args(["-e", &rsh, "--remote-path", env!("CARGO_BIN_EXE_hikyaku")]);
        }
        let config = self.client.at("config");
        command.args(ends).env("XDG_CONFIG_HOME", config).current_dir(self.client.at(""));
        command.output().unwrap()
    }

    /// The lines of a run that succeeds.
    #[track_caller]
    fn lines(&self, options: &[&str], ends: [&str; 2]) -> String {
        let output = self.sync(options, ends);
        assert_eq!(output.status.code(), Some(0), "{ends:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn fails(&self, options: &[&str], ends: [&str; 2], (code, words): (i32, &[&str])) {
        let output = self.sync(options, ends);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{ends:?}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{ends:?}: {text}");
    }
}

fn write(path: &Path, content: &[u8], secs: i64, mode: u32) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set_time(path, secs);
}

/// Whole seconds are all that the session with a host behind ssh has.
fn set_time(path: &Path, secs: i64) {
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ };
    let time = Timespec { tv_sec: secs, tv_nsec: 0 };
    let times = Timestamps { last_access: omit, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Gives links and directories times that are long ago.
fn settle(root: &Path, secs: i64) {
    for (name, mode, ..) in state(root) {
        if mode & 0o170_000 != 0o100_000 {
            set_time(&root.join(name), secs);
        }
    }
}

/// A tree with files of many kinds.
fn fill(root: &Path) {
    for dir in ["deep/er", "empty", "late", "was file"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for (number, name) in ["a", "deep/b", "deep/er/c d", "late/x", "was file/y"].iter().enumerate()
    {
        let (secs, mode) = (1_000_000_000 + number as i64, [0o644, 0o600, 0o755][number % 3]);
        write(&root.join(name), &vec![number as u8; 100 * number], secs, mode);
    }
    write(&root.join("large"), &random(7, 3_000_000), 1_100_000_000, 0o640);
    for number in 0..60 {
        write(&root.join(format!("late/{number}")), b"some", 1_200_000_000 + number, 0o644);
    }
    symlink("deep/er/c d", root.join("link")).unwrap();
    symlink("nowhere", root.join("deep/dangling")).unwrap();
    settle(root, 1_400_000_000);
}

/// Changes of every kind.
fn change(root: &Path) {
    write(&root.join("a"), b"longer than before", 1_300_000_000, 0o644);
    write(&root.join("deep/b"), &[9; 100], 1_300_000_001, 0o640);
    fs::set_permissions(root.join("deep/er/c d"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_dir_all(root.join("late")).unwrap();
    fs::remove_dir_all(root.join("was file")).unwrap();
    write(&root.join("was file"), b"a file", 1_300_000_002, 0o644);
    fs::remove_file(root.join("link")).unwrap();
    symlink("a", root.join("link")).unwrap();
    fs::create_dir(root.join("new")).unwrap();
    write(&root.join("new/z"), b"new", 1_300_000_003, 0o644);
    fs::remove_dir(root.join("empty")).unwrap();
    settle(root, 1_400_000_100);
}

/// The lines of a run without those of deletions, which each program prints in an order of its own.
fn kept(said: &str) -> BTreeSet<&str> {
    said.lines().filter(|line| !line.starts_with("*deleting")).collect()
}

#[test]
fn trees_become_alike_between_any_two_ends_as_by_rsync() {
    let rig = Rig::up("sync-storages");
    let pairs = [
        (Kind::Here, Kind::One),
        (Kind::One, Kind::Here),
        (Kind::One, Kind::Two),
        (Kind::Two, Kind::Two),
        (Kind::Ssh, Kind::One),
        (Kind::One, Kind::Ssh),
        (Kind::Ssh, Kind::Ssh),
    ];
    for (number, (from, to)) in pairs.into_iter().enumerate() {
        let (source, target) = (format!("from{number}"), format!("to{number}"));
        let (source_dir, target_dir) = (rig.at(from, &source), rig.at(to, &target));
        fs::create_dir_all(rig.at(to, "")).unwrap();
        fill(&source_dir);
        let ends = [rig.typed(from, &format!("{source}/")), rig.typed(to, &target)];
        let ends = [&*ends[0], &*ends[1]];
        let told = rig.lines(&["-ain", "--delete"], ends);
        assert!(!target_dir.exists(), "{from:?} {to:?}");
        assert_eq!(rig.lines(&["-ai", "--delete"], ends), told, "{from:?} {to:?}");
        assert_eq!(state(&source_dir), state(&target_dir), "{from:?} {to:?}");
        assert_eq!(rig.lines(&["-ai", "--delete"], ends), "", "{from:?} {to:?}");
        change(&source_dir);
        fs::create_dir(target_dir.join("extra")).unwrap();
        fs::write(target_dir.join("extra/of target"), "x").unwrap();
        let by_rsync = rsynced(&source_dir, &target_dir, &rig.client.at("rsync"));
        let told = rig.lines(&["-ain", "--delete"], ends);
        assert_eq!(rig.lines(&["-ai", "--delete"], ends), told, "{from:?} {to:?}");
        assert_eq!(state(&source_dir), state(&target_dir), "{from:?} {to:?}");
        assert_eq!(rig.lines(&["-ai", "--delete"], ends), "", "{from:?} {to:?}");
        if let Some((lines, tree)) = by_rsync {
            let lines = if to == Kind::Here { lines } else { lines.replace(">f", "<f") };
            assert_eq!(kept(&told), kept(&lines), "{from:?} {to:?}");
            assert_eq!(state(&target_dir), tree, "{from:?} {to:?}");
        }
    }
}

/// The lines that rsync prints for a copy of the target, and the tree that it makes of this copy. `None` if this
/// machine has no rsync.
fn rsynced(source: &Path, target: &Path, copy: &Path) -> Option<(String, Vec<Entry>)> {
    if !crate::sftp::beside_rsync::has_rsync() {
        return None;
    }
    let _ = fs::remove_dir_all(copy);
    let done = Command::new("cp").arg("-a").args([target, copy]).status().unwrap();
    assert!(done.success());
    let mut rsync = Command::new("rsync");
    rsync.args(["-rlpti", "--delete"]).arg(format!("{}/", source.display())).arg(copy);
    let output = rsync.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    Some((lines, state(copy)))
}

#[test]
fn names_of_a_daemon_are_kept_removed_and_renamed_as_elsewhere() {
    let rig = Rig::up("sync-storages-names");
    fs::create_dir_all(rig.at(Kind::Here, "from")).unwrap();
    write(&rig.at(Kind::Here, "from/a"), b"new", 1_300_000_000, 0o644);
    fs::create_dir(rig.at(Kind::One, "to")).unwrap();
    for name in ["a", "b", "c"] {
        write(&rig.at(Kind::One, &format!("to/{name}")), b"old one", 1_200_000_000, 0o644);
    }
    let from = rig.typed(Kind::Here, "from/");
    let to = rig.typed(Kind::One, "to");
    let names = |kind, dir: &str| {
        let all = listing(&rig.at(kind, dir)).into_iter();
        all.map(|(name, _)| name.display().to_string()).collect::<Vec<_>>().join(" ")
    };
    rig.fails(&["-a", "--delete", "--max-delete", "1"], [&from, &to], (25, &["2 names"]));
    assert_eq!(names(Kind::One, "to"), "a b c");
    write(&rig.at(Kind::One, "to/a"), b"old one", 1_200_000_000, 0o644);
    rig.lines(&["-ab", "--delete"], [&from, &to]);
    assert_eq!(names(Kind::One, "to"), "a a~ b~ c~");
    assert_eq!(fs::read(rig.at(Kind::One, "to/a~")).unwrap(), b"old one");
    // One file under another name, into a directory, and back.
    let file = rig.typed(Kind::One, "to/a");
    assert_eq!(rig.lines(&["-ai"], [&file, &rig.typed(Kind::Two, "other")]), "<f+++++++++ a\n");
    assert_eq!(rig.lines(&["-ai"], [&file, &rig.typed(Kind::Two, "other")]), "");
    let removed = ["-ai", "--remove-source-files"];
    let target = rig.typed(Kind::Here, "");
    assert_eq!(
        rig.lines(&removed, [&rig.typed(Kind::Two, "other"), &target]),
        ">f+++++++++ other\n"
    );
    assert!(!rig.at(Kind::Two, "other").exists());
    assert_eq!(fs::read(rig.at(Kind::Here, "other")).unwrap(), b"new");
    // A file of the source is not removed by a copy onto itself.
    let same = "SRC and DST are one directory";
    rig.fails(&removed, [&rig.typed(Kind::One, "to/"), &to], (1, &[same]));
}

#[test]
fn what_a_daemon_cannot_do_is_refused_before_anything_is_written() {
    let rig = Rig::up("sync-storages-refused");
    fs::create_dir_all(rig.at(Kind::One, "a/b")).unwrap();
    fs::write(rig.at(Kind::One, "a/b/x"), "x").unwrap();
    let (inner, outer) = (rig.typed(Kind::One, "a/b/"), rig.typed(Kind::One, "a"));
    let (code, words) = (6, &["the source is in the target", "try: --exclude '/b'"][..]);
    rig.fails(&["-a", "--delete"], [&inner, &outer], (code, words));
    assert!(rig.at(Kind::One, "a/b/x").exists());
    let here = rig.client.at("new").display().to_string();
    let none = rig.typed(Kind::One, "none");
    rig.fails(&["-a"], [&none, &here], (6, &["none: no such file or directory"]));
    rig.fails(&["-a"], [&outer, &rig.typed(Kind::Two, "no/such")], (6, &["no/such", "try: make"]));
    let [one, two] = &rig.daemons;
    let both = format!("hikyaku://{},{}/a", one.address, two.address);
    rig.fails(&["-a"], [&here, &both], (1, &["changes one server", "try: "]));
    let removed = ["-a", "--remove-source-files"];
    rig.fails(&removed, [&both, &here], (1, &["several servers", "try: "]));
    let into_one = (1, &["one of those that are the source"][..]);
    rig.fails(&["-a", "--delete"], [&both, &outer], into_one);
    let gone = format!("hikyaku://{},127.0.0.1:1/a", one.address);
    rig.fails(&["-a", "--delete"], [&gone, &here], (5, &["not all servers can be used"]));
    let not_by_ssh = (1, &["a daemon is reached by UDP or TCP", "try: --via"][..]);
    rig.fails(&["-a", "--via", "ssh"], [&outer, &here], not_by_ssh);
    assert!(!rig.client.at("new").exists());
}

#[test]
fn the_carrier_and_the_family_of_connections_to_a_daemon_are_chosen() {
    let rig = Rig::up("sync-storages-via");
    let from = rig.at(Kind::Here, "from");
    fs::create_dir_all(&from).unwrap();
    write(&from.join("a"), b"content", 1_300_000_000, 0o644);
    let ends = [&*rig.typed(Kind::Here, "from/"), &*rig.typed(Kind::One, "to")];
    let output = rig.sync(&["-a", "-6"], ends);
    assert!(!output.status.success() && !rig.at(Kind::One, "to").exists(), "{}", said(&output));
    for (options, is_told) in
        [(&["--via", "tcp", "--connections", "2", "-4"][..], true), (&["--via", "udp"], false)]
    {
        fs::write(from.join("a"), options.concat()).unwrap();
        let output = rig.sync(&[&["-a"], options].concat(), ends);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert_eq!(text.contains("is reached over TCP"), is_told, "{text}");
        assert_eq!(fs::read(rig.at(Kind::One, "to/a")).unwrap(), options.concat().as_bytes());
    }
}

#[test]
fn contents_are_compared_where_sizes_and_times_are_equal() {
    let rig = Rig::up("sync-storages-contents");
    let server = PlainFtp::start(&rig.client.at("served"), Style::Facts).unwrap();
    let pairs = [
        (Kind::Here, Kind::One),
        (Kind::One, Kind::Two),
        (Kind::Ssh, Kind::Here),
        (Kind::Ssh, Kind::One),
    ];
    let typed = pairs.map(|(from, to)| {
        let dirs = [rig.at(from, "from"), rig.at(to, "to")];
        (dirs, [rig.typed(from, "from/"), rig.typed(to, "to")])
    });
    let ftp = format!("{}/from/", server.url());
    let dirs = [rig.client.at("served/from"), rig.at(Kind::Here, "of ftp")];
    let ftp = (dirs, [ftp, rig.typed(Kind::Here, "of ftp")]);
    for ([from, to], [source, target]) in typed.into_iter().chain([ftp]) {
        for (dir, other) in [(&from, b"b"), (&to, b"c")] {
            fs::create_dir_all(dir.join("d")).unwrap();
            write(&dir.join("d/same"), &[b'a'; 3_000_000], 1_300_000_000, 0o644);
            write(&dir.join("d/other"), &other.repeat(3_000_000), 1_300_000_000, 0o644);
            write(&dir.join("empty"), b"", 1_300_000_000, 0o644);
        }
        let ends = [&*source, &*target];
        let files = |said: &str| -> String {
            said.lines().filter(|line| line.as_bytes()[1] == b'f').collect::<Vec<_>>().join(" ")
        };
        assert_eq!(files(&rig.lines(&["-rti"], ends)), "", "{ends:?}");
        let told = files(&rig.lines(&["-rtic"], ends));
        assert!(
            told.ends_with("fc........ d/other") && told.matches(' ').count() == 1,
            "{ends:?}: {told}"
        );
        assert!(fs::read(to.join("d/other")).unwrap() == vec![b'b'; 3_000_000], "{ends:?}");
        assert_eq!(files(&rig.lines(&["-rtic"], ends)), "", "{ends:?}");
    }
}

#[test]
fn parts_of_a_tree_on_two_daemons_are_one_source() {
    let rig = Rig::up("sync-storages-parts");
    let [one, two] = [Kind::One, Kind::Two].map(|kind| rig.at(kind, "from"));
    for dir in [&one, &two] {
        fs::create_dir_all(dir.join("deep")).unwrap();
        write(&dir.join("on both"), b"the same", 1_300_000_000, 0o644);
    }
    write(&one.join("deep/one"), b"of one", 1_300_000_000, 0o644);
    write(&two.join("deep/two"), &random(3, 2_000_000), 1_300_000_000, 0o600);
    symlink("one", one.join("deep/link")).unwrap();
    let [first, second] = &rig.daemons;
    let both = format!("hikyaku://{},{}/from/", first.address, second.address);
    let to = rig.at(Kind::Here, "to");
    fs::create_dir_all(to.join("deep")).unwrap();
    fs::write(to.join("deep/extra"), "x").unwrap();
    let target = rig.typed(Kind::Here, "to");
    let names = |said: &str| -> Vec<String> {
        let files = said.lines().filter(|line| !line.starts_with(".d"));
        files.map(|line| line.split_once(' ').unwrap().1.trim().to_owned()).collect()
    };
    let told = rig.lines(&["-rltpi", "--delete"], [&both, &target]);
    let wanted = ["on both", "deep/link -> one", "deep/one", "deep/two", "deep/extra"];
    assert_eq!(names(&told), wanted, "{told}");
    assert_eq!(fs::read(to.join("deep/two")).unwrap(), random(3, 2_000_000));
    assert_eq!(names(&rig.lines(&["-rltpic", "--delete"], [&both, &target])), [""; 0]);
    // A name on which the two do not agree stays as it is, and nothing is deleted beside it.
    write(&two.join("deep/one"), b"another", 1_300_000_000, 0o644);
    fs::write(to.join("deep/extra"), "x").unwrap();
    rig.fails(&["-a", "--delete"], [&both, &target], (23, &["deep", "different files"]));
    assert!(to.join("deep/extra").exists() && fs::read(to.join("deep/one")).unwrap() == b"of one");
}

#[test]
fn trees_become_alike_with_a_server_of_ftp() {
    let rig = Rig::up("sync-storages-ftp");
    let server = PlainFtp::start(&rig.client.at("served"), Style::Facts).unwrap();
    let from = rig.at(Kind::Here, "from");
    fill(&from);
    fs::remove_file(from.join("link")).unwrap();
    fs::remove_file(from.join("deep/dangling")).unwrap();
    settle(&from, 1_400_000_000);
    let typed = rig.typed(Kind::Here, "from/");
    let url = format!("{}/copy", server.url());
    let back = rig.typed(Kind::One, "back");
    for (source, target, made) in [
        (&typed, &url, rig.client.at("served/copy")),
        (&format!("{url}/"), &back, rig.at(Kind::One, "back")),
    ] {
        assert!(!rig.lines(&["-rti"], [source, target]).is_empty());
        assert!(listing(&made) == listing(&from), "{target}");
        // Directories of the server have no times of their own that could be set.
        let again = rig.lines(&["-rti"], [source, target]);
        assert!(again.lines().all(|line| line.starts_with(".d")), "{target}: {again}");
    }
    // Names that the source has lost are deleted on the server, and changed files are copied.
    fs::remove_dir_all(from.join("late")).unwrap();
    write(&from.join("a"), b"longer than before", 1_300_000_000, 0o644);
    let told = rig.lines(&["-rti", "--delete"], [&typed, &url]);
    assert!(told.contains("*deleting   late/x") && told.contains("<f.st...... a"), "{told}");
    assert!(listing(&rig.client.at("served/copy")) == listing(&from));
}

#[test]
fn an_interrupted_run_is_continued_and_sends_no_whole_file_twice() {
    let rig = Rig::up("sync-storages-killed");
    let from = rig.at(Kind::Here, "from");
    fs::create_dir_all(&from).unwrap();
    for number in 0..20 {
        let bytes = random(number, 1 << 20);
        write(&from.join(number.to_string()), &bytes, 1_000_000_000, 0o644);
    }
    let made = rig.at(Kind::One, "to");
    let ends = [rig.typed(Kind::Here, "from/"), rig.typed(Kind::One, "to")];
    let mut command = rig.client.command(&["sync", "-a", "--rate", "16m", &ends[0], &ends[1]]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let complete = || -> Vec<_> {
        let all = fs::read_dir(&made).into_iter().flatten().flatten();
        let all = all.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
        all.map(|entry| (entry.file_name(), entry.metadata().unwrap().ino())).collect()
    };
    wait_until("some complete files", || complete().len() > 4);
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = complete();
    assert!(kept.len() < 20, "the run was over before it was killed");
    let told = rig.lines(&["-ai"], [&ends[0], &ends[1]]);
    let sent = told.lines().filter(|line| line.starts_with("<f")).count();
    assert!(sent <= 20 - kept.len(), "{} were complete: {told}", kept.len());
    for number in 0..20 {
        let read = |dir: &Path| fs::read(dir.join(number.to_string())).unwrap();
        assert!(read(&made) == read(&from), "{number}");
    }
    let after = complete();
    assert!(kept.iter().all(|file| after.contains(file)), "a complete file was replaced");
}
