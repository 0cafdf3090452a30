//! Drawn trees, changes and options: `hikyaku sync` makes of them what rsync makes, says the same with `-n` before, and
//! finds in a second run what rsync finds. `HK_SEED`, `HK_ROUNDS` and `HK_WAY` choose the draws of the long run.

mod changes;
mod draw;

use super::beside_rsync::{has_rsync, remove, set_time};
use super::trees::{Entry, Scratch, state};
use crate::common::Sshd;
use changes::{Times, Tree, change, clear_ways, list, settle};
use draw::{Before, Draw, Form, Way};
use fastrand::Rng;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::UNIX_EPOCH;

/// What a tree is, as far as the way tells and sets it.
fn seen(scratch: &Scratch, root: &str, draw: &Draw) -> Vec<Entry> {
    let now = UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    let whole = |(name, mode, (secs, nanos), content)| {
        let is_dir = mode & 0o170_000 == 0o040_000;
        // A directory in which something was deleted may have a time of the run. With backups rsync gives directories
        // no times; a copy may give them those of the source.
        let is_any = (now - 3600..=now).contains(&secs) || (is_dir && draw.has("-b"));
        let nanos = if draw.way == Way::Local { nanos } else { 0 };
        (name, mode, if is_any { (0, 0) } else { (secs, nanos) }, content)
    };
    state(&scratch.at(root)).into_iter().map(whole).collect()
}

/// Lines of a run in their alphabetical order, without what only rsync says, and without the direction.
fn lines(said: &str) -> Vec<String> {
    let only_rsyncs =
        ["cannot delete non-empty", "could not make way", "rsync", "created directory"];
    let is_said =
        |line: &&str| !line.is_empty() && !only_rsyncs.iter().any(|one| line.starts_with(one));
    let mut all: Vec<String> =
        said.lines().filter(is_said).map(|line| line.replacen('<', ">", 1)).collect();
    all.sort();
    all
}

/// Makes the source and two equal targets.
fn trees(draw: &Draw, scratch: &Scratch) {
    let mut rng = Rng::with_seed(draw.seed + 1);
    let times = if draw.way.is_push() { Times::Usual } else { Times::Any };
    for dir in ["a", "ours", "theirs"] {
        remove(&scratch.at(dir));
        fs::create_dir(scratch.at(dir)).unwrap();
    }
    let root = scratch.at("a");
    let source = Tree { root: &root, is_source: true, times };
    change(source, &mut rng);
    scratch.write("a/always", "there is a file in the source");
    set_time(&scratch.at("a/always"), 1_000_000_000 + rng.i64(0..3));
    for target in ["ours", "theirs"] {
        if draw.form == Form::Made {
            continue;
        }
        let mut rng = Rng::with_seed(draw.seed + 2);
        let inner = if draw.form == Form::Directory { "/a" } else { "" };
        let root = scratch.at(&format!("{target}{inner}"));
        if draw.before != Before::Another {
            let mut cp = Command::new("cp");
            assert!(cp.arg("-a").arg(scratch.at("a/.")).arg(&root).status().unwrap().success());
        }
        fs::create_dir_all(&root).unwrap();
        let tree = Tree { root: &root, is_source: false, times: Times::Usual };
        if draw.before != Before::Same {
            change(tree, &mut rng);
            let (always, renamed) = (root.join("always"), root.join("new name"));
            [always, renamed].iter().filter(|_| rng.bool()).for_each(|path| {
                fs::write(path, "another").unwrap();
                set_time(path, 1_000_000_000);
            });
        }
        if draw.has("--ignore-existing") {
            // Where a directory would take the place of a file, rsync goes on below the file and ends as it happens.
            clear_ways(&root, &scratch.at("a"));
        }
        settle(tree, &mut rng);
    }
    settle(source, &mut rng);
    fs::write(scratch.at("list"), list(&root, &mut rng)).unwrap();
}

/// Runs both programs twice, and this one with `-n` before. What differs is told.
fn run(draw: &Draw, scratch: &Scratch, sshd: Option<&Sshd>) -> Result<(), String> {
    trees(draw, scratch);
    let source = state(&scratch.at("a"));
    let before = state(&scratch.at("ours"));
    let run = |program: &str, words: &[&str], ends: Vec<OsString>| {
        let mut command = Command::new("sh");
        let umask = draw.umask.map(|umask| format!("umask {umask}; ")).unwrap_or_default();
        command.args(["-c", &format!("{umask}exec \"$@\""), "sh", program]).args(words);
        scratch.run(command.env("LC_ALL", "C.UTF-8").args(&draw.words).args(ends))
    };
    let ours = |more: &[&str]| {
        let more = if draw.deletes() { [more, &["--delete-all"]].concat() } else { more.to_vec() };
        let words = [&["sync"], &more[..]].concat();
        run(env!("CARGO_BIN_EXE_hikyaku"), &words, ends(draw, scratch, "ours", sshd))
    };
    // What rsync says with -n of directories in which something stays is more than what it does.
    let rehearsal = ours(&["-n"]);
    if state(&scratch.at("ours")) != before {
        return Err(format!("the rehearsal changed something\n{rehearsal:?}"));
    }
    for round in ["first run", "second run"] {
        let theirs = run("rsync", &[], ends(draw, scratch, "theirs", None));
        let ours = ours(&[]);
        let told = format!("{}\n{}\nrsync: {}\n{}", ours.1, ours.2, theirs.1, theirs.2);
        if ours.0 != theirs.0 {
            return Err(format!("{round}: exit codes {} and {}\n{told}", ours.0, theirs.0));
        }
        let [a, b] = ["ours", "theirs"].map(|root| seen(scratch, root, draw));
        let differing = a.iter().find(|one| !b.contains(one));
        if let Some(differing) = differing.or_else(|| b.iter().find(|one| !a.contains(one))) {
            let of = |tree: &[Entry]| tree.iter().find(|one| one.0 == differing.0).map(shown);
            return Err(format!("{round}: {:?}, and rsync's: {:?}\n{told}", of(&a), of(&b)));
        }
        let only = |a: &[String], b: &[String]| {
            a.iter().filter(|line| !b.contains(line)).cloned().collect::<Vec<_>>()
        };
        let (a, b) = (lines(&ours.1), lines(&theirs.1));
        if a != b {
            let (ours, theirs) = (only(&a, &b), only(&b, &a));
            return Err(format!("{round} says {ours:?}, and rsync says {theirs:?}\n{told}"));
        }
        let b = lines(&rehearsal.1);
        // As in rsync, -n with --existing tells nothing of a root that the run makes.
        let is_told = !(draw.form == Form::Made && draw.has("--existing"));
        if round == "first run" && is_told && (a != b || ours.0 != rehearsal.0) {
            let (first, rehearsed) = (only(&a, &b), only(&b, &a));
            return Err(format!(
                "a run with -n says {rehearsed:?}, and one without {first:?}\n{told}\n{}",
                rehearsal.2
            ));
        }
    }
    match source == state(&scratch.at("a")) {
        true => Ok(()),
        false => Err("the source was changed".to_owned()),
    }
}

/// An entry for the reader of a failure.
fn shown((name, mode, time, content): &Entry) -> (PathBuf, String, (i64, i64), Vec<u8>) {
    let begin = &content[..content.len().min(40)];
    (name.clone(), format!("{mode:o}"), *time, begin.to_vec())
}

/// Source and target, and how the far side is reached. Without an ssh server both are here.
fn ends(draw: &Draw, scratch: &Scratch, target: &str, sshd: Option<&Sshd>) -> Vec<OsString> {
    let (from, inner) = match draw.form {
        Form::Contents | Form::Listed => ("a/", "/"),
        Form::Made => ("a/", "/new"),
        Form::Directory => ("a", ""),
        Form::File => ("a/always", "/"),
        Form::Renamed => ("a/always", "/new name"),
    };
    let mut words: Vec<OsString> = Vec::new();
    if draw.form == Form::Listed {
        words.extend(["--files-from", "list", "--from0"].map(OsString::from));
    }
    let to = format!("{target}{inner}");
    let Some(sshd) = sshd.filter(|_| draw.way != Way::Local) else {
        words.extend([from.into(), to.into()]);
        return words;
    };
    let program = match draw.way {
        Way::PushBySftp | Way::PullBySftp => "no-such",
        _ => env!("CARGO_BIN_EXE_hikyaku"),
    };
    let rsh = format!("ssh -F '{}'", sshd.at("ssh_config").display());
    words.extend(["-e".into(), rsh.into(), "--remote-path".into(), program.into()]);
    // The end of a path says what is meant, and a path of this machine may lose it.
    let far = |path: &str| {
        OsString::from(format!(
            "far:{}/{path}",
            scratch.at("").display().to_string().trim_end_matches('/')
        ))
    };
    words.extend(match draw.way.is_push() {
        true => [from.into(), far(&to)],
        false => [far(from), to.into()],
    });
    words
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
            let (way, form, words) = (draw.way, draw.form, &draw.words);
            failed.push(format!("HK_SEED={seed} {way:?} {form:?} {words:?}: {why}"));
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
