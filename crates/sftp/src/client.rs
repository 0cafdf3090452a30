//! A client with many requests under way.
//!
//! A thread reads the responses and keeps each for who asked. Requests may be sent from any thread, one by one or a group
//! at a time; another thread writes them, all that wait at once. Who waits for a group is woken once, and not for each of
//! its responses: a wake costs more than a small file.
//!
//! Each request has bounds for its response, and those of all that are under way are bounded together, and with them what
//! a server can make this end hold.

use crate::answer::{Answer, Handle};
use crate::attributes::Attributes;
use crate::packet::{
    Entry, NotAResponse, PACKET_BYTES_MAX, Request, Response, Status, VERSION, Version, greeting,
};
use std::collections::HashMap;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::mem::{swap, take};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Bytes of responses that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Bytes of requests under way and of their responses: while there are so many, nothing more is asked.
const UNDER_WAY_BYTES_MAX: usize = 16 << 20;
/// Requests that are sent together. When there is room for one of them, all are sent.
const GROUP_MAX: usize = 192;

/// A client of one server. Clones use the same pipe.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    version: Arc<Version>,
}

/// A request that is under way.
#[must_use = "the response of a request is its only sign of a failure"]
pub struct Ticket(Receiver<Responses>);

/// The responses of a group of requests, in their order; `None` for those that have not come.
type Responses = Vec<Option<Response>>;

/// What came of a request.
pub type Asked<T> = Result<T, Failed>;

/// Why a request was not done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failed {
    /// The server refused it.
    #[error("{}", shown(*.status, .text))]
    Refused {
        /// Its code.
        status: Status,
        /// What it says, fit to be shown.
        text: String,
    },
    /// The server answered something else than was asked.
    #[error("the SFTP server answered something else than was asked")]
    Odd,
    /// The server speaks another version only.
    #[error("the SFTP server speaks version {0}, and not 3")]
    Version(u32),
    /// The server sent what is no message, or an answer to nothing. The same server would do so again.
    #[error("the SFTP server breaks the protocol: {0}")]
    Broken(String),
    /// The pipe has ended.
    #[error("the SFTP connection is lost: {0}")]
    Lost(String),
}

impl From<io::Error> for Failed {
    /// An error of the pipe, or of [`read_frame`].
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidData => Self::Broken(error.to_string()),
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                Self::Lost("the server has closed it".to_owned())
            }
            _ => Self::Lost(error.to_string()),
        }
    }
}

impl Failed {
    /// Whether the server says that there is no such file.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: Status::NoSuchFile, .. })
    }

    /// Whether no further request can succeed.
    pub const fn is_end(&self) -> bool {
        !matches!(self, Self::Refused { .. })
    }
}

/// A server's own words, if they say more than its code.
fn shown(status: Status, text: &str) -> String {
    let is_plain = text.is_empty() || text.eq_ignore_ascii_case("failure");
    if is_plain || status != Status::Failure { status.to_string() } else { text.to_owned() }
}

/// What the threads of a client share.
struct Shared {
    waiting: Mutex<Waiting>,
    has_room: Condvar,
    outgoing: Mutex<Outgoing>,
    has_bytes: Condvar,
}

/// Requests that are not written yet. They are among those that are under way.
struct Outgoing {
    bytes: Vec<u8>,
    /// Who writes them sleeps until there are some.
    is_waited_for: bool,
    /// Nothing is sent any more.
    is_over: bool,
}

struct Waiting {
    requests: HashMap<u32, UnderWay>,
    next: u32,
    /// Of all requests that are under way.
    bytes: usize,
    /// Threads that wait for room.
    blocked: usize,
    /// Why nothing more comes.
    end: Option<Failed>,
}

/// A request without a response.
struct UnderWay {
    group: Arc<Group>,
    /// Its place in the group.
    place: usize,
    /// What it and its response may take.
    bytes: usize,
}

/// Requests that were sent together. When nothing more can come to it, the responses go to who waits.
struct Group {
    responses: Mutex<Responses>,
    whole: SyncSender<Responses>,
}

impl Drop for Group {
    fn drop(&mut self) {
        // The requesting thread may have ended; its answer is dropped.
        let _ = self.whole.send(take(&mut *lock(&self.responses)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    /// Greets the server at the other end of a pipe.
    ///
    /// # Errors
    ///
    /// The pipe ends, the server is none, or it speaks another version.
    pub fn start(
        from: impl Read + Send + 'static,
        mut to: impl Write + Send + 'static,
    ) -> Asked<Self> {
        to.write_all(&greeting()).and_then(|()| to.flush())?;
        let (mut from, mut buffer) = (BufReader::with_capacity(READ_BYTES, from), Vec::new());
        read_frame(&mut from, &mut buffer)?;
        let version =
            Version::decode(&buffer).map_err(|error| Failed::Broken(error.to_string()))?;
        if version.number != VERSION {
            return Err(Failed::Version(version.number));
        }
        let shared = Arc::new(Shared {
            waiting: Mutex::new(Waiting {
                requests: HashMap::new(),
                next: 0,
                bytes: 0,
                blocked: 0,
                end: None,
            }),
            has_room: Condvar::new(),
            outgoing: Mutex::new(Outgoing {
                bytes: Vec::new(),
                is_waited_for: false,
                is_over: false,
            }),
            has_bytes: Condvar::new(),
        });
        let (reader, writer) = (shared.clone(), shared.clone());
        let thread = |name: &str| thread::Builder::new().name(name.to_owned());
        thread("sftp-read").spawn(move || reader.read(from, buffer))?;
        thread("sftp-write").spawn(move || writer.write(to))?;
        Ok(Self { shared, version: Arc::new(version) })
    }

    /// What the server has said of itself.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The number of requests of this size that can be under way and leave room for a small one.
    pub fn requests_at_once(bytes: usize) -> usize {
        let read = Request::Read {
            handle: &[],
            offset: 0,
            length: u32::try_from(bytes).unwrap_or(u32::MAX),
        };
        ((UNDER_WAY_BYTES_MAX - 1) / read.bytes_max()).max(1)
    }

    /// Sends nothing any more: the server hears the end of its input, and ends.
    pub fn hang_up(&self) {
        lock(&self.shared.outgoing).is_over = true;
        self.shared.has_bytes.notify_one();
    }

    /// Ends the conversation at once: no more requests are sent, and each thread that waits for a response gets an error.
    pub fn abandon(&self) {
        lock(&self.shared.outgoing).bytes.clear();
        self.hang_up();
        self.shared.end(Failed::Lost("the session was ended".to_owned()));
    }

    /// Why nothing more comes from the server, if that is so.
    pub fn end(&self) -> Option<Failed> {
        lock(&self.shared.waiting).end.clone()
    }

    /// Sends a request; waits only while as many are under way as may be.
    pub fn ask(&self, request: &Request<'_>) -> Ticket {
        Ticket(self.shared.send(&[*request]))
    }

    /// Waits for the response.
    ///
    /// # Errors
    ///
    /// See [`Failed`]; a status other than "ok" is one.
    pub fn wait(&self, ticket: Ticket) -> Asked<Response> {
        self.answer(ticket).0
    }

    /// Waits for the answer.
    pub fn answer(&self, ticket: Ticket) -> Answer {
        self.shared.answer(ticket.0.recv().ok().and_then(|mut responses| responses.pop()?))
    }

    /// Sends requests, which the server gets in this order, and waits for all of their answers.
    pub fn all(&self, requests: &[Request<'_>]) -> Vec<Answer> {
        let groups = requests.chunks(GROUP_MAX).map(|group| (group.len(), self.shared.send(group)));
        let groups: Vec<_> = groups.collect();
        let heard = groups.into_iter().flat_map(|(length, group)| {
            let mut responses = group.recv().unwrap_or_default();
            responses.resize_with(length, || None);
            responses
        });
        heard.map(|response| self.shared.answer(response)).collect()
    }

    /// Sends a request and waits until it is done.
    pub fn done(&self, request: &Request<'_>) -> Asked<()> {
        self.is_done(self.ask(request))
    }

    /// Waits until a request is done that has no other answer.
    pub fn is_done(&self, ticket: Ticket) -> Asked<()> {
        self.answer(ticket).done()
    }

    /// Opens a file or a directory.
    pub fn open(&self, request: &Request<'_>) -> Asked<Handle> {
        self.answer(self.ask(request)).handle()
    }

    /// Closes a file or a directory. What a server could not write may be said here only.
    pub fn close(&self, handle: &Handle) -> Asked<()> {
        self.done(&Request::Close(handle.bytes()))
    }

    /// Metadata, by [`Request::Stat`] or [`Request::LStat`].
    pub fn attributes(&self, request: &Request<'_>) -> Asked<Attributes> {
        self.answer(self.ask(request)).attributes()
    }

    /// The one name that [`Request::RealPath`] or [`Request::ReadLink`] asks for.
    pub fn name(&self, request: &Request<'_>) -> Asked<Vec<u8>> {
        self.answer(self.ask(request)).name()
    }

    /// The next entries of an open directory; `None` at its end.
    pub fn entries(&self, directory: &Handle) -> Asked<Option<Vec<Entry>>> {
        match self.wait(self.ask(&Request::ReadDir(directory.bytes()))) {
            Ok(Response::Names(names)) => Ok(Some(names)),
            Ok(_) => Err(Failed::Odd),
            Err(Failed::Refused { status: Status::End, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for the bytes of a [`Request::Read`] of `length` bytes; none at the end of the file.
    pub fn data(&self, ticket: Ticket, length: usize) -> Asked<Vec<u8>> {
        self.answer(ticket).data(length)
    }
}

impl Shared {
    /// Sends a group of requests, as soon as there is room.
    fn send(&self, requests: &[Request<'_>]) -> Receiver<Responses> {
        let (whole, receiver) = sync_channel(1);
        let responses = Mutex::new(requests.iter().map(|_| None).collect());
        let group = Arc::new(Group { responses, whole });
        let mut waiting = lock(&self.waiting);
        while waiting.bytes >= UNDER_WAY_BYTES_MAX && waiting.end.is_none() {
            waiting.blocked += 1;
            waiting = self.has_room.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.blocked -= 1;
        }
        if waiting.end.is_some() {
            return receiver;
        }
        // Requests are sent in the order of their ids: the first lock is held until these are in their place.
        let mut outgoing = lock(&self.outgoing);
        for (place, request) in requests.iter().enumerate() {
            let (id, bytes) = (waiting.next, request.bytes_max());
            waiting.next = id.wrapping_add(1);
            waiting.bytes += bytes;
            waiting.requests.insert(id, UnderWay { group: group.clone(), place, bytes });
            outgoing.bytes.extend_from_slice(&request.encode(id));
        }
        let is_asleep = take(&mut outgoing.is_waited_for);
        drop((outgoing, waiting));
        if is_asleep {
            self.has_bytes.notify_one();
        }
        receiver
    }

    /// What came of a request.
    fn answer(&self, response: Option<Response>) -> Answer {
        Answer(match response {
            Some(Response::Status(status, text)) if status != Status::Ok => Err(Failed::Refused {
                status,
                text: String::from_utf8_lossy(&text).chars().filter(|c| !c.is_control()).collect(),
            }),
            Some(response) => Ok(response),
            None => {
                let why = lock(&self.waiting).end.clone();
                Err(why.unwrap_or_else(|| Failed::Lost("it has ended".to_owned())))
            }
        })
    }

    /// Keeps each response for who waits for it, until the pipe ends.
    fn read(&self, mut from: impl Read, mut buffer: Vec<u8>) {
        let why = loop {
            if let Err(error) = read_frame(&mut from, &mut buffer) {
                break error.into();
            }
            let (id, response) = match Response::decode(&buffer) {
                Ok(response) => response,
                Err(error) => break Failed::Broken(NotAResponse::to_string(&error)),
            };
            let mut waiting = lock(&self.waiting);
            let is_fit = waiting.requests.get(&id).map(|asked| buffer.len() <= asked.bytes);
            if is_fit == Some(false) {
                break Failed::Broken("its answer is longer than any to such a request".to_owned());
            }
            let Some(UnderWay { group, place, bytes }) = waiting.requests.remove(&id) else {
                // A server that cannot write its answers does not end.
                if waiting.end.is_some() {
                    continue;
                }
                break Failed::Broken("it answered a request that was not made".to_owned());
            };
            waiting.bytes = waiting.bytes.saturating_sub(bytes);
            // Who waits for room wakes when there is room for many requests.
            let is_roomy = waiting.blocked > 0 && waiting.bytes < UNDER_WAY_BYTES_MAX / 2;
            drop(waiting);
            if is_roomy {
                self.has_room.notify_one();
            }
            if let Some(own) = lock(&group.responses).get_mut(place) {
                *own = Some(response);
            }
        };
        self.end(why);
    }

    /// Writes requests until nothing is sent any more, or the pipe ends. Then it is closed.
    fn write(&self, mut to: impl Write) {
        // The room of what was written is used again: new pages cost more than the copy of the bytes.
        let mut bytes = Vec::new();
        loop {
            let mut outgoing = lock(&self.outgoing);
            while outgoing.bytes.is_empty() && !outgoing.is_over {
                outgoing.is_waited_for = true;
                outgoing = self.has_bytes.wait(outgoing).unwrap_or_else(PoisonError::into_inner);
            }
            bytes.clear();
            swap(&mut outgoing.bytes, &mut bytes);
            drop(outgoing);
            if bytes.is_empty() {
                return;
            }
            if let Err(error) = to.write_all(&bytes).and_then(|()| to.flush()) {
                self.end(error.into());
                return;
            }
        }
    }

    /// Nothing more comes: everybody who waits hears it.
    fn end(&self, why: Failed) {
        let mut waiting = lock(&self.waiting);
        waiting.end.get_or_insert(why);
        let given_up = take(&mut waiting.requests);
        drop(waiting);
        // Who is woken asks why.
        drop(given_up);
        self.has_room.notify_all();
    }
}

/// Reads a message without its length into `buffer`.
///
/// # Errors
///
/// The pipe ends, or the length is 0 or above [`PACKET_BYTES_MAX`].
// fuzz: sftp
pub fn read_frame(from: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<()> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length == 0 || length > PACKET_BYTES_MAX {
        let text = format!("what comes is not SFTP: a message of {length} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    buffer.clear();
    buffer.resize(length, 0);
    from.read_exact(buffer)
}

#[cfg(test)]
mod tests;
