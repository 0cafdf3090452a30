//! A client with many requests under way.
//!
//! A thread reads the responses and gives each to the [`Ticket`] of its request. Requests may be sent from any thread;
//! another thread writes them, all that wait at once.
//! The number of requests under way is limited, and with it what a server can make this end hold: at most
//! [`UNDER_WAY_MAX`] responses of [`PACKET_BYTES_MAX`] bytes.

use crate::attributes::Attributes;
use crate::packet::{
    Entry, NotAResponse, PACKET_BYTES_MAX, Request, Response, Status, VERSION, Version, greeting,
};
use std::collections::HashMap;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Bytes of responses that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Requests that may be under way at once.
const UNDER_WAY_MAX: usize = 256;

/// A client of one server. Clones use the same pipe.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    version: Arc<Version>,
}

/// An open file or directory of the server. It is not closed by itself: see [`Client::close`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handle(Vec<u8>);

/// A request that is under way.
#[must_use = "the response of a request is its only sign of a failure"]
pub struct Ticket(Receiver<Response>);

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
    /// Nothing is sent any more.
    is_over: bool,
}

struct Waiting {
    requests: HashMap<u32, SyncSender<Response>>,
    next: u32,
    /// Why nothing more comes.
    end: Option<Failed>,
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
            waiting: Mutex::new(Waiting { requests: HashMap::new(), next: 0, end: None }),
            has_room: Condvar::new(),
            outgoing: Mutex::new(Outgoing { bytes: Vec::new(), is_over: false }),
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

    /// Sends nothing any more: the server hears the end of its input, and ends.
    pub fn hang_up(&self) {
        lock(&self.shared.outgoing).is_over = true;
        self.shared.has_bytes.notify_one();
    }

    /// Sends a request; waits only while as many are under way as may be.
    pub fn ask(&self, request: &Request<'_>) -> Ticket {
        let (answer, ticket) = sync_channel(1);
        let ticket = Ticket(ticket);
        let mut waiting = lock(&self.shared.waiting);
        while waiting.requests.len() >= UNDER_WAY_MAX && waiting.end.is_none() {
            let woken = self.shared.has_room.wait(waiting);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.end.is_some() {
            return ticket;
        }
        let id = waiting.next;
        waiting.next = id.wrapping_add(1);
        waiting.requests.insert(id, answer);
        // Requests are sent in the order of their ids: the lock is held until this one is in its place.
        lock(&self.shared.outgoing).bytes.extend_from_slice(&request.encode(id));
        drop(waiting);
        self.shared.has_bytes.notify_one();
        ticket
    }

    /// Waits for the response.
    ///
    /// # Errors
    ///
    /// See [`Failed`]; a status other than "ok" is one.
    pub fn wait(&self, ticket: Ticket) -> Asked<Response> {
        match ticket.0.recv() {
            Ok(Response::Status(Status::Ok, text)) => Ok(Response::Status(Status::Ok, text)),
            Ok(Response::Status(status, text)) => Err(Failed::Refused {
                status,
                text: String::from_utf8_lossy(&text).chars().filter(|c| !c.is_control()).collect(),
            }),
            Ok(response) => Ok(response),
            Err(_) => {
                let why = lock(&self.shared.waiting).end.clone();
                Err(why.unwrap_or_else(|| Failed::Lost("it has ended".to_owned())))
            }
        }
    }

    /// Sends a request and waits until it is done.
    pub fn done(&self, request: &Request<'_>) -> Asked<()> {
        self.is_done(self.ask(request))
    }

    /// Waits until a request is done that has no other answer.
    pub fn is_done(&self, ticket: Ticket) -> Asked<()> {
        match self.wait(ticket)? {
            Response::Status(..) => Ok(()),
            _ => Err(Failed::Odd),
        }
    }

    /// Opens a file or a directory.
    pub fn open(&self, request: &Request<'_>) -> Asked<Handle> {
        self.opened(self.ask(request))
    }

    /// Waits until a file or directory is open that was asked for.
    pub fn opened(&self, ticket: Ticket) -> Asked<Handle> {
        match self.wait(ticket)? {
            // The draft allows 256 bytes.
            Response::Handle(handle) if handle.len() <= 256 => Ok(Handle(handle)),
            _ => Err(Failed::Odd),
        }
    }

    /// Closes a file or a directory. What a server could not write may be said here only.
    pub fn close(&self, handle: &Handle) -> Asked<()> {
        self.done(&Request::Close(handle.bytes()))
    }

    /// Metadata, by [`Request::Stat`] or [`Request::LStat`].
    pub fn attributes(&self, request: &Request<'_>) -> Asked<Attributes> {
        match self.wait(self.ask(request))? {
            Response::Attributes(attributes) => Ok(attributes),
            _ => Err(Failed::Odd),
        }
    }

    /// The one name that [`Request::RealPath`] or [`Request::ReadLink`] asks for.
    pub fn name(&self, request: &Request<'_>) -> Asked<Vec<u8>> {
        match self.wait(self.ask(request))? {
            Response::Names(mut names) if names.len() == 1 => Ok(names.remove(0).name),
            _ => Err(Failed::Odd),
        }
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
        match self.wait(ticket) {
            Ok(Response::Data(data)) if data.len() <= length && !data.is_empty() => Ok(data),
            Ok(_) => Err(Failed::Odd),
            Err(Failed::Refused { status: Status::End, .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl Handle {
    /// As requests take it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Shared {
    /// Gives each response to who waits for it, until the pipe ends.
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
            let Some(answer) = waiting.requests.remove(&id) else {
                break Failed::Broken("it answered a request that was not made".to_owned());
            };
            // Who waits for room wakes when there is room for many requests, and not for each of them.
            if waiting.requests.len() == UNDER_WAY_MAX / 2 {
                self.has_room.notify_all();
            }
            drop(waiting);
            // Who asked may have gone.
            let _ = answer.send(response);
        };
        self.end(why);
    }

    /// Writes requests until nothing is sent any more, or the pipe ends. Then it is closed.
    fn write(&self, mut to: impl Write) {
        loop {
            let mut outgoing = lock(&self.outgoing);
            while outgoing.bytes.is_empty() && !outgoing.is_over {
                outgoing = self.has_bytes.wait(outgoing).unwrap_or_else(PoisonError::into_inner);
            }
            let bytes = std::mem::take(&mut outgoing.bytes);
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
        waiting.requests.clear();
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
