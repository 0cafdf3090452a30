//! Tables of names, and of what may have the name of a file.

use super::*;
use hikyaku_store::Time;

#[test]
fn only_what_is_older_gives_way_where_newer_is_kept() {
    let time = |secs, nanos| Time { secs, nanos };
    let new = time(100, 5);
    for (there, stays) in [
        (time(99, 999_999_999), false),
        (time(100, 4), false),
        (time(100, 5), true),
        (time(100, 6), true),
        (time(101, 0), true),
    ] {
        assert_eq!(Existing::KeptIfNewer.keeps(new, there), stays, "{there:?}");
        assert!(!Existing::Replaced.keeps(new, there) && Existing::Kept.keeps(new, there));
    }
    // A target of whole seconds holds this one as 100.
    assert!(Existing::KeptIfNewer.keeps(time(100, 0), time(100, 0)));
}

#[test]
fn patterns_and_lists_choose_names_below_a_source() {
    use Wanted::{Above, Copied, LeftOut, Tree};
    let exclude = ["*.tmp", "/logs/", "a/b"].map(|text| text.parse().unwrap()).to_vec();
    let patterns = &Patterns { exclude, ..Patterns::NONE };
    let choice = Choice { patterns, ..Choice::TREES };
    let selection = Selection::new(&choice);
    for (path, is_dir, wanted) in [
        ("", true, Copied),
        ("x", false, Copied),
        ("x.tmp", false, LeftOut),
        ("d/x.tmp", false, LeftOut),
        ("logs", true, LeftOut),
        ("logs/deep/x", false, LeftOut),
        ("logs", false, Copied),
        ("a/b", true, LeftOut),
        ("a/b/c", false, LeftOut),
    ] {
        assert_eq!(selection.of(path.as_bytes(), is_dir), wanted, "{path}");
    }
    let listed = ["d/deep", "e/f", "x.tmp"].map(|path| path.as_bytes().to_vec());
    let choice = Choice { listed: &listed, ..choice };
    let selection = Selection::new(&choice);
    for (path, is_dir, wanted) in [
        ("", true, LeftOut),
        ("d", true, Above),
        ("d", false, LeftOut),
        ("d/deep", true, Copied),
        ("d/deep/x", false, Copied),
        ("d/deep/logs", true, LeftOut),
        ("d/deep/x.tmp", false, LeftOut),
        ("d/other", false, LeftOut),
        ("e/f", false, Copied),
        ("x.tmp", false, LeftOut),
    ] {
        assert_eq!(selection.of(path.as_bytes(), is_dir), wanted, "{path}");
    }
    let choice = Choice { depth: Depth::File, ..choice };
    let selection = Selection::new(&choice);
    assert_eq!(selection.of(b"d/deep", true), Tree);
    assert_eq!(selection.of(b"d/deep/x", false), LeftOut);
    assert_eq!(selection.of(b"e/f", false), Copied);
}
