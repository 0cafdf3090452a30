//! Options that other commands have as well: a dry run, and the family of addresses.

use super::{LOOPBACK, Stage, names, names_of_state};
use std::fs;
use std::path::PathBuf;

fn tree(folder: &std::path::Path) {
    fs::create_dir_all(folder.join("d")).unwrap();
    for name in ["a", "d/b"] {
        fs::write(folder.join(name), name).unwrap();
    }
}

/// Options, source, target, the new directory, and the paths of the files.
type Case<'c> = (&'c [&'c str], String, String, PathBuf, &'c [&'c str]);

#[test]
fn a_dry_run_lists_the_files_that_the_same_command_copies() {
    let Some(mut stage) = Stage::new("guc-dry") else { return };
    let (server, other) = (stage.server("one", LOOPBACK), stage.server("two", LOOPBACK));
    tree(&stage.here("t"));
    tree(&server.data.join("t"));
    let at = |path: &str| format!("{}/{path}", server.url);
    let far = |path: &str| format!("{}/{path}", other.url);
    let (tree, file, part) = (&["-r", "-cd"][..], &["-cd"][..], &["-cd", "-len", "1"][..]);
    let cases: [Case<'_>; 11] = [
        (tree, at("t/"), "got/x/".into(), stage.here("got"), &["got/x/a", "got/x/d/b"]),
        (tree, at("t/*"), "got/x/".into(), stage.here("got"), &["got/x/a", "got/x/d/b"]),
        (file, at("t/a"), "got/x/c".into(), stage.here("got"), &["got/x/c"]),
        (part, at("t/a"), "got/x/c".into(), stage.here("got"), &["got/x/c"]),
        (tree, "t/".into(), at("up/x/"), server.data.join("up"), &["up/x/a", "up/x/d/b"]),
        (tree, "t/*".into(), at("up/x/"), server.data.join("up"), &["up/x/a", "up/x/d/b"]),
        (file, "t/a".into(), at("up/x/c"), server.data.join("up"), &["up/x/c"]),
        (part, "t/a".into(), at("up/x/c"), server.data.join("up"), &["up/x/c"]),
        (tree, at("t/"), far("to/x/"), other.data.join("to"), &["to/x/a", "to/x/d/b"]),
        (file, at("t/a"), far("to/x/c"), other.data.join("to"), &["to/x/c"]),
        (part, at("t/a"), far("to/x/c"), other.data.join("to"), &["to/x/c"]),
    ];
    for (options, source, target, made, wanted) in cases {
        let place = |path: &&str| match path.split('/').next() {
            Some("up") => at(path),
            Some("to") => far(path),
            _ => (*path).to_owned(),
        };
        let wanted: Vec<String> = wanted.iter().map(place).collect();
        let words = [options, &[&*source, &*target]].concat();
        let output = stage.does(&[&["-dry-run"], &words[..]].concat());
        let mut listed: Vec<_> =
            std::str::from_utf8(&output.stdout).unwrap().lines().map(str::to_owned).collect();
        listed.sort();
        assert_eq!(listed, wanted, "{words:?}");
        assert!(!made.exists(), "{words:?}");
        assert_eq!(names_of_state(&stage), [""; 0], "{words:?}");
        stage.does(&words);
        assert!(made.exists(), "{words:?}");
        // Files that the target has are replaced, unless -sync is given.
        if options != part {
            let again = |options: &[&str]| {
                let output = stage.does(&[options, &["-dry-run"], &words[..]].concat());
                std::str::from_utf8(&output.stdout).unwrap().lines().count()
            };
            assert_eq!(again(&[]), wanted.len(), "{words:?}");
            assert_eq!(again(&["-sync", "-sync-level", "1"]), 0, "{words:?}");
        }
        fs::remove_dir_all(&made).unwrap();
    }
    // A dry run fails where the copy fails.
    for (source, target) in
        [(at("t/a"), "no/c".to_owned()), ("t/a".into(), at("no/c")), (at("t/a"), far("no/c"))]
    {
        stage.fails(&["-dry-run", &source, &target], 6);
        stage.fails(&[&source, &target], 6);
    }
    assert_eq!((names(&stage.here("")), names(&other.data)), (vec!["t".to_owned()], Vec::new()));
}

#[test]
fn servers_are_reached_by_addresses_of_the_chosen_family_only() {
    let Some(mut stage) = Stage::new("guc-family") else { return };
    let (server, other) = (stage.server("one", LOOPBACK), stage.server("two", LOOPBACK));
    fs::write(server.data.join("f"), "f").unwrap();
    fs::write(stage.here("f"), "f").unwrap();
    let (from, up, between) =
        (format!("{}/f", server.url), format!("{}/up", server.url), format!("{}/f", other.url));
    for (source, target) in [(&*from, "got"), ("f", &*up), (&*from, &*between)] {
        stage.does(&["-4", source, target]);
        let said = stage.fails(&["-6", source, target], 6);
        assert!(said.contains("127.0.0.1"), "{source} {target}: {said}");
    }
    let said = stage.fails(&["-4", "-6", &from, "got"], 1);
    assert!(said.contains("-6"), "{said}");
}
