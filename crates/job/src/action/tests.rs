//! Each kind of entry meets each kind of existing entry, under each rule.

use super::*;

const EXISTING: [Existing; 3] = [Existing::Replaced, Existing::Kept, Existing::KeptIfNewer];

fn taken(kind: Kind, size: u64, secs: i64) -> Taken {
    Taken { kind, content: Content { size, modified: Time { secs, nanos: 0 } } }
}

/// The existing entry, and the actions where existing files are replaced, kept, and kept if newer.
type Row<A> = (Option<Taken>, [A; 3]);

#[test]
fn a_file_replaces_files_and_links_unless_its_user_keeps_them() {
    use FileAction::{Refuse, Same, Stay, Write};
    use InTheWay::{Directory, Special};
    let new = taken(Kind::File, 7, 100).content;
    let always_copied: [Row<FileAction>; 11] = [
        (None, [Write, Write, Write]),
        (Some(taken(Kind::File, 7, 100)), [Write, Stay, Stay]),
        (Some(taken(Kind::File, 8, 100)), [Write, Stay, Stay]),
        (Some(taken(Kind::File, 7, 99)), [Write, Stay, Write]),
        (Some(taken(Kind::File, 7, 101)), [Write, Stay, Stay]),
        (Some(taken(Kind::Link, 7, 100)), [Write, Stay, Stay]),
        (Some(taken(Kind::Link, 7, 99)), [Write, Stay, Write]),
        (Some(taken(Kind::Link, 7, 101)), [Write, Stay, Stay]),
        (Some(taken(Kind::Dir, 7, 101)), [Refuse(Directory), Stay, Refuse(Directory)]),
        (Some(taken(Kind::Special, 7, 101)), [Refuse(Special), Stay, Refuse(Special)]),
        (Some(taken(Kind::Special, 7, 100)), [Refuse(Special), Stay, Refuse(Special)]),
    ];
    for (taken, wanted) in always_copied {
        let of = |same| EXISTING.map(|existing| file_action(new, taken, (existing, same)));
        assert_eq!(of(super::Same::Never), wanted, "{taken:?}");
        // Of the same table only the file of the same size and time is another case.
        let is_same = taken.is_some_and(|taken| taken.kind == Kind::File && taken.content == new);
        let wanted = if is_same { [Same, Stay, Same] } else { wanted };
        assert_eq!(of(super::Same::SizeAndTime), wanted, "{taken:?}");
    }
}

#[test]
fn nothing_but_the_same_file_is_left_alone_where_none_is_to_be_replaced() {
    let new = taken(Kind::File, 7, 100).content;
    for (there, wanted) in [
        (None, FileAction::Write),
        (Some(taken(Kind::File, 7, 100)), FileAction::Same),
        (Some(taken(Kind::File, 8, 100)), FileAction::Refuse(InTheWay::File)),
        (Some(taken(Kind::File, 7, 99)), FileAction::Refuse(InTheWay::File)),
        (Some(taken(Kind::Link, 7, 100)), FileAction::Refuse(InTheWay::File)),
        (Some(taken(Kind::Dir, 7, 100)), FileAction::Refuse(InTheWay::Directory)),
    ] {
        let rules = (Existing::Refused, Same::SizeAndTime);
        assert_eq!(file_action(new, there, rules), wanted, "{there:?}");
    }
    let link = (taken(Kind::Link, 3, 100), Some(&b"old"[..]));
    let refused = LinkAction::Refuse(InTheWay::File);
    assert_eq!(link_action((b"new", new.modified), Some(link), Existing::Refused), refused);
}

#[test]
fn a_link_replaces_files_and_other_links_unless_its_user_keeps_them() {
    use LinkAction::{Make, Refuse, Stay};
    let new = (&b"new"[..], Time { secs: 100, nanos: 0 });
    for (kind, secs, text, wanted) in [
        (Kind::Link, 101, Some("new"), [Stay, Stay, Stay]),
        (Kind::Link, 99, Some("new"), [Stay, Stay, Stay]),
        (Kind::Link, 101, Some("old"), [Make, Stay, Stay]),
        (Kind::Link, 99, Some("old"), [Make, Stay, Make]),
        (Kind::Link, 99, None, [Make, Stay, Make]),
        (Kind::File, 99, None, [Make, Stay, Make]),
        (Kind::File, 100, None, [Make, Stay, Stay]),
        (Kind::Dir, 99, None, [Refuse(InTheWay::Directory), Stay, Refuse(InTheWay::Directory)]),
        (Kind::Special, 99, None, [Refuse(InTheWay::Special), Stay, Refuse(InTheWay::Special)]),
    ] {
        let taken = (taken(kind, 3, secs), text.map(str::as_bytes));
        let of = |existing| link_action(new, Some(taken), existing);
        assert_eq!(EXISTING.map(of), wanted, "{taken:?}");
    }
    assert_eq!(EXISTING.map(|existing| link_action(new, None, existing)), [Make; 3]);
}

#[test]
fn a_directory_goes_into_a_directory_and_replaces_nothing() {
    assert_eq!(dir_action(None), DirAction::Make);
    assert_eq!(dir_action(Some(Kind::Dir)), DirAction::Merge);
    for kind in [Kind::File, Kind::Link, Kind::Special] {
        assert_eq!(dir_action(Some(kind)), DirAction::Refuse(InTheWay::NoDirectory), "{kind:?}");
    }
}
