//! `hikyaku sync` beside rsync: the same trees come of it, and the same is said.

use super::trees::{Scratch, state};
use fastrand::Rng;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Changes of a tree between two runs.
const CHANGES: usize = 25;
const ROUNDS: u64 = 6;
const NAMES: [&str; 6] = ["a", "b", "c d", "d-e", "é", "f.tmp"];
const NANOS: i64 = 123_456_789;

pub(crate) fn has_rsync() -> bool {
    let is_there = Command::new("rsync").arg("--version").output().is_ok();
    if !is_there {
        println!("SKIPPED: no rsync");
    }
    is_there
}

pub(super) fn set_time(path: &Path, secs: i64) {
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ };
    let time = Timespec { tv_sec: secs, tv_nsec: NANOS as _ };
    let times = Timestamps { last_access: omit, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

pub(super) fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Changes a tree at random. Equal trees and equal generators give equal trees but for times of directories.
fn mutate(root: &Path, rng: &mut Rng) {
    for _ in 0..CHANGES {
        let mut path = root.to_path_buf();
        for _ in 0..rng.usize(0..3) {
            path.push(NAMES[rng.usize(..NAMES.len())]);
            if !fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) {
                remove(&path);
                fs::create_dir(&path).unwrap();
            }
        }
        let dir = path.clone();
        path.push(NAMES[rng.usize(..NAMES.len())]);
        let time = 1_000_000_000 + rng.i64(0..3);
        match rng.u8(0..10) {
            0..5 => {
                remove(&path);
                fs::write(&path, vec![rng.u8(..); rng.usize(0..4)]).unwrap();
                let mode = [0o644, 0o600, 0o755, 0o444][rng.usize(..4)];
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                set_time(&path, time);
            }
            5 | 6 => {
                remove(&path);
                symlink(NAMES[rng.usize(..NAMES.len())], &path).unwrap();
                set_time(&path, time);
            }
            7 => remove(&path),
            8 => {
                let mode = [0o755, 0o700, 0o750][rng.usize(..3)];
                fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            }
            _ => set_time(&dir, time),
        }
    }
}

/// Gives each directory a time that is long ago: rsync does not see times that differ by less than a second.
fn settle(root: &Path, rng: &mut Rng) {
    for (name, ..) in state(root) {
        let path = root.join(name);
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            set_time(&path, 1_100_000_000 + rng.i64(0..3));
        }
    }
}

/// The lines of a run without those that tell of deletions, and those. Both programs have their own order of deletions.
fn sorted(said: &str) -> [BTreeSet<&str>; 2] {
    let (deleted, others) = said.lines().partition(|line| line.starts_with("*deleting"));
    [others, deleted]
}

#[test]
fn random_trees_become_what_rsync_makes_of_them() {
    if !has_rsync() {
        return;
    }
    let seed = 7;
    let scratch = Scratch::new("rsync");
    for dir in ["a", "ours", "theirs"] {
        fs::create_dir(scratch.at(dir)).unwrap();
    }
    for round in 0..ROUNDS {
        let shown = format!("seed {seed}, round {round}");
        let mut rng = Rng::with_seed(seed * 1000 + round);
        mutate(&scratch.at("a"), &mut rng);
        scratch.write("a/always", "there is a file in the source");
        settle(&scratch.at("a"), &mut rng);
        for target in ["ours", "theirs"] {
            mutate(&scratch.at(target), &mut Rng::with_seed(seed * 2000 + round));
        }
        let words = ["-rlpti8", "--delete", "a/"];
        let theirs = scratch.run(Command::new("rsync").args(words).arg("theirs/"));
        let ours = scratch.sync(&[&words[..], &["ours/"]].concat());
        assert_eq!((ours.0, theirs.0), (0, 0), "{shown}: {}{}", ours.2, theirs.2);
        let (a, b) = (state(&scratch.at("ours")), state(&scratch.at("theirs")));
        let differing = a.iter().zip(&b).find(|(a, b)| a != b);
        assert!(a == b, "{shown}: {differing:?}\n{}{}", ours.1, theirs.1);
        assert_eq!(sorted(&ours.1)[0], sorted(&theirs.1)[0], "{shown}");
        let again = scratch.sync(&[&words[..], &["ours/"]].concat());
        assert_eq!(again, (0, String::new(), String::new()), "{shown}");
    }
}

#[test]
fn rules_choose_the_names_that_rsync_chooses() {
    if !has_rsync() {
        return;
    }
    let scratch = Scratch::new("rules");
    for name in ["x.c", "x.tmp", "[x]", "é"] {
        for dir in ["", "d/", "d/e/", "d/e/d/", "log/", "e/d/"] {
            scratch.write(&format!("a/{dir}{name}"), "1");
            scratch.write(&format!("b/{dir}{name}"), "2");
            scratch.write(&format!("b/{dir}extra-{name}"), "2");
        }
    }
    let cases: [&[&str]; 18] = [
        &["- *.tmp"],
        &["- /x.c"],
        &["- d/"],
        &["- /d/e"],
        &["- e/d"],
        &["- d/**/x.c"],
        &["- d/***"],
        &["- /d/*"],
        &["+ d/***", "- *"],
        &["+ */", "+ *.c", "- *"],
        &["+ /d/", "+ /d/e/***", "- *"],
        &["- **/x.c"],
        &["- [[]x]"],
        &["- x.[!c]*"],
        &["- ?"],
        &["P *.tmp", "H x.c"],
        &["- log", "! ", "- d/e/d/"],
        &["R log/*.tmp", "- *.tmp"],
    ];
    for rules in cases {
        let rules: Vec<&str> = rules.iter().map(|rule| rule.trim_end()).collect();
        let rules = rules.iter().flat_map(|rule| ["-f", *rule]);
        let words: Vec<&str> = ["-rin8", "-I", "--delete"].into_iter().chain(rules).collect();
        let words = [&words[..], &["a/", "b/"]].concat();
        let theirs = scratch.run(Command::new("rsync").args(&words));
        let ours = scratch.sync(&words);
        assert_eq!((ours.0, theirs.0), (0, 0), "{words:?}: {}{}", ours.2, theirs.2);
        let theirs_said: String = theirs
            .1
            .lines()
            .filter(|line| !line.starts_with("cannot delete"))
            .flat_map(|line| [line, "\n"])
            .collect();
        assert_eq!(sorted(&ours.1), sorted(&theirs_said), "{words:?}");
    }
}

#[test]
fn what_is_left_out_is_told_without_being_asked_and_not_to_the_quiet() {
    if !has_rsync() {
        return;
    }
    let scratch = Scratch::new("sync-skipped");
    let from = scratch.at("from");
    fs::create_dir_all(from.join("dir")).unwrap();
    fs::write(from.join("file"), "text").unwrap();
    symlink("file", from.join("link")).unwrap();
    assert!(Command::new("mkfifo").arg(from.join("fifo")).status().unwrap().success());
    for options in ["-r", "-rq", "-rv", "-t", "-t --exclude=/dir --exclude=/from"] {
        for source in ["from/", "from", "from/dir"] {
            let said = [false, true].map(|is_ours| {
                let mut command = match is_ours {
                    true => Command::new(env!("CARGO_BIN_EXE_hikyaku")),
                    false => Command::new("rsync"),
                };
                command.args(is_ours.then_some("sync")).args(options.split(' '));
                command.args([source, "to"]);
                command.current_dir(scratch.at("")).env("XDG_STATE_HOME", scratch.at("state"));
                let ended = command.output().unwrap();
                assert!(ended.status.success(), "{options} {source}: {ended:?}");
                let _ = fs::remove_dir_all(scratch.at("to"));
                let said = String::from_utf8(ended.stdout).unwrap();
                let skipped = said.lines().filter(|line| line.starts_with("skipping"));
                skipped.map(str::to_owned).collect::<BTreeSet<_>>()
            });
            assert_eq!(said[1], said[0], "{options} {source}");
        }
    }
}
