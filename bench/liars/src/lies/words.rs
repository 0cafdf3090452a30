//! Messages as liars put them together.

use hikyaku_transfer::{
    Entry, EntryId, EntryKind, Failure, FailureKind, FileHash, FromSender, SegmentHash,
    SegmentIndex, Sources, Version,
};

/// A message, and bytes behind it.
pub(super) type Said = (FromSender, Vec<u8>);

/// What would do something to a terminal.
pub(super) const CONTROL: &str = "\u{1b}[2J\u{1b}]0;x\u{7}\r\n\u{9b}31m\u{202e}gone\u{8}";

pub(super) fn begin(sources: Sources) -> FromSender {
    FromSender::Begin { sources, of: fastrand_bytes(), from: CONTROL.to_owned() }
}

fn fastrand_bytes() -> [u8; 32] {
    std::array::from_fn(|_| fastrand::u8(..))
}

pub(super) fn entry(id: u64, path: &[u8], kind: EntryKind) -> Entry {
    let (id, path, attributes) = (EntryId(id), path.to_vec(), Vec::new());
    let version = Version([0; 32]);
    Entry { id, path, mode: 0o6777, modified: (0, 0), version, kind, owner: None, attributes }
}

pub(super) fn made(id: u64, path: &[u8], kind: EntryKind) -> Said {
    (FromSender::Entry(entry(id, path, kind)), Vec::new())
}

pub(super) fn dir(path: &[u8]) -> Said {
    made(u64::MAX, path, EntryKind::Dir)
}

pub(super) fn link(path: &[u8], to: &str) -> Said {
    made(u64::MAX, path, EntryKind::Link(to.as_bytes().to_vec()))
}

pub(super) fn large(id: u64, path: &[u8], size: u64) -> Said {
    made(id, path, EntryKind::File { size })
}

pub(super) fn small(path: &[u8]) -> Said {
    let bytes = b"evil".to_vec();
    let entry = entry(u64::MAX, path, EntryKind::File { size: bytes.len() as u64 });
    (FromSender::Small { entry, hash: hash(&bytes) }, bytes)
}

pub(super) fn hash(bytes: &[u8]) -> FileHash {
    FileHash(*blake3::hash(bytes).as_bytes())
}

pub(super) fn data(id: u64, object: u32, ranges: &[(u64, u64)]) -> Said {
    (FromSender::Data { id: EntryId(id), object, ranges: ranges.to_vec() }, Vec::new())
}

pub(super) fn hashes(id: u64, first: u32, count: usize) -> Said {
    let hashes = vec![SegmentHash([0; 32]); count];
    (FromSender::Segments { id: EntryId(id), first: SegmentIndex(first), hashes }, Vec::new())
}

pub(super) fn read(id: u64) -> Said {
    (FromSender::Read { id: EntryId(id) }, Vec::new())
}

pub(super) fn unreadable(text: &str) -> Said {
    (FromSender::Unreadable { id: None, failure: failure(text) }, Vec::new())
}

pub(super) fn failure(text: &str) -> Failure {
    let place = [CONTROL.as_bytes(), &[b'x'; 4000]].concat();
    Failure { place, kind: FailureKind::Other, text: text.to_owned() }
}
