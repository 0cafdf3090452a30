//! The requests of one stream, one after the other.

use super::Session;
use super::edit::edit;
use super::give::{Job, Ranges, Waiting};
use super::lease::{held, lease};
use super::list::list;
use super::lock::{lock, lock_of};
use super::put::Drafts;
use super::report::report;
use super::walk::walk;
use crate::message::{
    Answer, Asked, Piece, Refusal, Reply, Request, RequestId, SMALL_BYTES_MAX, Seen, Wanted,
};
use hikyaku_reach::Stream;
use hikyaku_reach::{Out, TalkError, talk};
use hikyaku_store::{Access, ErrorKind, Result, StoreError, StorePath};
use hikyaku_transfer::{FileHash, decode};
use hikyaku_units::Rate;

/// Files in one request for small files.
const FILES_MAX: usize = 4096;

/// Answers one request.
#[derive(Clone)]
pub(crate) struct Teller {
    pub(crate) id: RequestId,
    out: Out,
}

impl Teller {
    pub(crate) fn say(&self, reply: Reply) -> std::result::Result<(), TalkError> {
        self.out.say(&Answer { id: self.id, reply })
    }

    pub(crate) fn say_with(&self, reply: Reply, tail: &[u8]) -> std::result::Result<(), TalkError> {
        self.out.say_with(&Answer { id: self.id, reply }, tail)
    }

    /// Tells why the request failed.
    pub(crate) fn refuse(&self, error: &StoreError) -> std::result::Result<(), TalkError> {
        self.say(Reply::Refused(Refusal { kind: error.kind, text: error.to_string() }))
    }
}

/// Attends to the requests of `stream` until it ends. An error is what the client did that no client does.
pub(crate) fn attend(session: &Session, stream: Stream) -> std::result::Result<(), &'static str> {
    let Ok((mut incoming, out, _writer)) = talk(stream) else {
        return Err("the server has no room for another thread");
    };
    let mut drafts = Drafts::default();
    loop {
        let body = match incoming.hear() {
            Ok(Some(body)) => body,
            Ok(None) | Err(TalkError::Read(_) | TalkError::Closed) => return Ok(()),
            Err(_) => return Err("the requests are no messages"),
        };
        let Ok((Asked { id, request }, rest)) = decode::<Asked>(body) else {
            return Err("a request that does not decode");
        };
        if rest.len() as u64 != request.tail() {
            return Err("a request with other bytes behind it than it says");
        }
        let teller = Teller { id, out: out.clone() };
        // A client that has gone is not told any more.
        let _ = match request {
            Request::Look { path } => match look(session, &path) {
                Ok(reply) => teller.say(reply),
                Err(error) => teller.refuse(&error),
            },
            Request::Walk { path } => match store_path(&path) {
                Ok(path) => walk(session, &path, &teller),
                Err(error) => teller.refuse(&error),
            },
            Request::Give(give) => put(session, Job::Give(give, Ranges::Segments), teller)?,
            Request::Pick(give) => put(session, Job::Give(give, Ranges::Any), teller)?,
            Request::View(view) => put(session, Job::View(view), teller)?,
            Request::GiveMany { files } => {
                if files.len() > FILES_MAX {
                    return Err("too many files in a request");
                }
                give_many(session, &files, &teller)
            }
            Request::Piece(piece) => match read_piece(session, &piece) {
                Ok(bytes) => {
                    let hash = FileHash(*blake3::hash(&bytes).as_bytes());
                    teller.say_with(Reply::Piece { length: bytes.len() as u32, hash }, &bytes)
                }
                Err(error) => teller.refuse(&error),
            },
            Request::List { path, ahead } => match store_path(&path) {
                Ok(path) => list(session, (&path, ahead), None, &teller),
                Err(error) => teller.refuse(&error),
            },
            Request::ReadLink { path } => {
                match store_path(&path).and_then(|path| session.store.read_link(&path)) {
                    Ok(text) => teller.say(Reply::Link { text }),
                    Err(error) => teller.refuse(&error),
                }
            }
            Request::Edit(change) => match edit(session, &change, rest) {
                Ok(reply) => teller.say(reply),
                Err(error) => teller.refuse(&error),
            },
            Request::Lease(wish) => lease(session, wish, &teller),
            Request::Process { name, ended } => {
                session.tell_process(name, &ended);
                teller.say(Reply::Done)
            }
            Request::Held { edit, attempt } => match held(session, (&edit, attempt), rest) {
                Ok(reply) => teller.say(reply),
                Err(error) => teller.refuse(&error),
            },
            Request::Lock(wish) => lock(session, &wish, teller),
            Request::LockOf(wish) => lock_of(session, &wish, &teller),
            Request::Put(put) => drafts.put(session, put, rest, teller)?,
            Request::Space => match session.store.space() {
                Ok(space) => teller.say(Reply::Space(space)),
                Err(error) => teller.refuse(&error),
            },
            Request::Home => match home(session) {
                Ok(text) => teller.say(Reply::Link { text }),
                Err(error) => teller.refuse(&error),
            },
            Request::Report => match report(session) {
                Ok(report) => teller.say(Reply::Report(Box::new(report))),
                Err(error) => teller.refuse(&error),
            },
            Request::Cut { give, from } => {
                session.gives.cut(give, from);
                Ok(())
            }
            Request::Cap { bytes_per_second } => {
                let wanted =
                    bytes_per_second.map(|bytes| Rate::from_bits_per_sec(bytes.saturating_mul(8)));
                session.connection.set_payload_rate(wanted);
                Ok(())
            }
        };
    }
}

/// Adds a request that is answered with an object.
fn put(
    session: &Session,
    job: Job,
    teller: Teller,
) -> std::result::Result<std::result::Result<(), TalkError>, &'static str> {
    session.gives.put(Waiting { job, teller }).map_err(|()| "too many requests").map(Ok)
}

/// A path of the client.
pub(crate) fn store_path(path: &[u8]) -> Result<StorePath> {
    StorePath::new(path).map_err(|_| StoreError::new("use", &StorePath::ROOT, ErrorKind::BadName))
}

fn look(session: &Session, path: &[u8]) -> Result<Reply> {
    session.look(&store_path(path)?).map(Reply::Looked)
}

/// The directory of the client's user, where the client is a user of this machine.
// spec: store-feature-11
fn home(session: &Session) -> Result<Vec<u8>> {
    let unknown =
        || StoreError::new("find the home directory of", &StorePath::ROOT, ErrorKind::NotFound);
    session.home.clone().ok_or_else(unknown)
}

/// Reads a short range of a file that has the size and the time that the client expects, before and after.
// spec: store-piece-1
fn read_piece(session: &Session, piece: &Piece) -> Result<Vec<u8>> {
    let path = store_path(&piece.path)?;
    let error = |kind| StoreError::new("read", &path, kind);
    let end = piece.from.checked_add(u64::from(piece.length));
    if u64::from(piece.length) > SMALL_BYTES_MAX || end.is_none_or(|end| end > piece.seen.size) {
        return Err(error(ErrorKind::System(22)));
    }
    let open = session.open(&path, Access::Read)?;
    let is_same = || open.found().map(|found| Seen::from(&found) == piece.seen);
    if !is_same()? {
        return Err(error(ErrorKind::Changed));
    }
    let mut bytes = vec![0; piece.length as usize];
    let read = open.read_at(piece.from, &mut bytes);
    // A short read, or an error of the store, in a file that was truncated meanwhile is a change.
    match (is_same()?, read?) {
        (true, length) if length == bytes.len() => Ok(bytes),
        _ => Err(error(ErrorKind::Changed)),
    }
}

/// Sends small files whole, in the order in which they were asked for.
fn give_many(
    session: &Session,
    files: &[Wanted],
    teller: &Teller,
) -> std::result::Result<(), TalkError> {
    let _under_way = session.gives.begin(teller.id);
    let (mut bytes, mut sent) = (Vec::new(), 0);
    for (index, wanted) in (0..).zip(files) {
        if session.gives.is_cut(teller.id, sent) {
            break;
        }
        sent += wanted.seen.size;
        match read_small(session, wanted, &mut bytes) {
            Ok(()) => {
                let hash = FileHash(*blake3::hash(&bytes).as_bytes());
                teller.say_with(Reply::Small { index, size: bytes.len() as u32, hash }, &bytes)?;
            }
            Err(kind) => teller.say(Reply::NotGiven { index, kind })?,
        }
    }
    teller.say(Reply::Done)
}

fn read_small(
    session: &Session,
    wanted: &Wanted,
    bytes: &mut Vec<u8>,
) -> std::result::Result<(), ErrorKind> {
    if wanted.seen.size > SMALL_BYTES_MAX {
        return Err(ErrorKind::TooLarge);
    }
    let mut read = || -> Result<()> {
        let path = store_path(&wanted.path)?;
        let open = session.open(&path, Access::Read)?;
        let changed = || StoreError::new("read", &path, ErrorKind::Changed);
        let before = open.found()?;
        if Seen::from(&before) != wanted.seen {
            return Err(changed());
        }
        bytes.resize(wanted.seen.size as usize, 0);
        let length = open.read_at(0, bytes)?;
        let is_same = Seen::from(&open.found()?) == wanted.seen && open.is_unchanged()?;
        match length == bytes.len() && is_same {
            true => Ok(()),
            false => Err(changed()),
        }
    };
    read().map_err(|error| error.kind)
}
