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
    file: NewFile,
    path: StorePath,
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
                let place = Place(&session.drafts);
                if session.drafts.fetch_add(1, Ordering::Relaxed) >= session.limits.drafts {
                    return Err("too many files are uploaded at once");
                }
                let state = begin(session, file, data);
                let done = state.as_ref().map(drop).map_err(Clone::clone);
                self.0.insert(teller.id, Begun { state, _place: place });
                done
            }
            Put::Bytes { draft, at, hash, .. } => {
                let begun = self.0.get_mut(&draft).ok_or(UNKNOWN)?;
                begun.write(at, bytes, hash)
            }
            Put::Zeros { draft, at, length } => {
                self.0.get_mut(&draft).ok_or(UNKNOWN)?.leave_out(at, length)
            }
            Put::Finish { draft } => {
                let begun = self.0.remove(&draft).ok_or(UNKNOWN)?;
                match begun.whole() {
                    Ok(Written { draft, file, path, .. }) => {
                        let content = Content::Draft(draft);
                        session.naming.put(Whole { content, file, path, teller });
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
}

const UNKNOWN: Broken = "bytes of a file whose upload was not begun";

/// The path of a file that may be written; it is no directory, device, FIFO or socket, nor, unless it is to be replaced,
/// there.
// spec: store-write-1
fn writable(session: &Session, file: &NewFile) -> Result<StorePath> {
    let path = store_path(&file.path)?;
    let fail = |kind| Err(StoreError::new("write", &path, kind));
    if session.limits.writes == Writes::Refused {
        return fail(ErrorKind::ReadOnly);
    }
    match (session.store.look(&path), file.taken) {
        (Ok(found), _) if found.kind == Kind::Dir => fail(ErrorKind::IsDir),
        (Ok(found), _) if found.kind == Kind::Special => fail(ErrorKind::SPECIAL),
        (Ok(_), Taken::Kept) => fail(ErrorKind::Exists),
        (Err(error), _) if error.kind != ErrorKind::NotFound => Err(error),
        _ => Ok(path),
    }
}

fn small(session: &Session, file: &NewFile, bytes: &[u8], hash: FileHash) -> Result<StorePath> {
    let path = writable(session, file)?;
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
fn begin(session: &Session, file: NewFile, data: u64) -> Result<Written> {
    let path = writable(session, &file)?;
    let fail = |kind| Err(StoreError::new("write", &path, kind));
    if Geometry::new(file.size).is_none() {
        return fail(ErrorKind::TooLarge);
    }
    // If the store cannot report its free space, the write itself finds a full disk.
    if session.store.space().is_ok_and(|space| space.free < data) {
        return fail(ErrorKind::NoSpace);
    }
    // Holes would be filled by what is reserved.
    let size = (data >= file.size).then_some(file.size.min(RESERVED_BYTES_MAX));
    let draft = session.store.create(&path, &Make { size, ..Make::default() })?;
    Ok(Written { draft, file, path, bytes: 0 })
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
        let fits = at == written.bytes && length <= written.file.size - written.bytes;
        let done = match fits {
            true => work(written),
            false => Err(StoreError::new("write", &written.path, ErrorKind::System(22))),
        };
        match done {
            Ok(()) => written.bytes += length,
            Err(error) => self.state = Err(error),
        }
        self.state.as_ref().map(drop).map_err(Clone::clone)
    }

    /// The draft, if all its bytes have come.
    // spec: store-put-4
    fn whole(self) -> Result<Written> {
        let written = self.state?;
        match written.bytes == written.file.size {
            true => Ok(written),
            false => Err(StoreError::new("name", &written.path, ErrorKind::System(22))),
        }
    }
}
