//! Uploads of one stream: the drafts that are being written.

use super::name::{Content, Whole};
use super::requests::{Teller, store_path};
use super::{Session, Writes};
use crate::message::{NewFile, Put, Reply, RequestId, SMALL_BYTES_MAX, Taken};
use hikyaku_reach::TalkError;
use hikyaku_store::{Draft, ErrorKind, Kind, Make, Result, StoreError, StorePath};
use hikyaku_transfer::{FileHash, Geometry};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The drafts of one stream, by the number of the request that began them. They are removed with the stream.
// spec: store-put-5
#[derive(Default)]
pub(super) struct Drafts<'a>(HashMap<RequestId, Begun<'a>>);

/// A draft that was begun and not ended.
struct Begun<'a> {
    state: Result<Written>,
    _place: Place<'a>,
}

/// How far a draft is. After an error nothing of it is kept; what follows is refused with the same error.
struct Written {
    draft: Box<dyn Draft>,
    path: StorePath,
    /// The file, unless its size and metadata come after its bytes.
    file: Option<NewFile>,
    bytes: u64,
}

/// The place of a draft among those that a client may have.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Bytes that are reserved for a file before they come: a client that only tells sizes must not fill the disk.
const RESERVED_BYTES_MAX: u64 = 1 << 30;
/// Drafts of a client for which bytes are reserved, for the same reason.
const RESERVED_DRAFTS_MAX: usize = 16;

/// Whether room is reserved for a draft.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reserve {
    Space,
    Nothing,
}

/// What a client did that no client does.
type Broken = &'static str;

impl<'a> Drafts<'a> {
    /// Makes one step of an upload, and answers it. `bytes` are those behind the message. What is whole is named by
    /// another thread, and answered then.
    // spec: store-put-1
    pub(super) fn put(
        &mut self,
        session: &'a Session,
        put: Put,
        bytes: &[u8],
        teller: Teller,
    ) -> std::result::Result<std::result::Result<(), TalkError>, Broken> {
        let done = match put {
            Put::Small { file, hash } => match small(session, &file, bytes, hash) {
                Ok(path) => {
                    let content = Content::Bytes(bytes.to_vec());
                    session.naming.put(Whole { content, file, path, teller });
                    return Ok(Ok(()));
                }
                Err(error) => Err(error),
            },
            Put::Begin { file, data } => {
                self.begin(session, teller.id, |room| begin(session, file, data, room))?
            }
            Put::BeginUnsized { path, expected } => self
                .begin(session, teller.id, |room| begin_unsized(session, &path, expected, room))?,
            Put::Bytes { draft, at, hash, .. } => {
                let begun = self.0.get_mut(&draft).ok_or(UNKNOWN)?;
                begun.write(at, bytes, hash)
            }
            Put::Zeros { draft, at, length } => {
                self.0.get_mut(&draft).ok_or(UNKNOWN)?.leave_out(at, length)
            }
            Put::Finish { draft } => {
                let begun = self.0.remove(&draft).ok_or(UNKNOWN)?;
                match begun.whole(None) {
                    Ok(whole) => {
                        whole.name(session, teller);
                        return Ok(Ok(()));
                    }
                    Err(error) => Err(error),
                }
            }
            Put::FinishAs { draft, file } => {
                let begun = self.0.remove(&draft).ok_or(UNKNOWN)?;
                match begun.whole(Some(file)) {
                    Ok(whole) => {
                        whole.name(session, teller);
                        return Ok(Ok(()));
                    }
                    Err(error) => Err(error),
                }
            }
            Put::Drop { draft } => {
                self.0.remove(&draft).ok_or(UNKNOWN)?;
                Ok(())
            }
        };
        Ok(match done {
            Ok(()) => teller.say(Reply::Done),
            Err(error) => teller.refuse(&error),
        })
    }

    /// Begins the draft of this number, if the client may have one more.
    fn begin(
        &mut self,
        session: &'a Session,
        id: RequestId,
        begin: impl FnOnce(Reserve) -> Result<Written>,
    ) -> std::result::Result<Result<()>, Broken> {
        let place = Place(&session.drafts);
        let before = session.drafts.fetch_add(1, Ordering::Relaxed);
        if before >= session.limits.drafts {
            return Err("too many files are uploaded at once");
        }
        let reserve = if before < RESERVED_DRAFTS_MAX { Reserve::Space } else { Reserve::Nothing };
        let state = begin(reserve);
        let done = state.as_ref().map(drop).map_err(Clone::clone);
        self.0.insert(id, Begun { state, _place: place });
        Ok(done)
    }
}

const UNKNOWN: Broken = "bytes of a file whose upload was not begun";

/// The path of a file that may be written; it is no directory, device, FIFO or socket.
// spec: store-write-1
fn writable(session: &Session, path: &[u8], taken: Taken) -> Result<StorePath> {
    let path = store_path(path)?;
    let fail = |kind| Err(StoreError::new("write", &path, kind));
    if session.limits.writes == Writes::Refused {
        return fail(ErrorKind::ReadOnly);
    }
    match (session.store.look(&path), taken) {
        (Ok(found), _) if found.kind == Kind::Dir => fail(ErrorKind::IsDir),
        (Ok(found), _) if found.kind == Kind::Special => fail(ErrorKind::SPECIAL),
        (Ok(_), Taken::Kept) => fail(ErrorKind::Exists),
        (Err(error), _) if error.kind != ErrorKind::NotFound => Err(error),
        _ => Ok(path),
    }
}

fn small(session: &Session, file: &NewFile, bytes: &[u8], hash: FileHash) -> Result<StorePath> {
    let path = writable(session, &file.path, file.taken)?;
    check(&path, bytes, hash)?;
    Ok(path)
}

/// Whether the bytes are not too many and have their hash.
fn check(path: &StorePath, bytes: &[u8], hash: FileHash) -> Result<()> {
    let fail = |kind| Err(StoreError::new("write", path, kind));
    if bytes.len() as u64 > SMALL_BYTES_MAX {
        return fail(ErrorKind::System(22));
    }
    match hash == FileHash(*blake3::hash(bytes).as_bytes()) {
        true => Ok(()),
        false => fail(ErrorKind::Damaged),
    }
}

// spec: store-put-2
fn begin(session: &Session, file: NewFile, data: u64, reserve: Reserve) -> Result<Written> {
    let path = writable(session, &file.path, file.taken)?;
    if Geometry::new(file.size).is_none() {
        return Err(StoreError::new("write", &path, ErrorKind::TooLarge));
    }
    // Holes would be filled by what is reserved.
    let size = (data >= file.size).then_some(file.size);
    let draft = create(session, &path, (data, size), reserve)?;
    Ok(Written { draft, file: Some(file), path, bytes: 0 })
}

// spec: store-put-6
fn begin_unsized(
    session: &Session,
    path: &[u8],
    expected: Option<u64>,
    reserve: Reserve,
) -> Result<Written> {
    // Whether a file of the name stays is told with the metadata.
    let path = writable(session, path, Taken::Replaced)?;
    let draft = create(session, &path, (expected.unwrap_or(0), expected), reserve)?;
    Ok(Written { draft, file: None, path, bytes: 0 })
}

/// Begins a draft of which so many bytes are not in holes, if there is room for them, and reserves room for `size`.
fn create(
    session: &Session,
    path: &StorePath,
    (data, size): (u64, Option<u64>),
    reserve: Reserve,
) -> Result<Box<dyn Draft>> {
    // If the store cannot report its free space, the write itself finds a full disk.
    if session.store.space().is_ok_and(|space| space.free < data) {
        return Err(StoreError::new("write", path, ErrorKind::NoSpace));
    }
    let size = size.filter(|_| reserve == Reserve::Space).map(|size| size.min(RESERVED_BYTES_MAX));
    session.store.create(path, &Make { size, ..Make::default() })
}

impl Begun<'_> {
    /// Writes the next bytes.
    fn write(&mut self, at: u64, bytes: &[u8], hash: FileHash) -> Result<()> {
        self.go_on(at, bytes.len() as u64, |written| {
            check(&written.path, bytes, hash)?;
            written.draft.write_at(at, bytes)
        })
    }

    /// Leaves the next bytes out: what is not written reads as zeros.
    fn leave_out(&mut self, at: u64, length: u64) -> Result<()> {
        self.go_on(at, length, |_| Ok(()))
    }

    /// Goes on with the next bytes. An error ends the draft: nothing of it is kept.
    // spec: store-put-3
    fn go_on(
        &mut self,
        at: u64,
        length: u64,
        work: impl FnOnce(&Written) -> Result<()>,
    ) -> Result<()> {
        let written = self.state.as_mut().map_err(|error| error.clone())?;
        let done = match written.fits(at, length) {
            Ok(()) => work(written),
            Err(kind) => Err(StoreError::new("write", &written.path, kind)),
        };
        match done {
            Ok(()) => written.bytes += length,
            Err(error) => self.state = Err(error),
        }
        self.state.as_ref().map(drop).map_err(Clone::clone)
    }

    /// The file, if all its bytes have come. `named` is the file of a draft whose metadata come after its bytes.
    // spec: store-put-4
    // spec: store-put-7
    fn whole(self, named: Option<NewFile>) -> Result<Finished> {
        let Written { draft, path, file, bytes } = self.state?;
        let file = match (file, named) {
            (Some(file), None) => Some(file),
            (None, Some(file)) if file.path == path.as_bytes() => Some(file),
            _ => None,
        };
        match file.filter(|file| file.size == bytes) {
            Some(file) => Ok(Finished { draft, path, file }),
            None => Err(StoreError::new("name", &path, ErrorKind::System(22))),
        }
    }
}

impl Written {
    /// Whether these are the next bytes, and the file can have them.
    fn fits(&self, at: u64, length: u64) -> std::result::Result<(), ErrorKind> {
        let end = self.bytes.checked_add(length).filter(|_| at == self.bytes);
        let end = end.ok_or(ErrorKind::System(22))?;
        match &self.file {
            Some(file) if end > file.size => Err(ErrorKind::System(22)),
            None if Geometry::new(end).is_none() => Err(ErrorKind::TooLarge),
            _ => Ok(()),
        }
    }
}

/// A draft all of whose bytes are here, and its file.
struct Finished {
    draft: Box<dyn Draft>,
    path: StorePath,
    file: NewFile,
}

impl Finished {
    /// Another thread names it and answers.
    fn name(self, session: &Session, teller: Teller) {
        let Self { draft, path, file } = self;
        session.naming.put(Whole { content: Content::Draft(draft), file, path, teller });
    }
}
