//! A source without a slash at its end is a name of the transfer, as with rsync: rules and lines are about it.

use super::beside_rsync::{has_rsync, set_time};
use super::trees::{Scratch, state};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Words of both programs, to which the target is added.
const CASES: [&[&str]; 14] = [
    &["-ai", "a"],
    &["-ai", "a/"],
    &["-ai", "--exclude=/a/d", "a"],
    &["-ai", "--exclude=/d", "a"],
    &["-ai", "--exclude=a/", "a"],
    &["-ai", "--exclude=/a/*", "--delete", "a"],
    &["-ai", "--delete", "a"],
    &["-ai", "--existing", "a"],
    &["-ai", "link"],
    &["-ai", "link/"],
    &["-ai", "a/f"],
    &["-ai", "--files-from=list", "a"],
    &["-ai", "--files-from=list", "a/"],
    &["-ri", "--files-from=list", "a"],
];

fn trees(scratch: &Scratch) {
    for name in ["a/f", "a/d/g", "a/d/e/h", "a/a/d/i", "ours/other", "theirs/other"] {
        scratch.write(name, name.rsplit('/').next().unwrap());
    }
    for target in ["ours", "theirs"] {
        scratch.write(&format!("{target}/a/extra"), "extra");
        scratch.write(&format!("{target}/a/d/extra"), "extra");
    }
    symlink("a", scratch.at("link")).unwrap();
    fs::write(scratch.at("list"), "d/e/\nf\n").unwrap();
    // Both programs compare whole seconds, and the directories may be made in one or in two.
    for dir in ["ours/a", "ours/a/d", "theirs/a", "theirs/a/d"] {
        set_time(&scratch.at(dir), 1_600_000_000);
    }
}

#[test]
fn a_source_without_a_slash_is_a_name_of_the_transfer() {
    if !has_rsync() {
        return;
    }
    for words in CASES {
        let scratch = Scratch::new("named");
        trees(&scratch);
        let theirs = scratch.run(Command::new("rsync").args(words).arg("theirs"));
        let ours = scratch.sync(&[words, &["ours"]].concat());
        assert_eq!((ours.0, theirs.0), (0, 0), "{words:?}: {}{}", ours.2, theirs.2);
        let sorted = |said: &str| {
            let mut all: Vec<String> = said.lines().map(str::to_owned).collect();
            all.sort();
            all
        };
        assert_eq!(sorted(&ours.1), sorted(&theirs.1), "{words:?}");
        let seen = |root: &str| {
            let all = state(&scratch.at(root)).into_iter();
            all.map(|(name, mode, _, content)| (name, mode, content)).collect::<Vec<_>>()
        };
        assert_eq!(seen("ours"), seen("theirs"), "{words:?}");
    }
}

#[test]
fn the_target_may_be_beside_or_below_what_is_named() {
    let scratch = Scratch::new("below");
    scratch.write("a/f", "f");
    scratch.write("g", "g");
    for (words, made) in [
        (["-a", "g", "sub"], "sub/g"),
        (["-a", "a", "sub"], "sub/a/f"),
        (["-a", "a/f", "a/b"], "a/b/f"),
    ] {
        fs::create_dir_all(scratch.at(words[2])).unwrap();
        let (code, said, error) = scratch.sync(&words);
        assert_eq!((code, &error[..]), (0, ""), "{words:?}: {said}");
        assert!(scratch.at(made).exists(), "{made}");
    }
    // A copy of a list may go below its directory, but no directory of the list into itself.
    fs::write(scratch.at("list"), "g\n").unwrap();
    fs::write(scratch.at("bad"), "a\n").unwrap();
    let cp = |list: &str, target: &str| {
        let mut cp = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        scratch.run(cp.args(["cp", "-r", "--files-from", list, ".", target]))
    };
    assert_eq!(cp("list", "sub").0, 0);
    let (code, _, error) = cp("bad", "a/b");
    assert!(code != 0 && error.contains("into itself"), "{code} {error}");
    assert!(!scratch.at("a/b/a").exists() && Path::new(&scratch.at("a/b")).exists());
}
