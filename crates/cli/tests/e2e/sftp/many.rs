//! Lists of more paths than a message holds, to and from a far side with hikyaku.

use super::trees::Scratch;
use crate::common::{Sshd, partials};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Paths of this tree have 1.2 MB, and a message has at most 1 MiB.
const DIRS: usize = 12;
const FILES: usize = 500;

fn tree(scratch: &Scratch) -> Vec<u8> {
    let (long, mut list) = ("n".repeat(180), Vec::new());
    for dir in 0..DIRS {
        fs::create_dir_all(scratch.at(&format!("a/dir{dir}"))).unwrap();
        for file in 0..FILES {
            let name = format!("dir{dir}/{long}{file}");
            fs::write(scratch.at(&format!("a/{name}")), []).unwrap();
            list.extend(format!("{name}\0").bytes());
        }
    }
    list
}

fn files(scratch: &Scratch, root: &str) -> usize {
    let dirs = fs::read_dir(scratch.at(root)).unwrap();
    dirs.map(|dir| fs::read_dir(dir.unwrap().path()).unwrap().count()).sum()
}

#[test]
fn more_names_than_a_message_holds_are_copied_both_ways() {
    let sshd = Sshd::with_lines("sync-many", "Subsystem sftp internal-sftp\n");
    let scratch = Scratch::new("many");
    let list = tree(&scratch);
    assert!(list.len() > 1 << 20);
    fs::write(scratch.at("list"), list).unwrap();
    let far = |name: &str| format!("far:{}", scratch.at(name).display());
    let rsh = format!("ssh -F {}", sshd.at("ssh_config").display());
    let program = env!("CARGO_BIN_EXE_hikyaku");
    for (ends, root) in
        [(["a/".to_owned(), far("up")], "up"), ([far("a/"), "down".to_owned()], "down")]
    {
        let words = ["-a", "-e", &rsh, "--remote-path", program, &ends[0], &ends[1]];
        let (code, _, error) = scratch.sync(&words);
        assert_eq!((code, files(&scratch, root)), (0, DIRS * FILES), "{root}: {error}");
        let said = scratch.sync(&[&["-i"], &words[..]].concat());
        assert_eq!((said.0, &said.1[..]), (0, ""), "{root}: {}", said.2);
    }
    let list = scratch.at("list").display().to_string();
    for (ends, root) in
        [([far("a"), "got".to_owned()], "got"), (["a".to_owned(), far("put")], "put")]
    {
        let mut cp = sshd.cp(&["-0", "--files-from", &list, &ends[0], &ends[1]]);
        let (code, _, error) = scratch.run(&mut cp);
        assert_eq!((code, files(&scratch, root)), (0, DIRS * FILES), "{root}: {error}");
    }
}

#[test]
fn more_sources_than_a_message_holds_are_fetched() {
    let sshd = Sshd::start("cp-many");
    let scratch = Scratch::new("many-sources");
    let (mut words, long) = (Vec::new(), "s".repeat(240));
    fs::create_dir_all(scratch.at("a/x")).unwrap();
    for number in 0..4000 {
        let name = format!("a/x/{long}{number}");
        fs::write(scratch.at(&name), []).unwrap();
        words.push(format!("far:{}", scratch.at(&name).display()));
    }
    assert!(words.iter().map(String::len).sum::<usize>() > 1 << 20);
    fs::create_dir(scratch.at("b")).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["b"]).collect();
    let (code, _, error) = scratch.run(&mut sshd.cp(&words));
    assert_eq!((code, fs::read_dir(scratch.at("b")).unwrap().count()), (0, 4000), "{error}");
}

#[test]
fn small_files_go_together_by_sftp_and_each_fails_alone() {
    let scratch = Scratch::new("together");
    for number in 0..300 {
        let name = format!("a/d{}/f{number}", number % 7);
        scratch.write(&name, vec![b'x'; number * 40]);
        let mode = [0o644, 0o600, 0o444][number % 3];
        fs::set_permissions(scratch.at(&name), fs::Permissions::from_mode(mode)).unwrap();
    }
    // Where commands run, many files are synced at once, and elsewhere each by itself.
    for (name, lines) in [("shell", ""), ("only", "ForceCommand internal-sftp\n")] {
        let lines = format!("Subsystem sftp internal-sftp\n{lines}");
        let sshd = Sshd::with_lines(&format!("together-{name}"), &lines);
        let far = |path: &str| format!("far:{}", scratch.at(path).display());
        for (way, is_push) in [("put", true), ("get", false)] {
            let target = format!("{way}-{name}");
            // A directory, a FIFO and a file have names of files.
            fs::create_dir_all(scratch.at(&format!("{target}/d1/f1"))).unwrap();
            let fifo = scratch.at(&format!("{target}/d1/f8"));
            mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
            scratch.write(&format!("{target}/d2/f2"), "old");
            let here = |path: &str| scratch.at(path).display().to_string();
            let ends = match is_push {
                true => [here("a/."), far(&target)],
                false => [far("a/."), here(&target)],
            };
            let mut cp = sshd.cp(&["-rp", &ends[0], &ends[1]]);
            let (code, _, error) = scratch.run(cp.args(["--remote-path", "none"]));
            assert_ne!(code, 0, "{target}: {error}");
            for told in ["d1/f1", "d1/f8"] {
                assert!(error.contains(told), "{target}: {told}: {error}");
            }
            let mut differing = Vec::new();
            for number in 0..300 {
                let [from, to] =
                    ["a", &target[..]].map(|root| format!("{root}/d{}/f{number}", number % 7));
                let seen = |path: &str| {
                    let meta = fs::symlink_metadata(scratch.at(path)).unwrap();
                    let content = meta.is_file().then(|| fs::read(scratch.at(path)).unwrap());
                    (meta.mode(), meta.mtime(), content)
                };
                if seen(&from) != seen(&to) {
                    differing.push(number);
                }
            }
            assert_eq!(differing, [1, 8], "{target}: {error}");
            // Whoever lists a tree reads what is in it.
            fs::remove_file(&fifo).unwrap();
            assert_eq!(
                partials(&scratch.at(&target)),
                Vec::<std::path::PathBuf>::new(),
                "{target}"
            );
        }
    }
}
