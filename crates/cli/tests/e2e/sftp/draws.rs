//! Drawn trees, changes and options: `hikyaku sync` makes of them what rsync makes, and a second run finds what rsync's
//! finds. `HK_SEED` and `HK_ROUNDS` choose the draws of the long run.

use super::beside_rsync::{has_rsync, remove, set_time};
use super::trees::{Entry, Scratch, state};
use crate::common::Sshd;
use fastrand::Rng;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::UNIX_EPOCH;

const NAMES: [&[u8]; 14] = [
    b"a",
    b"b",
    b"c",
    b"d",
    b"e d",
    b"f.tmp",
    b"g.tmp",
    b"-n",
    b"\xc3\xa9",
    b"n\nl",
    b"\xff",
    b"h\\#101",
    b" i ",
    b"j\\",
];
const MODES: [u32; 10] = [0o644, 0o644, 0o600, 0o755, 0o444, 0o400, 0o4755, 0o2750, 0o1777, 0o000];
const DIR_MODES: [u32; 6] = [0o755, 0o755, 0o700, 0o1777, 0o2775, 0o555];
const RULES: [&str; 12] = [
    "- *.tmp", "+ *", "P a", "P *.tmp", "- /b", "- d/", "H c", "S a", "R b", "- a/**", "+ */",
    "- e*",
];

/// Where source and target are, and what carries the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Local,
    Push,
    Pull,
    PushBySftp,
    PullBySftp,
}

/// A draw.
struct Draw {
    seed: u64,
    way: Way,
    words: Vec<String>,
}

impl Draw {
    fn new(seed: u64, ways: &[Way]) -> Self {
        let mut rng = Rng::with_seed(seed);
        let way = ways[rng.usize(..ways.len())];
        let keeps = ["-rlpti", "-rlpti", "-rlpti", "-rlti", "-rpti"][rng.usize(..5)];
        let mut words = vec![keeps.to_owned()];
        let mut add = |chance: u32, all: &[&str]| {
            if rng.u32(..100) < chance {
                words.extend(all.iter().map(ToString::to_string));
            }
        };
        add(60, &["--delete"]);
        add(30, &["-b"]);
        add(5, &["-b", "--suffix", ".bak"]);
        add(8, &["-u"]);
        add(4, &["--existing"]);
        add(4, &["--ignore-existing"]);
        add(4, &["--size-only"]);
        add(4, &["--max-size", "2"]);
        add(if way == Way::Local { 6 } else { 0 }, &["-c"]);
        add(5, &["--delete-excluded"]);
        for _ in 0..rng.usize(0..6).saturating_sub(2) {
            words.extend(["-f".to_owned(), RULES[rng.usize(..RULES.len())].to_owned()]);
        }
        // Both at once are not compared: what rsync keeps then was not found out.
        if words.iter().any(|word| word == "-b") {
            words.retain(|word| word != "--ignore-existing");
        }
        Self { seed, way, words }
    }
}

/// Which times a tree may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    /// Those that SFTP can set.
    Usual,
    Any,
}

fn time(rng: &mut Rng, times: Times) -> i64 {
    match rng.u8(0..20) {
        0 if times == Times::Any => -rng.i64(1..1_000_000_000),
        1 => rng.i64(1 << 31..1 << 32),
        2 => rng.i64(0..100),
        _ => 1_000_000_000 + rng.i64(0..3),
    }
}

/// Changes a tree. Equal trees and equal generators give equal trees.
fn change(root: &Path, rng: &mut Rng, times: Times) {
    for _ in 0..rng.usize(5..40) {
        let mut path = root.to_path_buf();
        for _ in 0..rng.usize(0..4) {
            path.push(OsStr::from_bytes(NAMES[rng.usize(..NAMES.len())]));
            if !fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) {
                remove(&path);
                fs::create_dir(&path).unwrap();
            }
        }
        let dir = path.clone();
        path.push(OsStr::from_bytes(NAMES[rng.usize(..NAMES.len())]));
        match rng.u8(0..12) {
            0..5 => {
                remove(&path);
                fs::write(&path, vec![rng.u8(..); rng.usize(0..4)]).unwrap();
                let mode = MODES[rng.usize(..MODES.len())];
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                set_time(&path, time(rng, times));
            }
            5 | 6 => {
                remove(&path);
                symlink(OsStr::from_bytes(NAMES[rng.usize(..NAMES.len())]), &path).unwrap();
                set_time(&path, time(rng, times));
            }
            9 => {
                let mode = DIR_MODES[rng.usize(..DIR_MODES.len())];
                fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            }
            10 => {
                remove(&path);
                fs::create_dir(&path).unwrap();
            }
            // No FIFO: rsync replaces what has the name of a file, and this leaves it alone as every other command does.
            _ => remove(&path),
        }
    }
}

/// Gives directories times that are long ago.
fn settle(root: &Path, rng: &mut Rng, times: Times) {
    let all = state(root).into_iter().rev().filter(|(_, mode, ..)| mode & 0o170_000 == 0o040_000);
    let all: Vec<_> = all.map(|(name, ..)| root.join(name)).collect();
    all.iter().for_each(|path| set_time(path, time(rng, times)));
}

/// What a tree is, as far as the way tells and sets it.
fn seen(root: &Path, draw: &Draw) -> Vec<Entry> {
    let now = UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    // With backups rsync gives directories no times; a copy may give them those of the source.
    let keeps_backups = draw.words.iter().any(|word| word == "-b");
    let whole = |(name, mode, (secs, nanos), content)| {
        let is_dir = mode & 0o170_000 == 0o040_000;
        // A directory in which something was deleted may have a time of the run.
        let (secs, nanos) = if (now - 3600..=now).contains(&secs) || (is_dir && keeps_backups) {
            (0, 0)
        } else {
            (secs, nanos)
        };
        let nanos = if draw.way == Way::Local { nanos } else { 0 };
        (name, mode, (secs, nanos), content)
    };
    state(root).into_iter().map(whole).collect()
}

/// Lines of a run in their alphabetical order, without what only rsync says, and without the direction.
fn lines(said: &str) -> Vec<String> {
    let is_said = |line: &&str| {
        !line.is_empty()
            && !line.starts_with("cannot delete non-empty")
            && !line.starts_with("could not make way")
            && !line.starts_with("rsync")
    };
    let mut all: Vec<String> =
        said.lines().filter(is_said).map(|line| line.replacen('<', ">", 1)).collect();
    all.sort();
    all
}

/// Runs both programs twice. What differs is told.
fn run(draw: &Draw, scratch: &Scratch, sshd: Option<&Sshd>) -> Result<(), String> {
    let mut rng = Rng::with_seed(draw.seed + 1);
    let times =
        if matches!(draw.way, Way::Push | Way::PushBySftp) { Times::Usual } else { Times::Any };
    for dir in ["a", "ours", "theirs"] {
        remove(&scratch.at(dir));
        fs::create_dir(scratch.at(dir)).unwrap();
    }
    change(&scratch.at("a"), &mut rng, times);
    scratch.write("a/always", "there is a file in the source");
    let kind = rng.u8(0..3);
    for target in ["ours", "theirs"] {
        let mut rng = Rng::with_seed(draw.seed + 2);
        if kind > 0 {
            // Much of it is there before.
            let copied = Command::new("cp")
                .arg("-a")
                .arg(scratch.at("a/."))
                .arg(scratch.at(target))
                .status();
            assert!(copied.unwrap().success());
        }
        if kind < 2 {
            change(&scratch.at(target), &mut rng, Times::Usual);
        }
        settle(&scratch.at(target), &mut rng, Times::Usual);
    }
    settle(&scratch.at("a"), &mut rng, times);
    let source = state(&scratch.at("a"));
    for round in ["first", "second"] {
        let mut rsync = Command::new("rsync");
        rsync.env("LC_ALL", "C.UTF-8").args(&draw.words).args(["a/", "theirs/"]);
        let theirs = scratch.run(&mut rsync);
        let mut hikyaku = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        hikyaku
            .env("LC_ALL", "C.UTF-8")
            .arg("sync")
            .args(&draw.words)
            .args(ends(draw, scratch, sshd));
        let ours = scratch.run(&mut hikyaku);
        let told = format!("{}\n{}\nrsync: {}\n{}", ours.1, ours.2, theirs.1, theirs.2);
        if ours.0 != theirs.0 {
            return Err(format!("{round} run: exit codes {} and {}\n{told}", ours.0, theirs.0));
        }
        let (a, b) = (seen(&scratch.at("ours"), draw), seen(&scratch.at("theirs"), draw));
        let differing = a.iter().find(|one| !b.contains(one));
        if let Some(differing) = differing.or_else(|| b.iter().find(|one| !a.contains(one))) {
            let of = |tree: &[Entry]| tree.iter().find(|one| one.0 == differing.0).cloned();
            return Err(format!("{round} run: {:?}, and rsync's: {:?}\n{told}", of(&a), of(&b)));
        }
        if lines(&ours.1) != lines(&theirs.1) {
            let (a, b) = (lines(&ours.1), lines(&theirs.1));
            let only = a
                .iter()
                .filter(|line| !b.contains(line))
                .chain(b.iter().filter(|line| !a.contains(line)));
            return Err(format!(
                "{round} run says another thing: {:?}\n{told}",
                only.collect::<Vec<_>>()
            ));
        }
    }
    match source == state(&scratch.at("a")) {
        true => Ok(()),
        false => Err("the source was changed".to_owned()),
    }
}

/// Source and target, and how the far side is reached.
fn ends(draw: &Draw, scratch: &Scratch, sshd: Option<&Sshd>) -> Vec<OsString> {
    let far = |name: &str| OsString::from(format!("far:{}/", scratch.at(name).display()));
    let (program, ends) = match draw.way {
        Way::Local => return vec!["a/".into(), "ours/".into()],
        Way::Push => (env!("CARGO_BIN_EXE_hikyaku"), ["a/".into(), far("ours")]),
        Way::Pull => (env!("CARGO_BIN_EXE_hikyaku"), [far("a"), "ours/".into()]),
        Way::PushBySftp => ("no-such", ["a/".into(), far("ours")]),
        Way::PullBySftp => ("no-such", [far("a"), "ours/".into()]),
    };
    let configuration = sshd.expect("a far side").at("ssh_config");
    let rsh = format!("ssh -F '{}'", configuration.display());
    let words = ["-e".into(), rsh.into(), "--remote-path".into(), program.into()];
    words.into_iter().chain(ends).collect()
}

/// Runs draws, and tells which differ.
fn all(name: &str, seeds: impl Iterator<Item = u64>, ways: &[Way]) {
    if !has_rsync() {
        return;
    }
    let scratch = Scratch::new(name);
    let is_far = ways.iter().any(|way| *way != Way::Local);
    let sshd = is_far.then(|| Sshd::with_lines(name, "Subsystem sftp internal-sftp\n"));
    let mut failed = Vec::new();
    for seed in seeds {
        let draw = Draw::new(seed, ways);
        if let Err(why) = run(&draw, &scratch, sshd.as_ref()) {
            failed.push(format!("HK_SEED={seed} {:?} {:?}: {why}", draw.way, draw.words));
        }
    }
    let shown = failed.len().min(12);
    assert!(
        failed.is_empty(),
        "{} draws differ:\n{}",
        failed.len(),
        failed[..shown].join("\n----\n")
    );
}

#[test]
fn drawn_trees_and_options_become_what_rsync_makes_of_them() {
    all("draws", 1..41, &[Way::Local]);
}

#[test]
fn drawn_trees_become_what_rsync_makes_of_them_on_every_way() {
    let ways = [Way::Push, Way::Pull, Way::PushBySftp, Way::PullBySftp];
    ways.into_iter().zip(500..).for_each(|(way, seed)| all("draws-far", seed..seed + 1, &[way]));
}

#[test]
#[ignore = "2,000 draws take half an hour"]
fn two_thousand_draws_on_all_ways_are_as_by_rsync() {
    let number =
        |name: &str, usual| env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (seed, rounds) = (number("HK_SEED", 10_000), number("HK_ROUNDS", 2000));
    let ways: Vec<Way> = match env::var("HK_WAY").as_deref() {
        Ok("local") => vec![Way::Local],
        Ok("far") => vec![Way::Push, Way::Pull, Way::PushBySftp, Way::PullBySftp],
        _ => vec![Way::Local, Way::Push, Way::Pull, Way::PushBySftp, Way::PullBySftp],
    };
    all("draws-long", seed..seed + rounds, &ways);
}
