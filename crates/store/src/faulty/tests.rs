//! Each fault affects the specified calls in the specified way.

use super::*;
use crate::Memory;

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

fn put(store: &dyn Store, at: &str, bytes: &[u8]) -> Result<Found> {
    let draft = store.create(&path(at), &Make::default())?;
    draft.write_at(0, bytes)?;
    draft.sync()?;
    draft.name(Naming::Replace, &Finish::default())
}

const fn when(operation: Operation, nth: u32, times: u32) -> When {
    When { operation, path: None, nth, times }
}

#[test]
fn a_fault_affects_only_its_call() {
    let store = Faulty::new(Memory::default());
    store.add(when(Operation::Write, 2, 1), Fault::Error(ErrorKind::NoSpace));
    let kinds: Vec<_> = (0..4).map(|_| put(&store, "a", b"x").err().map(|e| e.kind)).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::NoSpace), None, None]);
    assert_eq!(store.struck(), 1);
}

#[test]
fn a_fault_may_be_limited_to_one_path() {
    let store = Faulty::new(Memory::default());
    let only = When { path: Some(path("b")), ..when(Operation::Name, 1, u32::MAX) };
    store.add(only, Fault::Error(ErrorKind::Denied));
    put(&store, "a", b"x").unwrap();
    assert_eq!(put(&store, "b", b"x").unwrap_err().kind, ErrorKind::Denied);
    assert_eq!(put(&store, "b", b"x").unwrap_err().kind, ErrorKind::Denied);
    assert!(store.look(&path("b")).is_err());
}

#[test]
fn half_writes_short_reads_and_flipped_bits_have_their_effect() {
    let store = Faulty::new(Memory::default());
    let draft = store.create(&path("a"), &Make::default()).unwrap();
    store.add(when(Operation::Write, 1, 1), Fault::HalfWrite(ErrorKind::NoSpace));
    assert!(draft.write_at(0, b"12345678").is_err());
    let mut into = [0; 8];
    assert_eq!(draft.read_at(0, &mut into).unwrap(), 4);
    drop(draft);
    put(&store, "a", b"12345678").unwrap();
    store.add(when(Operation::Read, 2, 1), Fault::FlippedBit);
    store.add(when(Operation::Read, 3, 1), Fault::ShortRead);
    let open = store.open(&path("a"), Access::Read).unwrap();
    let mut read = || {
        let length = open.read_at(0, &mut into).unwrap();
        into[..length].to_vec()
    };
    assert_eq!(read(), b"12345678");
    assert_eq!(read(), b"1234567(");
    assert_eq!(read(), b"1234");
    assert_eq!(read(), b"12345678");
}

#[test]
fn data_after_a_lying_sync_is_lost_in_a_crash() {
    let memory = Memory::default();
    let store = Faulty::new(memory.clone());
    store.add(when(Operation::SyncFile, 1, 1), Fault::LyingSync);
    put(&store, "a", b"gone").unwrap();
    put(&store, "b", b"here").unwrap();
    store.sync(&[StorePath::ROOT]).unwrap();
    let after = memory.crash();
    assert_eq!(after.look(&path("a")).unwrap().size, 0);
    assert_eq!(after.look(&path("b")).unwrap().size, 4);
}
