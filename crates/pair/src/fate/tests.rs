//! Every kind of entry meets every kind of thing, under every rule.

use super::*;
use hikyaku_transfer::{EntryId, Version};

fn entry(kind: EntryKind) -> Entry {
    Entry {
        id: EntryId(0),
        path: b"a".to_vec(),
        mode: 0o644,
        modified: (100, 0),
        version: Version([0; 32]),
        kind,
        owner: None,
        attributes: Vec::new(),
    }
}

fn found(kind: Kind, seconds: i64) -> Found {
    let meta = Meta {
        kind,
        size: 5,
        mode: 0o644,
        modified: (seconds, 0),
        changed: (seconds, 0),
        identity: (1, 2),
        owner: hikyaku_fs::Owner { user: 0, group: 0 },
        blocks: 8,
    };
    Found { meta, link: (kind == Kind::Link).then(|| b"there".to_vec()) }
}

fn of(kind: &EntryKind, found: Option<&Found>, existing: Existing) -> Fate {
    fate(&entry(kind.clone()), found, &Options { existing, ..Options::default() })
}

const FILE: EntryKind = EntryKind::File { size: 9 };

fn link(to: &[u8]) -> EntryKind {
    EntryKind::Link(to.to_vec())
}

#[test]
fn where_nothing_is_everything_is_made() {
    for existing in [Existing::Replaced, Existing::Kept, Existing::KeptIfNewer] {
        assert_eq!(of(&FILE, None, existing), Fate::Write(Manner::Renamed));
        assert_eq!(of(&link(b"x"), None, existing), Fate::Link);
        assert_eq!(of(&EntryKind::Dir, None, existing), Fate::Make);
    }
}

#[test]
fn what_its_user_wants_to_keep_stays_whatever_comes() {
    for kind in [Kind::File, Kind::Link, Kind::Dir, Kind::Special] {
        let there = found(kind, 0);
        for coming in [FILE, link(b"x")] {
            assert_eq!(of(&coming, Some(&there), Existing::Kept), Fate::Stay, "{kind:?}");
        }
    }
    for kind in [Kind::File, Kind::Link] {
        for coming in [FILE, link(b"x")] {
            let newer = found(kind, 100);
            assert_eq!(of(&coming, Some(&newer), Existing::KeptIfNewer), Fate::Stay, "{kind:?}");
            let older = found(kind, 99);
            assert_ne!(of(&coming, Some(&older), Existing::KeptIfNewer), Fate::Stay, "{kind:?}");
        }
    }
}

#[test]
fn directories_and_devices_are_never_replaced() {
    for existing in [Existing::Replaced, Existing::KeptIfNewer] {
        for coming in [FILE, link(b"x")] {
            let refusal = |kind| match of(&coming, Some(&found(kind, 0)), existing) {
                Fate::Refuse(refusal) => refusal,
                other => panic!("{other:?}"),
            };
            assert_eq!(refusal(Kind::Dir), Refusal::IsDirectory);
            assert_eq!(refusal(Kind::Special), Refusal::Special);
        }
    }
    for existing in [Existing::Replaced, Existing::Kept, Existing::KeptIfNewer] {
        for kind in [Kind::File, Kind::Link, Kind::Special] {
            let fate = of(&EntryKind::Dir, Some(&found(kind, 0)), existing);
            assert_eq!(fate, Fate::Refuse(Refusal::NotDirectory), "{kind:?}");
        }
        assert_eq!(of(&EntryKind::Dir, Some(&found(Kind::Dir, 0)), existing), Fate::Merge);
    }
}

#[test]
fn files_and_links_are_replaced() {
    for kind in [Kind::File, Kind::Link] {
        let there = found(kind, 0);
        assert_eq!(of(&FILE, Some(&there), Existing::Replaced), Fate::Write(Manner::Renamed));
        assert_eq!(of(&link(b"x"), Some(&there), Existing::Replaced), Fate::Link);
    }
    assert_eq!(of(&link(b"there"), Some(&found(Kind::Link, 0)), Existing::Replaced), Fate::Stay);
    let options = Options { write: Write::InPlace, ..Options::default() };
    let in_place = |kind| fate(&entry(FILE), Some(&found(kind, 0)), &options);
    assert_eq!(in_place(Kind::File), Fate::Write(Manner::InPlace));
    assert_eq!(in_place(Kind::Link), Fate::Write(Manner::Renamed), "a link is not written through");
}
