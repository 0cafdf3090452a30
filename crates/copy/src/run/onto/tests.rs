//! Copies that cannot be meant, by name and by link.

use super::*;
use hikyaku_transfer::{Depth, Rules};
use std::os::unix::fs::symlink;

#[test]
fn what_cannot_be_meant_is_found_through_links_and_nothing_else_is() {
    let scratch = std::env::temp_dir().join(format!("hikyaku-onto-{}", std::process::id()));
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(scratch.join("a/b/c")).unwrap();
    fs::create_dir_all(scratch.join("d")).unwrap();
    for file in ["f", "a/f", "d/g"] {
        fs::write(scratch.join(file), b"x").unwrap();
    }
    fs::hard_link(scratch.join("f"), scratch.join("hard")).unwrap();
    symlink("f", scratch.join("soft")).unwrap();
    symlink("../f", scratch.join("d/f")).unwrap();
    symlink("a/b", scratch.join("inside")).unwrap();
    symlink("../soft", scratch.join("d/soft")).unwrap();
    let plain =
        Options { rules: Rules { depth: Depth::Tree, ..Rules::default() }, ..Options::default() };
    let kept = Options { rules: Rules { links: Links::Kept, ..plain.rules }, ..plain.clone() };
    let objects = |source: &str, target: &str, options| {
        objection(&scratch.join(source), &scratch.join(target), options).is_some()
    };
    for (source, target) in [
        ("f", "f"),
        ("f", "./f"),
        ("f", "."),
        ("f", "hard"),
        ("f", "a/../f"),
        ("a", "."),
        ("a", "a"),
        ("a", "a/b"),
        ("a", "a/new"),
        ("a", "a/b/c/new"),
        ("a/.", "a/b"),
        ("a/.", "a"),
        ("a/b", "a"),
        (".", "a"),
        ("a", "inside/x"),
        ("a", "inside"),
    ] {
        assert!(objects(source, target, &plain), "{source} {target}");
        assert!(objects(source, target, &kept), "{source} {target} -a");
    }
    for (source, target) in
        [("f", "soft"), ("soft", "f"), ("f", "d"), ("soft", "hard"), ("soft", ".")]
    {
        assert!(objects(source, target, &plain), "{source} {target}");
    }
    for (source, target) in [
        ("f", "new"),
        ("f", "a"),
        ("a", "d"),
        ("a/b", "d"),
        ("a/b", "."),
        ("a", "ab"),
        ("d/g", "f"),
        ("gone", "gone"),
        ("a/.", "d"),
        ("a", "d/new"),
    ] {
        assert!(!objects(source, target, &plain), "{source} {target}");
        assert!(!objects(source, target, &kept), "{source} {target} -a");
    }
    // The link would take the place of the file that it leads to.
    assert!(objects("soft", "f", &kept) && !objects("soft", "d", &kept));
    assert!(!objects("f", "soft", &kept), "a file takes the place of a link");
    let listed = Options { files: vec![b"f".to_vec()], ..plain.clone() };
    assert!(objects("a", "a", &listed) && !objects("a", "d", &listed));
    fs::remove_dir_all(scratch).unwrap();
}
