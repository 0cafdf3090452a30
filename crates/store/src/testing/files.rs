//! Reading and writing open files: rules R1, R2 and R8.

use super::{Case, Rig, get, path, put, random, takes_any_order, why};
use crate::{
    Abilities, Ability, Access, ErrorKind, Extent, Finish, Make, Naming, Store, SyncScope,
};

pub(super) const CASES: &[Case] = &[
    Case { name: "R1: a read is short at the end only", run: short_reads },
    Case { name: "R1: reads at and behind the end give nothing", run: reads_behind },
    Case { name: "R1: a large file comes back whole by reads of any size", run: large },
    Case { name: "R2: another content has another version", run: versions },
    Case { name: "R2: an open file tells of the file that was opened", run: replaced_while_open },
    Case { name: "R2: a file that was removed is still read", run: removed_while_open },
    Case { name: "R8: a hole reads as zeros and is told as a hole", run: holes },
    Case { name: "R8: extents cover the range and no more", run: extents },
    Case { name: "an update in the middle leaves the rest", run: update },
    Case { name: "an update behind the end fills up with zeros", run: update_behind },
    Case { name: "a file grows and shrinks by its length", run: lengths },
    Case { name: "a file that is open to be read is not written", run: read_only },
    Case { name: "two handles see each other's writes", run: two_handles },
    Case { name: "a sync of an open file succeeds", run: sync },
    Case { name: "an empty file is a file", run: empty },
];

fn short_reads(rig: &dyn Rig) {
    let store = rig.store();
    let bytes = random(1, 100_000);
    put(&*store, "f", &bytes);
    let open = store.open(&path("f"), Access::Read).unwrap();
    for (at, ask) in
        [(0, 100_000), (0, 1), (5, 64 << 10), (99_999, 1), (50_000, 50_001), (99_990, 999)]
    {
        let mut into = vec![0; ask];
        let got = open.read_at(at as u64, &mut into).unwrap();
        assert_eq!(got, ask.min(100_000 - at), "{ask} at {at}");
        assert!(into[..got] == bytes[at..at + got], "{ask} at {at}");
    }
}

fn reads_behind(rig: &dyn Rig) {
    let store = rig.store();
    put(&*store, "f", b"12345");
    let open = store.open(&path("f"), Access::Read).unwrap();
    for at in [5, 6, 1 << 40] {
        assert_eq!(open.read_at(at, &mut [0; 10]).unwrap(), 0, "at {at}");
    }
    assert_eq!(open.read_at(0, &mut []).unwrap(), 0);
}

fn large(rig: &dyn Rig) {
    let store = rig.store();
    let bytes = random(2, (3 << 20) + 77);
    put(&*store, "f", &bytes);
    let open = store.open(&path("f"), Access::Read).unwrap();
    for step in [70_001, 1 << 20] {
        let mut all = Vec::new();
        let mut piece = vec![0; step];
        while let got @ 1.. = open.read_at(all.len() as u64, &mut piece).unwrap() {
            all.extend_from_slice(&piece[..got]);
        }
        assert!(all == bytes, "by {step}");
    }
}

fn versions(rig: &dyn Rig) {
    let store = rig.store();
    let mut seen = Vec::new();
    for content in [&b"one"[..], b"two", b"two", b"three"] {
        let version = put(&*store, "f", content).version;
        // Equal contents may have equal versions.
        let other = seen.iter().find(|(other, told)| *told == version && *other != content);
        assert!(version.is_none() || other.is_none(), "{content:?}");
        seen.push((content, version));
    }
    // Without a change of the file its version stays the same, or is `None`.
    let (a, b) = (store.look(&path("f")).unwrap(), rig.store().look(&path("f")).unwrap());
    assert!(a.version == b.version || b.version.is_some(), "{a:?} {b:?}");
    if store.abilities().update {
        let open = store.open(&path("f"), Access::Update).unwrap();
        let mut seen = vec![open.found().unwrap().version];
        for n in 0..50u8 {
            open.write_at(0, &[n]).unwrap();
            let version = open.found().unwrap().version;
            assert!(version.is_none() || !seen.contains(&version), "after write {n}");
            seen.push(version);
        }
    }
}

fn replaced_while_open(rig: &dyn Rig) {
    let store = rig.store();
    let (old, new) = (random(3, 50_000), random(4, 60_000));
    put(&*store, "f", &old);
    let open = store.open(&path("f"), Access::Read).unwrap();
    put(&*store, "f", &new);
    let mut into = vec![0; 70_000];
    // The reader sees the old file or an error, never a mixture.
    match open.read_at(0, &mut into) {
        Ok(got) => assert!(into[..got] == old[..]),
        Err(error) => {
            assert!(matches!(error.kind, ErrorKind::Changed | ErrorKind::Gone), "{error}")
        }
    }
    assert!(get(&*store, "f") == new);
}

fn removed_while_open(rig: &dyn Rig) {
    let store = rig.store();
    let old = random(5, 50_000);
    put(&*store, "f", &old);
    let open = store.open(&path("f"), Access::Read).unwrap();
    store.remove(&path("f"), crate::Kind::File).unwrap();
    let mut into = vec![0; 50_000];
    match open.read_at(0, &mut into) {
        Ok(got) => assert!(into[..got] == old[..]),
        Err(error) => assert_eq!(error.kind, ErrorKind::Gone),
    }
    if store.abilities().unnamed {
        put(&*store, "g", &old);
        let open = store.open(&path("g"), Access::Update).unwrap();
        store.remove(&path("g"), crate::Kind::File).unwrap();
        put(&*store, "g", b"another");
        open.write_at(50_000, b"new").unwrap();
        assert_eq!(open.found().unwrap().size, 50_003);
        let mut end = [0; 4];
        assert_eq!(open.read_at(49_999, &mut end).unwrap(), 4);
        assert_eq!(end[1..], *b"new");
        assert_eq!(get(&*store, "g"), b"another");
    }
}

/// A file with data at its start and its end, and a hole of three mebibytes between them: zeros, if the store takes bytes in
/// order only.
fn sparse(store: &dyn Store) -> (Vec<u8>, u64) {
    let (middle, length) = (4u64 << 20, (4 << 20) + 70_000);
    let (begin, end) = (random(6, 64 << 10), random(7, 70_000));
    let mut wanted = vec![0; length];
    wanted[..begin.len()].copy_from_slice(&begin);
    wanted[middle as usize..].copy_from_slice(&end);
    let draft = store.create(&path("f"), &Make::default()).unwrap();
    if takes_any_order(store, length as u64) {
        draft.write_at(0, &begin).unwrap();
        draft.write_at(middle, &end).unwrap();
    } else {
        draft.write_at(0, &wanted).unwrap();
    }
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    (wanted, length as u64)
}

fn holes(rig: &dyn Rig) {
    let store = rig.store();
    let (wanted, length) = sparse(&*store);
    assert!(get(&*store, "f") == wanted);
    let found = store.look(&path("f")).unwrap();
    assert_eq!(found.size, length);
    let open = store.open(&path("f"), Access::Read).unwrap();
    let extents = open.extents(0..length).unwrap();
    let is_hole = |extent: &Extent| matches!(extent, Extent::Hole(_));
    let Abilities { holes, .. } = store.abilities();
    assert_eq!(extents.iter().any(is_hole), holes, "{extents:?}");
    assert_eq!(found.allocated < 1 << 20, holes, "{found:?}");
}

fn extents(rig: &dyn Rig) {
    let store = rig.store();
    let (wanted, length) = sparse(&*store);
    let open = store.open(&path("f"), Access::Read).unwrap();
    for (from, to) in [(0, length), (1, 5), (100_000, 200_000), (length - 3, length + 99)] {
        let extents = open.extents(from..to).unwrap();
        let mut at = from;
        for extent in extents {
            let (Extent::Data(range) | Extent::Hole(range)) = extent.clone();
            assert_eq!(range.start, at, "{extent:?}");
            assert!(range.end > range.start, "{extent:?}");
            if let Extent::Hole(range) = &extent {
                let bytes = &wanted[range.start as usize..range.end as usize];
                assert!(bytes.iter().all(|byte| *byte == 0), "{extent:?} has data");
            }
            at = range.end;
        }
        assert_eq!(at, to.min(length), "{from}..{to}");
    }
}

/// Whether files can be written in place. A store that cannot must report that.
fn has_update(store: &dyn Store) -> bool {
    if !store.abilities().update {
        put(store, "x", b"x");
        let opened = store.open(&path("x"), Access::Update).map(drop);
        assert_eq!(why(opened), Some(ErrorKind::Unsupported(Ability::Update)));
    }
    store.abilities().update
}

fn update(rig: &dyn Rig) {
    let store = rig.store();
    if !has_update(&*store) {
        return;
    }
    let mut wanted = random(8, 300_000);
    put(&*store, "f", &wanted);
    let open = store.open(&path("f"), Access::Update).unwrap();
    for (at, length) in [(0, 10), (4095, 2), (100_000, 70_000), (299_999, 1)] {
        let new = random(at as u64, length);
        open.write_at(at as u64, &new).unwrap();
        wanted[at..at + length].copy_from_slice(&new);
    }
    drop(open);
    assert!(get(&*store, "f") == wanted);
}

fn update_behind(rig: &dyn Rig) {
    let store = rig.store();
    if !has_update(&*store) {
        return;
    }
    put(&*store, "f", b"12345");
    let open = store.open(&path("f"), Access::Update).unwrap();
    open.write_at(10_000, b"end").unwrap();
    drop(open);
    let mut wanted = b"12345".to_vec();
    wanted.resize(10_000, 0);
    wanted.extend_from_slice(b"end");
    assert!(get(&*store, "f") == wanted);
}

fn lengths(rig: &dyn Rig) {
    let store = rig.store();
    if !has_update(&*store) {
        return;
    }
    put(&*store, "f", &[7; 10_000]);
    let open = store.open(&path("f"), Access::Update).unwrap();
    open.set_len(5000).unwrap();
    assert_eq!(open.found().unwrap().size, 5000);
    open.set_len(9000).unwrap();
    let wanted = [vec![7; 5000], vec![0; 4000]].concat();
    assert!(get(&*store, "f") == wanted, "what was cut off comes back");
}

fn read_only(rig: &dyn Rig) {
    let store = rig.store();
    put(&*store, "f", b"12345");
    let open = store.open(&path("f"), Access::Read).unwrap();
    assert!(open.write_at(0, b"x").is_err());
    assert!(open.set_len(0).is_err());
    assert_eq!(get(&*store, "f"), b"12345");
}

fn two_handles(rig: &dyn Rig) {
    let store = rig.store();
    if !has_update(&*store) {
        return;
    }
    put(&*store, "f", b"12345");
    let writer = store.open(&path("f"), Access::Update).unwrap();
    writer.write_at(1, b"X").unwrap();
    drop(writer);
    assert_eq!(get(&*store, "f"), b"1X345");
}

fn sync(rig: &dyn Rig) {
    let store = rig.store();
    put(&*store, "f", b"12345");
    let access = if store.abilities().update { Access::Update } else { Access::Read };
    let open = store.open(&path("f"), access).unwrap();
    open.sync(SyncScope::Data).unwrap();
    open.sync(SyncScope::All).unwrap();
}

fn empty(rig: &dyn Rig) {
    let store = rig.store();
    let found = put(&*store, "f", b"");
    assert_eq!(found.size, 0);
    assert_eq!(get(&*store, "f"), b"");
    let open = store.open(&path("f"), Access::Read).unwrap();
    assert_eq!(open.extents(0..100).unwrap(), []);
}
