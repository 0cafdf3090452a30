//! Tests of the rules. What rsync does with the same rules is compared in `cli/tests/e2e/sftp/beside_rsync.rs`.

use super::*;

fn rules(lines: &[&str]) -> Rules {
    let mut rules = Rules::default();
    lines.iter().for_each(|line| rules.filter(line).unwrap());
    rules
}

#[test]
fn the_first_rule_that_matches_decides() {
    let rules = rules(&[
        "+ keep.tmp",
        "- *.tmp",
        "- /logs/",
        "- a/**/b",
        "- cache/",
        "- d/***",
        "P kept",
        "H hidden",
        "- **/top",
    ]);
    // A path, whether it is a directory, whether it is copied, and whether it may be deleted.
    let cases = [
        ("x.tmp", false, false, false),
        ("deep/x.tmp", false, false, false),
        ("deep/keep.tmp", false, true, true),
        ("logs", true, false, false),
        ("logs", false, true, true),
        ("deep/logs", true, true, true),
        ("a/x/y/b", false, false, false),
        ("z/a/x/b", false, false, false),
        ("a/b", false, true, true),
        ("deep/cache", true, false, false),
        ("d", true, false, false),
        ("d", false, true, true),
        ("d/x/y", false, false, false),
        ("kept", false, true, false),
        ("hidden", false, false, true),
        ("other", false, true, true),
        ("top", false, false, false),
        ("deep/top", false, false, false),
        ("x-top", false, true, true),
    ];
    for (path, is_dir, copied, deleted) in cases {
        let found =
            (rules.copies(path.as_bytes(), is_dir), rules.may_delete(path.as_bytes(), is_dir));
        assert_eq!(found, (copied, deleted), "{path} {is_dir}");
    }
}

#[test]
fn three_stars_match_as_in_rsync_whatever_is_before_them() {
    // A rule, a path, whether it is a directory, and whether it is copied.
    let cases = [
        ("- **/***", "top", false, false),
        ("- **/***", "top", true, false),
        ("- /d/***", "d", true, false),
        ("- /d/***", "d", false, true),
        ("- /d/***", "d/x/y", false, false),
        ("- /d/***", "e/d/x", false, true),
        ("- a/b/***", "z/a/b/x", false, false),
        // In a pattern with stars a backslash protects what follows, a slash too.
        (r"- j\/***", r"j\/x", false, true),
        (r"- j\/***", r"j\", true, true),
        (r"- j\/***", "j/x", false, false),
    ];
    for (rule, path, is_dir, wanted) in cases {
        assert_eq!(rules(&[rule]).copies(path.as_bytes(), is_dir), wanted, "{rule} {path}");
    }
}

#[test]
fn names_may_be_chosen_by_leaving_out_all_others() {
    let rules = rules(&["+ */", "+ *.c", "- *"]);
    assert!(rules.copies(b"deep", true) && rules.copies(b"deep/a.c", false));
    assert!(!rules.copies(b"deep/a.h", false));
}

#[test]
fn rules_are_cleared_and_bad_ones_are_errors() {
    let mut all = rules(&["- a"]);
    all.filter("!").unwrap();
    assert!(all.copies(b"a", false));
    all.exclude("+ b").unwrap();
    all.exclude("b").unwrap();
    assert!(all.copies(b"b", false));
    for text in ["", "-", "* a", "-x a", ": .rsync-filter", "- /", ". /no/such/file"] {
        assert!(all.filter(text).is_err(), "{text}");
    }
}
