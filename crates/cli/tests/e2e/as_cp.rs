//! What `hikyaku cp` does with daemons as cp does here: contents of directories, links, what is in the way, and `-u`.

use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon, said};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, SystemTime};

/// A daemon that may be written to, and its root.
struct Rig {
    client: Client,
    daemon: Daemon,
    root: PathBuf,
}

impl Rig {
    fn new(name: &str) -> Self {
        let client = Client::new(name);
        let (keys, root) = (client.authorized("keys", ""), client.at("root"));
        fs::create_dir_all(&root).unwrap();
        let daemon = Daemon::start_with(&client, &root, &keys, &["--writable"]);
        Self { client, daemon, root }
    }

    fn far(&self, path: &str) -> String {
        format!("hikyaku://{}/{path}", self.daemon.address)
    }

    fn here(&self, path: &str) -> String {
        self.client.at(path).display().to_string()
    }

    fn cp(&self, arguments: &[&str]) -> Output {
        self.client.run(&[&["cp", "-q"], arguments].concat())
    }

    /// Runs a copy that succeeds.
    fn done(&self, arguments: &[&str]) {
        let output = self.cp(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    }

    /// Runs a copy that fails with this code and one line that has these words.
    fn refused(&self, arguments: &[&str], words: &str) {
        let (output, line) = (self.cp(arguments), arguments.join(" "));
        assert_eq!(output.status.code(), Some(6), "{line}: {}", said(&output));
        let lines = String::from_utf8_lossy(&output.stderr).into_owned();
        let errors = lines.lines().filter(|line| !line.starts_with("try: ")).count();
        assert!(errors == 1 && lines.contains(words), "{line}: {lines}");
    }
}

#[test]
fn the_contents_of_a_directory_of_a_daemon_go_into_the_target() {
    let rig = Rig::new("as-cp-contents");
    fs::create_dir_all(rig.root.join("run7/d")).unwrap();
    fs::write(rig.root.join("run7/a"), "a").unwrap();
    fs::write(rig.root.join("run7/d/b"), "b").unwrap();
    fs::create_dir(rig.client.at("there")).unwrap();
    let read = |path: &str| fs::read_to_string(rig.client.at(path)).ok();
    for target in ["there", "new", "there/newer"] {
        rig.done(&["-r", &rig.far("run7/."), &rig.here(target)]);
        for (name, text) in [("a", "a"), ("d/b", "b")] {
            assert_eq!(read(&format!("{target}/{name}")).as_deref(), Some(text), "{target}/{name}");
        }
    }
    // Beside another source.
    rig.done(&["-r", &rig.far("run7/."), &rig.far("run7/d"), &rig.here("there")]);
    rig.refused(&[&rig.far("run7/."), &rig.here("there")], "-r was not given");
    rig.refused(&["-r", &rig.far("run7/a/."), &rig.here("there")], "not a directory");
    let two = ["-r", &rig.far("run7/."), &rig.far("run7/d"), &rig.here("nothing")];
    rig.refused(&two, "no such directory");
    // The way there means the directory.
    rig.done(&[&rig.here("there/a"), &rig.far("run7/d/.")]);
    assert_eq!(fs::read_to_string(rig.root.join("run7/d/a")).unwrap(), "a");
}

#[test]
fn links_that_say_something_else_are_replaced_on_both_ways() {
    let rig = Rig::new("as-cp-links");
    let (here, far) = (rig.client.at("run7"), rig.root.join("run7"));
    for [from, to] in [[&here, &far], [&far, &here]] {
        for dir in [from, to] {
            let _ = fs::remove_dir_all(dir);
            fs::create_dir(dir).unwrap();
        }
        symlink("new", from.join("link")).unwrap();
        symlink("old", to.join("link")).unwrap();
        symlink("file", from.join("file")).unwrap();
        fs::write(to.join("file"), "a file").unwrap();
        symlink("dir", from.join("dir")).unwrap();
        fs::create_dir(to.join("dir")).unwrap();
        let (source, target) = match from == &here {
            true => (rig.here("run7/."), rig.far("run7")),
            false => (rig.far("run7/."), rig.here("run7")),
        };
        rig.refused(&["-a", &source, &target], "dir: is a directory");
        let text = |name: &str| fs::read_link(to.join(name)).ok();
        assert_eq!(text("link"), Some("new".into()), "{}", to.display());
        assert_eq!(text("file"), Some("file".into()), "{}", to.display());
        assert!(to.join("dir").is_dir());
    }
}

#[test]
fn what_is_in_the_way_of_a_directory_is_told_once_on_both_ways() {
    let rig = Rig::new("as-cp-way");
    let (here, far) = (rig.client.at("run7"), rig.root.join("run7"));
    for (from, to, source, target) in [
        (&here, &far, rig.here("run7"), rig.far("")),
        (&far, &here, rig.far("run7"), rig.here(".")),
    ] {
        for dir in [from, to] {
            let _ = fs::remove_dir_all(dir);
        }
        fs::create_dir_all(from.join("d/deep")).unwrap();
        for name in ["a", "d/b", "d/c", "d/deep/e"] {
            fs::write(from.join(name), "new").unwrap();
        }
        symlink("b", from.join("d/link")).unwrap();
        fs::create_dir(to).unwrap();
        fs::write(to.join("d"), "a file").unwrap();
        for options in [&["-r", "-n"][..], &["-r"]] {
            rig.refused(&[options, &[&source, &target]].concat(), "run7/d: not a directory");
            assert_eq!(fs::read_to_string(to.join("d")).unwrap(), "a file");
            assert_eq!(to.join("a").exists(), options.len() == 1, "{source} {options:?}");
        }
    }
}

#[test]
fn a_link_that_is_named_is_followed() {
    let rig = Rig::new("as-cp-named");
    let far = |path: &str| rig.root.join(path);
    fs::create_dir_all(far("d/e")).unwrap();
    fs::write(far("d/f"), "text").unwrap();
    symlink("d/f", far("file")).unwrap();
    symlink("d", far("dir")).unwrap();
    symlink("../file", far("d/back")).unwrap();
    symlink("nowhere", far("dangling")).unwrap();
    symlink("/etc", far("out")).unwrap();
    let into = rig.client.at("into");
    fs::create_dir(&into).unwrap();
    // The copy has the name of the link, and what is behind one on the way its own.
    for (source, made) in [("file", "file"), ("dir/f", "f"), ("dir/back", "back")] {
        rig.done(&[&rig.far(source), &rig.here("into")]);
        let path = into.join(made);
        assert!(!path.is_symlink(), "{source}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "text", "{source}");
        rig.done(&[&rig.far(source), &rig.here(&format!("named-{made}"))]);
        let named = fs::read_to_string(rig.client.at(&format!("named-{made}")));
        assert_eq!(named.unwrap(), "text", "{source}");
    }
    rig.done(&["-r", &rig.far("dir"), &rig.here("into")]);
    assert!(into.join("dir/e").is_dir() && !into.join("dir/back").is_symlink());
    assert_eq!(fs::read_to_string(into.join("dir/back")).unwrap(), "text");
    rig.done(&["-a", &rig.far("file"), &rig.here("kept")]);
    assert_eq!(fs::read_link(rig.client.at("kept")).unwrap(), PathBuf::from("d/f"));
    rig.refused(&[&rig.far("dir"), &rig.here("into")], "-r was not given");
    rig.refused(&[&rig.far("dangling"), &rig.here("into")], "no such file");
    rig.refused(&[&rig.far("out/passwd"), &rig.here("into")], "leads out");
    // The other way.
    fs::write(rig.client.at("new"), "other").unwrap();
    rig.done(&[&rig.here("new"), &rig.far("file")]);
    assert!(far("file").is_symlink());
    assert_eq!(fs::read_to_string(far("d/f")).unwrap(), "other");
    rig.done(&[&rig.here("new"), &rig.far("dir")]);
    rig.done(&[&rig.here("new"), &rig.far("dir/newer")]);
    assert!(far("dir").is_symlink() && far("d/new").is_file() && far("d/newer").is_file());
    rig.refused(&[&rig.here("new"), &rig.far("dangling")], "leads nowhere");
    assert!(!far("nowhere").exists() && far("dangling").is_symlink());
    rig.refused(&[&rig.here("new"), &rig.far("out/x")], "leads out");
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_contacted() {
    let rig = Rig::new("as-cp-refused");
    fs::write(rig.client.at("a"), "a").unwrap();
    let (a, far) = (rig.here("a"), rig.far("b"));
    // This ssh would say more.
    let ssh = ["-S", "/bin/false"];
    for (arguments, words) in [
        (&["--exclude", "[", &a, "host:b"][..], "'[' is not a pattern"),
        (&["--exclude", "x", "--include", "{a", "host:a", &rig.here("b")], "'{a' is not a pattern"),
        (&["--exclude", "[", &a, &far], "'[' is not a pattern"),
        (&["--exclude", "[", &a, &rig.here("b")], "'[' is not a pattern"),
        (&["--json", &a, "-"], "JSON is not possible where the data go to standard output"),
        (&["--json-lines", "host:a", "/dev/fd/1"], "JSON is not possible where"),
        (&["--json", &far, "/dev/stdout"], "JSON is not possible where"),
    ] {
        let output = rig.client.run(&[&["cp"], &ssh[..], arguments].concat());
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.contains(words) && told.contains("\ntry: "), "{arguments:?}: {told}");
    }
    assert!(!rig.root.join("b").exists() && !rig.client.at("b").exists());
}

#[test]
fn u_copies_only_what_is_newer_on_all_ways() {
    let rig = Rig::new("as-cp-update");
    let sshd = Sshd::with_lines("as-cp-update-ssh", "Subsystem sftp internal-sftp\n");
    let dirs = [rig.client.at("source"), rig.root.join("copy"), rig.client.at("copy")];
    let at = |nanos: u64| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
    let put = |path: &PathBuf, text: &str, time: SystemTime| {
        let _ = fs::create_dir(path.parent().unwrap());
        fs::write(path, text).unwrap();
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_times(fs::FileTimes::new().set_modified(time)).unwrap();
    };
    let second = 1_000_000_000_u64;
    let base = 1_700_000_000 * second;
    let source = dirs[0].join("a");
    let far_source = rig.root.join("a");
    let ssh = |path: &PathBuf| format!("far:{}", path.display());
    // How much younger the source is, and whether it is copied where nanoseconds are held.
    for (younger, is_copied) in [(0_i64, false), (1, true), (1_000_000_000, true), (-1, false)] {
        let there = at(base + second / 2);
        let time = at((base + second / 2).saturating_add_signed(younger));
        let ways = [
            ("up", rig.here("source/a"), rig.far("copy/a"), &dirs[1]),
            ("down", rig.far("a"), rig.here("copy/a"), &dirs[2]),
            ("ssh", rig.here("source/a"), ssh(&dirs[2].join("a")), &dirs[2]),
            ("here", rig.here("source/a"), rig.here("copy/a"), &dirs[2]),
        ];
        for (way, from, to, dir) in ways {
            put(&source, "of the source", time);
            put(&far_source, "of the source", time);
            put(&dir.join("a"), "mine", there);
            let output = match way {
                "ssh" => sshd.cp(&["-u", &from, &to]).output().unwrap(),
                _ => rig.cp(&["-u", &from, &to]),
            };
            assert!(output.status.success(), "{way} {younger}: {}", said(&output));
            let text = fs::read_to_string(dir.join("a")).unwrap();
            assert_eq!(text == "of the source", is_copied, "{way} {younger}");
        }
        // SFTP holds whole seconds.
        put(&source, "of the source", time);
        put(&dirs[2].join("a"), "mine", at(base));
        let to = ssh(&dirs[2].join("a"));
        let output = sshd.cp(&["--via", "sftp", "-q", "-u", &rig.here("source/a"), &to]).output();
        assert!(output.unwrap().status.success());
        let text = fs::read_to_string(dirs[2].join("a")).unwrap();
        assert_eq!(text == "of the source", younger == 1_000_000_000, "sftp {younger}");
    }
}
