//! A session with servers: it connects to each of them once, and then any number of downloads, uploads and questions
//! for their status follow over the same connections.
//!
//! The steps are those of a program: [`Setup`] names the servers and has the parameters and the log directory,
//! [`Setup::start`] connects, [`Session::download`], [`Session::upload`] and [`Session::status`] are called in any
//! order, and [`Session::stop`] ends it. A server whose connection was lost is connected again when the next call begins.
//! A server that could not be reached at the start takes no part; [`Session::missing`] tells why.
//!
//! Downloads and uploads of a session follow each other; a second one waits until the first has ended. They end early when
//! their `stop` is set. Questions, and reads of ranges, go at any time.

mod destination;
mod download;
mod error;
mod landed;
mod landing;
mod led;
mod log;
mod place;
mod read;
mod setup;
mod sources;
mod status;
mod target;
mod upload;

pub use destination::{Destination, Together};
pub use download::Download;
pub use error::{Done, Failed, HostError, SessionError};
use landed::unfit;
pub use landed::{Landed, Listed};
use landing::Arriving;
pub(crate) use landing::Landing;
pub use landing::{Origin, Streams, local as local_target};
pub use place::Several;
pub use read::Held;
pub use setup::{ClientParameters, Modes, Parameters, ServerParameters, Setup, named};
pub use sources::{NamedSource, Sources};
pub use status::{HostState, HostStatus, Up};
pub(crate) use target::Dirs;
pub use target::Target;
pub use upload::Upload;

use crate::census::ServerId;
use crate::kind::Kind;
use crate::meter::Meter;
use hikyaku_crypto::Fingerprint;
use hikyaku_fs::Shown;
use hikyaku_net::code;
use hikyaku_reach::daemon::{REPORTS, UPLOADS, WRITES};
use hikyaku_reach::dial::{Address, Carrier, DialError, Dialled, Ending, Servers};
use hikyaku_remote::Client;
use hikyaku_session::{Connector, at_once};
use hikyaku_store::StorePath;
use hikyaku_transfer::FailureKind;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Files whose servers are all gone are waited for so long. A download tries a server again after 5 and 15 s, an upload after
/// 2, 4 and 8 s.
pub const GONE_MAX: Duration = Duration::from_secs(20);
/// How long a server that was connected before may take to answer: a transfer waits for it.
const ANSWER_TIME_AGAIN: Duration = Duration::from_secs(3);
/// It is looked this often whether the user has stopped a call.
const LOOK: Duration = Duration::from_millis(100);
/// How long the ends of the connections may take to reach the servers.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Servers that are connected.
pub struct Session {
    connector: Connector,
    keys: Vec<Fingerprint>,
    parameters: Parameters,
    log_dir: Option<PathBuf>,
    /// Begun when servers were reached.
    log: Option<log::Log>,
    members: Vec<Member>,
    missing: Vec<HostError>,
    /// Held by the call that transfers files: a server attends to a few streams of a client only.
    turn: Mutex<()>,
    /// Reads so far, which choose the server of the next one.
    reads: AtomicUsize,
}

/// A server that was reached.
struct Member {
    address: Address,
    line: Mutex<Line>,
}

/// The connection to a server.
struct Line {
    client: Client,
    carrier: Carrier,
    /// The server's key, if it was met for the first time.
    first_use: Option<Fingerprint>,
    /// How often it was connected in this session.
    connections: u32,
    /// Bytes of files that it sent or got in the last transfer, and how long that took.
    moved: Option<(u64, Duration)>,
    /// This end has closed the connection, which notices it a little later.
    is_closed: bool,
}

/// What is known of a server since its first connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Met {
    /// Where it listens.
    pub address: Address,
    /// Its key, if it was met for the first time. A person may want to compare it.
    pub first_use: Option<Fingerprint>,
    /// What carries the connection.
    pub carrier: Carrier,
}

impl Session {
    fn dial(&self, address: &Address, time: Duration) -> Result<Dialled, DialError> {
        self.connector.connect(address, &self.keys, time)
    }

    fn line(&self, dialled: Dialled, connections: u32) -> Result<Line, DialError> {
        let Dialled { connection, first_use, carrier, features } = dialled;
        let ended = connection.clone();
        let closed = |_| hikyaku_reach::daemon::NoService::Closed(ended.close_reason());
        let client = Client::new(connection).map_err(closed)?.with_features(features);
        if self.parameters.servers.rate.is_some() {
            client.cap(self.parameters.servers.rate);
        }
        Ok(Line { client, carrier, first_use, connections, moved: None, is_closed: false })
    }

    /// A command that would make this machine's socket faster, if there is one.
    pub fn advice(&self) -> Option<&str> {
        self.connector.advice()
    }

    /// The line of this client's key, which a server's list of keys needs.
    pub fn own_key(&self) -> &str {
        self.connector.own_key()
    }

    /// The directory for the logs of the session, if the user wants logs.
    pub fn log_dir(&self) -> Option<&Path> {
        self.log_dir.as_deref()
    }

    /// The servers that were reached, in the order in which they were named.
    pub fn met(&self) -> Vec<Met> {
        let met = |member: &Member| {
            let line = member.line();
            let (address, first_use) = (member.address.clone(), line.first_use);
            Met { address, first_use, carrier: line.carrier }
        };
        self.members.iter().map(met).collect()
    }

    /// How the servers that were reached are called, in their order.
    pub fn names(&self) -> Vec<String> {
        self.members.iter().map(|member| member.address.to_string()).collect()
    }

    /// The servers that could not be reached at the start, and why.
    pub fn missing(&self) -> &[HostError] {
        &self.missing
    }

    /// The connection to a server that was reached, by its place among [`Session::met`].
    pub fn client(&self, server: ServerId) -> Option<Client> {
        self.members.get(server.0).map(|member| member.line().client.clone())
    }

    /// Whether the server tells its state ([`Client::report_then`]).
    pub fn tells(&self, server: ServerId) -> bool {
        self.members.get(server.0).is_some_and(|member| member.line().client.has(REPORTS))
    }

    /// Connects again to a server whose connection was lost; `None` if it does not answer within 3 s.
    pub fn again(&self, server: ServerId) -> Option<Client> {
        let member = self.members.get(server.0)?;
        let dialled = self.dial(&member.address, ANSWER_TIME_AGAIN).ok()?;
        let connections = member.line().connections + 1;
        let line = self.line(dialled, connections).ok()?;
        let client = line.client.clone();
        *member.line() = line;
        Some(client)
    }

    /// The connections to all servers that were reached. Those that were lost are made again first, all at once; one that
    /// cannot be made again stays closed, and a transfer treats its server as lost.
    fn clients(&self) -> Vec<Client> {
        let lost = |server: &ServerId| !self.members[server.0].line().is_up();
        let lost: Vec<_> = (0..self.members.len()).map(ServerId).filter(lost).collect();
        at_once(lost, |server| self.again(server));
        self.members.iter().map(|member| member.line().client.clone()).collect()
    }

    /// Does work that waits for servers. When `stop` is set, all connections end, and the work with them.
    fn until_stopped<T: Send>(
        &self,
        stop: &AtomicBool,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, SessionError> {
        let main = thread::current();
        thread::scope(|scope| {
            let work = thread::Builder::new().name("mover-session".to_owned()).spawn_scoped(
                scope,
                || {
                    let done = work();
                    main.unpark();
                    done
                },
            )?;
            loop {
                // Read before `stop` is: work that ended with `stop` set has its connections ended as well.
                let is_finished = work.is_finished();
                if stop.load(Ordering::Relaxed) {
                    self.close("stopped by the user");
                }
                if is_finished {
                    break;
                }
                thread::park_timeout(LOOK);
            }
            work.join().map_err(|_| SessionError::Thread(io::Error::other("a thread panicked")))
        })
    }

    /// Ends all connections.
    pub fn close(&self, why: &str) {
        for member in &self.members {
            let mut line = member.line();
            line.is_closed = true;
            line.client.connection().close(code::APPLICATION, why);
        }
    }

    fn address(&self, server: ServerId) -> Address {
        self.members[server.0].address.clone()
    }

    /// The path on all servers as a user writes it.
    fn shown(&self, path: &StorePath) -> String {
        let servers = self.members.iter().map(|member| member.address.clone()).collect();
        let path = path.as_bytes().to_vec();
        Servers { servers, path, ending: Ending::Name, keys: Vec::new() }.to_string()
    }

    /// Notes how much each server has moved in a call, for the next question for the status.
    fn note(&self, meter: &Meter, before: &[u64], time: Duration) {
        for ((member, now), before) in self.members.iter().zip(meter.servers()).zip(before) {
            member.line().moved = Some((now.bytes().saturating_sub(*before), time));
        }
    }

    /// Whether all servers take uploads.
    fn check_uploads(&self) -> Result<(), SessionError> {
        for member in &self.members {
            let line = member.line();
            let (kind, text) = match (line.client.has(UPLOADS), line.client.has(WRITES)) {
                (true, _) => continue,
                (false, true) => {
                    (Kind::OtherVersion, "this server has an older hikyaku, which takes no uploads")
                }
                (false, false) => (
                    Kind::File(FailureKind::ReadOnly),
                    "this server does not let this client write: it was started without --writable, or the \
                         client's key is marked 'ro' in its list",
                ),
            };
            return Err(SessionError::refused(kind, format!("{}: {text}", member.address)));
        }
        Ok(())
    }

    /// Ends the session: tells the servers, and waits until they know, at most some seconds. Dropping it waits as well for
    /// those that are reached over UDP.
    pub fn stop(self) {
        for member in &self.members {
            let connection = member.line().client.connection().clone();
            connection.close(code::DONE, "");
            connection.flush(LAST_WORD);
        }
    }
}

impl Member {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn is_up(&self) -> bool {
        !self.is_closed && self.client.connection().close_reason().is_none()
    }
}

/// The path below the roots of the servers that a user means. A slash at its ends does not count.
///
/// # Errors
///
/// It leads out of the root, or cannot be the name of a file.
pub fn remote_path(path: &[u8]) -> Result<StorePath, SessionError> {
    let inner = path.strip_prefix(b"/").unwrap_or(path);
    let inner = inner.strip_suffix(b"/").unwrap_or(inner);
    StorePath::new(inner).map_err(|error| {
        let text = format!("{}: {error}", Shown::new(path));
        SessionError::refused(error, text)
    })
}
