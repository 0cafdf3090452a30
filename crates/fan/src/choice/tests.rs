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
        (Some(found(Kind::File, 8, 100)), [Write, Stay, Write]),
        (Some(found(Kind::File, 7, 99)), [Write, Stay, Write]),
        (Some(found(Kind::File, 7, 101)), [Write, Stay, Stay]),
        (Some(found(Kind::Link, 7, 100)), [Write, Stay, Write]),
        (Some(found(Kind::Link, 7, 101)), [Write, Stay, Stay]),
        (Some(found(Kind::Dir, 7, 101)), [Refuse(Directory), Stay, Refuse(Directory)]),
        (Some(found(Kind::Special, 7, 101)), [Refuse(Special), Stay, Refuse(Special)]),
    ];
    for (found, wanted) in table {
        let all = [Older::Replaced, Older::Kept, Older::KeptIfNewer];
        assert_eq!(all.map(|older| action(new, found.as_ref(), older)), wanted, "{found:?}");
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
    let choice = Choice { trees: Trees::Refused, ..choice };
    let selection = Selection::new(&choice);
    assert_eq!(selection.of(b"d/deep", true), Tree);
    assert_eq!(selection.of(b"d/deep/x", false), LeftOut);
    assert_eq!(selection.of(b"e/f", false), Copied);
}
