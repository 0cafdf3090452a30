//! Lists, rules, backups and new roots: each case is made twice, by `hikyaku sync` and by rsync.

use super::beside_rsync::{has_rsync, remove, set_time};
use super::trees::{Scratch, state};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

/// Names of a tree: `d/` is a directory, `l@` a link to nothing, `l@d` one to `d`, and others are files.
type Names = &'static [&'static str];

/// What is synchronized: the source, the target if it is there, a list if there is one with the option that names it, and
/// the words. The file `list` is standard input, too.
struct Case {
    source: Names,
    from: &'static str,
    target: Option<Names>,
    list: Option<(&'static str, &'static str)>,
    words: &'static str,
}

const fn case(source: Names, target: Names, words: &'static str) -> Case {
    Case { source, from: "a/", target: Some(target), list: None, words }
}

const fn listed(list: &'static str, source: Names, target: Names, words: &'static str) -> Case {
    Case {
        source,
        from: "a/",
        target: Some(target),
        list: Some(("--files-from=list", list)),
        words,
    }
}

/// Words that read standard input.
const fn piped(input: &'static str, source: Names, target: Names, words: &'static str) -> Case {
    Case { source, from: "a/", target: Some(target), list: Some(("-i", input)), words }
}

const fn made(words: &'static str) -> Case {
    new("a/", &["f", "d/e"], words)
}

/// A target that is not there.
const fn new(from: &'static str, source: Names, words: &'static str) -> Case {
    Case { source, from, target: None, list: None, words }
}

fn make(scratch: &Scratch, root: &str, names: Names, time: i64) {
    remove(&scratch.at(root));
    fs::create_dir(scratch.at(root)).unwrap();
    for name in names {
        let (path, link) = name.split_once('@').map_or((*name, None), |(l, to)| (l, Some(to)));
        let path = scratch.at(root).join(path.trim_end_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match link {
            None if name.ends_with('/') => fs::create_dir_all(&path).unwrap(),
            Some(to) => symlink(if to.is_empty() { root } else { to }, &path).unwrap(),
            None => fs::write(&path, root.as_bytes().repeat(time as usize % 5)).unwrap(),
        }
    }
    for (name, ..) in state(&scratch.at(root)) {
        set_time(&scratch.at(root).join(name), time);
    }
}

/// What a run made and said, in the order of the alphabet. Only rsync tells which directories are not empty.
fn outcome(
    scratch: &Scratch,
    case: &Case,
    program: &[&str],
    target: &str,
) -> impl Eq + std::fmt::Debug + use<> {
    if let Some(names) = case.target {
        make(scratch, target, names, 1_000_000_004);
    }
    let script = "umask 027; exec \"$@\" <list";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args(program).args(case.words.split(' '));
    command.args(case.list.map(|(option, _)| option));
    let (code, said, _) = scratch.run(command.args([case.from, target]));
    let only_rsyncs = ["cannot delete", "could not", "created"];
    let is_said = |line: &&str| !only_rsyncs.iter().any(|one| line.starts_with(one));
    let said: BTreeSet<String> = said.lines().filter(is_said).map(str::to_owned).collect();
    let at = scratch.at(target);
    let made = if at.exists() { state(&at) } else { Vec::new() };
    let made = made.into_iter().map(|(name, mode, (secs, _), content)| {
        let is_of_run = secs > 1_200_000_000;
        (name, format!("{mode:o}"), if is_of_run { 0 } else { secs }, content)
    });
    (code, said, made.collect::<Vec<_>>())
}

fn compare(cases: &[Case], name: &str) {
    if !has_rsync() {
        return;
    }
    let scratch = Scratch::new(name);
    for case in cases {
        make(&scratch, "a", case.source, 1_000_000_001);
        let mode = if case.target.is_some() { 0o755 } else { 0o575 };
        fs::set_permissions(scratch.at("a"), fs::Permissions::from_mode(mode)).unwrap();
        scratch.write("list", case.list.map_or("", |(_, list)| list));
        remove(&scratch.at("new"));
        let theirs = outcome(&scratch, case, &["rsync"], "new");
        remove(&scratch.at("new"));
        let ours = outcome(&scratch, case, &[env!("CARGO_BIN_EXE_hikyaku"), "sync"], "new");
        assert_eq!(ours, theirs, "{} of {:?}, {:?}", case.words, case.source, case.list);
    }
}

#[test]
fn a_list_and_rules_choose_the_names_that_they_choose_in_rsync() {
    const TREE: Names = &["d/e/x", "d/y", "f/g/z", "w"];
    let cases = [
        // A name that is missing is an error, whatever rules say of it.
        listed("w\nno-such\n", TREE, &[], "-rti"),
        listed("w\nno-such\n", TREE, &[], "-rti --exclude=**"),
        listed("w\nd/no-such\n", TREE, &[], "-rti --exclude=/d"),
        listed("w\nno/such\n", TREE, &[], "-rti --exclude=no*"),
        // A name that is not looked for is not missing.
        listed("w\nd/e/x\n", TREE, &["w"], "-rti --existing"),
        listed("w\nd/e/x\nf/no\n", TREE, &["w"], "-rti --existing"),
        // Rules are about the name, and about what is in it, but not about the directories above it.
        listed("d/e/x\n", TREE, &[], "-rti --exclude=d/"),
        listed("d/e\nf\n", TREE, &[], "-rti --exclude=/d/e/x --exclude=/f/g"),
        listed("d\nd/e/x\n", TREE, &["d/"], "-rti --exclude=e"),
        listed("d/e/x\nf/g\n", TREE, &["d/e/", "f/"], "-rti --exclude=x --exclude=g"),
        listed("d\nd/e/x\n", TREE, &["d/"], "-rti --exclude=/d"),
    ];
    compare(&cases, "as-listed");
}

#[test]
fn a_list_follows_links_that_it_takes_for_directories() {
    const TREE: Names = &["d/x", "d/e/y", "d/s@e", "l@d", "f@d/x", "n@none", "o@l/e"];
    let cases = [
        // A slash at the end, or names below it, mean what the link leads to.
        listed("l/\n", TREE, &[], "-lti"),
        listed("l/\n", TREE, &[], "-rlti"),
        listed("l/.\n", TREE, &["l@d"], "-rlti"),
        listed("l/x\n", TREE, &[], "-rlpti"),
        listed("l\nl/x\n", TREE, &["l/x"], "-rti"),
        listed("l/e/y\nl/s\n", TREE, &[], "-lti"),
        listed("l/s/y\nd/s/\no/y\n", TREE, &["o@l"], "-lti"),
        // Without them it is a link.
        listed("l\nl/s\n", TREE, &[], "-ti"),
        listed("l\nd/s\n", TREE, &[], "-lti"),
        // It leads to no directory.
        listed("f/\nn/\n", TREE, &[], "-rlti"),
        listed("f/x\nd/x\n", TREE, &[], "-rlti"),
        listed("n/x\nl/no\nl/x\n", TREE, &[], "-rlti"),
        // Rules see a directory.
        listed("l/\no/y\n", TREE, &[], "-rlti --exclude=/l/ --exclude=x"),
        listed("l/\n", TREE, &[], "-rlti --exclude=x"),
    ];
    compare(&cases, "as-followed");
}

#[test]
fn names_are_kept_under_the_suffix_that_are_kept_by_rsync() {
    let cases = [
        // A directory has the name of the backup.
        case(&["f"], &["f", "f~/x/y"], "-rtib"),
        case(&["f"], &["f", "f~/x/y"], "-rtib --delete"),
        case(&["f/x"], &["f", "f~/x"], "-rtib"),
        case(&["f@"], &["f", "f~/"], "-rltib"),
        case(&["w"], &["g", "g~/x"], "-rtib --delete"),
        // The name has the suffix, or another backup takes its place.
        case(&["f~/x"], &["f~"], "-rtib --delete"),
        case(&["f~"], &["f~"], "-rtib --delete"),
        case(&["f~@"], &["f~"], "-rltib --delete"),
        case(&["f"], &["f", "f~"], "-rtib --delete --delete-excluded"),
        case(&["w"], &["f", "f~", "g", "g~/"], "-rtib --delete --delete-excluded"),
        // The source does not have the directory of that name: what was kept in it is deleted, too.
        case(&["f/x"], &["f", "f~/x", "f~/d/y"], "-rtib --delete --delete-excluded"),
        case(&["f/x"], &["f", "f~/x", "f~/x~"], "-rtib --delete --delete-excluded"),
        case(&["f/x"], &["f", "f~/x"], "-rtib --delete -f +\u{5f}*"),
    ];
    compare(&cases, "as-kept");
}

#[test]
fn nothing_is_deleted_without_its_copy_where_kinds_differ() {
    let cases = [
        // A directory is in the way of a file or link.
        case(&["d"], &["d/x", "d/e/y"], "-rtib --delete"),
        case(&["d"], &["d/e/"], "-rtib --delete"),
        case(&["d"], &["d/x~", "d/e/y~"], "-rtib --delete"),
        case(&["d"], &["d/x", "d/x~", "d/e/"], "-rtib --delete"),
        case(&["d"], &["d/x", "d/e/y~"], "-rtib --delete --delete-excluded"),
        case(&["d"], &["d/x", "d/x~/y"], "-rtib --delete --delete-excluded"),
        case(&["d", "d~"], &["d/x", "d~"], "-rtib --delete"),
        case(&["d@"], &["d/x"], "-rltib --delete"),
        case(&["d"], &["d/x"], "-rtib"),
        // A file or link is in the way of a directory.
        case(&["d/x"], &["d"], "-rtib --delete"),
        case(&["d/x"], &["d", "d~"], "-rtib --delete"),
        case(&["d/x"], &["d@"], "-rltib --delete"),
        case(&["d/x"], &["d", "d~/y"], "-rtib --delete"),
        // The source has neither.
        case(&["w"], &["d/x", "d/e/y~"], "-rtib --delete"),
        case(&["w"], &["d/x", "d/x~/y", "d/e/z"], "-rtib --delete --delete-excluded"),
    ];
    compare(&cases, "as-apart");
}

#[test]
fn a_new_root_has_the_bits_that_rsync_gives_it() {
    compare(&[made("-r"), made("-rt"), made("-rp"), made("-rtb"), made("-rt --delete")], "as-made");
}

#[test]
fn a_target_that_is_not_there_is_what_it_is_to_rsync() {
    const TREE: Names = &["f", "d/e"];
    let cases = [
        // Nothing that is not there takes part: the root is made only if more than one name would come into it.
        new("a/", TREE, "-rti --existing"),
        new("a/", TREE, "-rti --existing --delete"),
        new("a/", TREE, "-rtin --existing"),
        new("a/", TREE, "-rti --existing --exclude=*"),
        new("a/", &[], "-rtin --existing"),
        new("a", TREE, "-rti --existing"),
        new("a", &[], "-rti --existing"),
        new("a/f", TREE, "-rti --existing"),
        // One name, though a directory, gets the name of the target.
        new("a", &[], "-rti"),
        new("a", &[], "-rpti"),
        new("a", &[], "-rtin"),
        new("a", TREE, "-rti"),
        new("a", TREE, "-rtin"),
        new("a", TREE, "-rti --exclude=/a/*"),
        new("a", TREE, "-rti --exclude=a"),
        new("a", &["d/e"], "-rti --delete --exclude=d"),
        new("a/", &[], "-rti"),
        new("a/", &[], "-rtin"),
        new("a/d/", TREE, "-rti --exclude=e"),
    ];
    compare(&cases, "as-new");
}

#[test]
fn options_that_are_given_together_mean_what_they_mean_to_rsync() {
    let cases = [
        case(&["f"], &["f"], "-rti -I --size-only"),
        case(&["f"], &["f"], "-rti --size-only -I"),
        case(&["f"], &["f"], "-rti -u --modify-window=9"),
        case(&["d/x", "w"], &["w"], "-rti --exclude=**/***"),
        case(&["d/x", "w"], &["d/y", "w"], "-rti --delete --exclude=**/***"),
        case(&["j\\/x", "j/x"], &[], "-rti --exclude=j\\/***"),
        case(&["f"], &[], "-rti --bwlimit=0"),
        case(&["f", "g"], &[], "-rti --max-size=1.5k --min-size=2-1"),
        case(&["f", "g"], &[], "-rti --max-size=1-1"),
        piped("*.o\n# none\nd/\n", &["f", "x.o", "d/e"], &["y.o"], "-rt --exclude-from=- --delete"),
        piped("- *.o\n", &["f", "x.o"], &[], "-rt -f .\u{5f}-"),
        piped("f\n", &["f", "x"], &[], "-rt --files-from=-"),
        case(&["j\\/x", "j/x"], &[], "-rti --exclude=j\\\\/***"),
    ];
    compare(&cases, "as-given");
}
