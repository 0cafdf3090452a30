//! Tables of names, and of what may have the name of a file.

use super::*;
use hikyaku_store::{Identity, Owner, Time};

fn found(kind: Kind, size: u64, secs: i64) -> Found {
    Found {
        kind,
        size,
        allocated: size,
        mode: 0o644,
        owner: Owner::default(),
        modified: Time { secs, nanos: 0 },
        identity: Identity { device: 1, number: 1 },
        version: None,
    }
}

#[test]
fn what_is_there_is_replaced_only_if_the_user_does_not_keep_it() {
    use Action::{Refuse, Same, Stay, Write};
    use InTheWay::{Directory, Special};
    let new = Seen::from(&found(Kind::File, 7, 100));
    // What is there, and what becomes of the new file if older files are replaced, kept, kept if newer.
    let table = [
        (None, [Write, Write, Write]),
        (Some(found(Kind::File, 7, 100)), [Same, Stay, Same]),
        (Some(found(Kind::File, 8, 100)), [Write, Stay, Stay]),
        (Some(found(Kind::File, 7, 99)), [Write, Stay, Write]),
        (Some(found(Kind::File, 7, 101)), [Write, Stay, Stay]),
        (Some(found(Kind::Link, 7, 100)), [Write, Stay, Stay]),
        (Some(found(Kind::Link, 7, 99)), [Write, Stay, Write]),
        (Some(found(Kind::Link, 7, 101)), [Write, Stay, Stay]),
        (Some(found(Kind::Dir, 7, 101)), [Refuse(Directory), Stay, Refuse(Directory)]),
        (Some(found(Kind::Special, 7, 101)), [Refuse(Special), Stay, Refuse(Special)]),
    ];
    for (found, wanted) in table {
        let all = [Existing::Replaced, Existing::Kept, Existing::KeptIfNewer];
        assert_eq!(all.map(|older| action(new, found.as_ref(), older)), wanted, "{found:?}");
    }
}

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
fn a_link_takes_the_place_of_files_and_other_links() {
    use LinkAction::{Refuse, Replace, Stay};
    let new = Link { text: b"new".to_vec(), modified: Time { secs: 100, nanos: 0 } };
    // What is there and says this, and what becomes of the link if older ones are replaced, and if newer ones are kept.
    for (found, text, wanted) in [
        (found(Kind::Link, 3, 101), Some("new"), [Stay, Stay]),
        (found(Kind::Link, 3, 101), Some("old"), [Replace, Stay]),
        (found(Kind::Link, 3, 99), Some("old"), [Replace, Replace]),
        (found(Kind::Link, 3, 99), None, [Replace, Replace]),
        (found(Kind::File, 3, 99), None, [Replace, Replace]),
        (found(Kind::File, 3, 100), None, [Replace, Stay]),
        (found(Kind::Dir, 3, 99), None, [InTheWay::Directory; 2].map(Refuse)),
        (found(Kind::Special, 3, 99), None, [InTheWay::Special; 2].map(Refuse)),
    ] {
        let of = |existing| action_of_link(&new, (&found, text.map(str::as_bytes)), existing);
        assert_eq!(
            [Existing::Replaced, Existing::KeptIfNewer].map(of),
            wanted,
            "{found:?} {text:?}"
        );
        assert_eq!(of(Existing::Kept), Stay, "{found:?}");
    }
}

#[test]
fn patterns_and_lists_choose_names_below_a_source() {
    use Wanted::{Above, Copied, LeftOut, Tree};
    let leaves_out = |path: &[u8], is_dir: bool| {
        path.ends_with(b".tmp") || (is_dir && path == b"logs") || path == b"a/b"
    };
    let choice = Choice { leaves_out: &leaves_out, ..Choice::TREES };
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
