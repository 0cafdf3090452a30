//! What a session begins with.

use super::log::Log;
use super::{GONE_MAX, HostError, Member, Session, SessionError};
use crate::kind::Kind;
use hikyaku_console::Settings;
use hikyaku_crypto::Fingerprint;
use hikyaku_reach::daemon::STORE;
use hikyaku_reach::dial::{Address, Ending, NotAnAddress, Servers};
use hikyaku_session::{ANSWER_TIME, ClientConfig, Connector, at_once};
use hikyaku_units::{DataSize, Rate};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

/// The servers and the parameters of a session.
#[derive(Clone)]
pub struct Setup {
    /// Where the servers listen.
    pub servers: Vec<Address>,
    /// The keys of the servers: each has one of these. Without any, the key that a server has at its first use is
    /// remembered.
    pub keys: Vec<Fingerprint>,
    /// The key of this client, the servers that it knows, and the carriers that it may use.
    pub client: ClientConfig,
    /// How data travel.
    pub parameters: Parameters,
    /// The directory for the log of the session, which is made unless it is there: samples of each transfer and begins and ends
    /// of files, for `hikyaku report`. Default: no log.
    pub log_dir: Option<PathBuf>,
}

/// How data travel: this end and the servers may have different values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Parameters {
    /// At this end.
    pub client: ClientParameters,
    /// At each server, which is told when it is connected.
    pub servers: ServerParameters,
}

/// Parameters of this end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientParameters {
    /// The rate of all servers together, of downloads and of uploads. Default: no limit.
    pub rate: Option<Rate>,
    /// The most memory for data of one server that have come and are not read yet. Default: 512 MB divided by the number of
    /// servers, 16 MB at least.
    pub window: Option<DataSize>,
    /// Streams on which files go to one server at once, from 1 to 4; each has a thread that reads and hashes. Default: 3.
    pub streams: usize,
    /// The time that a stream of an upload waits after a file before it sends the next one. Default: none.
    pub pause: Duration,
    /// The time between the beginnings of two servers: the second one begins so long after the first, the third one
    /// twice as long. Default: none.
    pub stagger: Duration,
    /// How long files are waited for whose servers are all gone. Default: [`GONE_MAX`].
    pub patience: Duration,
}

/// Parameters of each server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerParameters {
    /// The most that a server sends or gets. A limit of the server's own holds as well. Default: no limit.
    pub rate: Option<Rate>,
}

/// Which permission bits files and directories get.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Modes {
    /// New ones get those of the source, without those of the umask of this process; what is replaced keeps its own.
    #[default]
    Usual,
    /// Those of the source, and directories also its times.
    Kept,
}

impl ClientParameters {
    /// No limits and no pauses, and three streams.
    pub const USUAL: Self = Self {
        rate: None,
        window: None,
        streams: 3,
        pause: Duration::ZERO,
        stagger: Duration::ZERO,
        patience: GONE_MAX,
    };
}

impl Default for ClientParameters {
    fn default() -> Self {
        Self::USUAL
    }
}

/// The servers that a program names: `hikyaku://HOST:PORT,HOST`, the name of a cluster of the user's settings, or one
/// `HOST:PORT` after the other.
///
/// # Errors
///
/// A text is no address, the settings have a mistake, or there is none.
pub fn named(hosts: &[impl AsRef<str>]) -> Result<Servers, SessionError> {
    let wrong = |error: &dyn ToString| SessionError::refused(Kind::UnknownHost, error.to_string());
    if let [host] = hosts {
        let host = host.as_ref();
        if let Some(servers) = Servers::parse(host.as_bytes()) {
            return servers.map_err(|error| wrong(&error));
        }
        if let Some(cluster) = Settings::cluster_of_user(host).map_err(|error| wrong(&error))? {
            return Ok(Servers::of_cluster(&cluster, b""));
        }
    }
    if hosts.is_empty() {
        return Err(wrong(&"no server was named"));
    }
    let address =
        |host: &_| AsRef::<str>::as_ref(host).parse().map_err(|error: NotAnAddress| wrong(&error));
    let servers = hosts.iter().map(address).collect::<Result<_, _>>()?;
    Ok(Servers { servers, path: Vec::new(), ending: Ending::Slash, keys: Vec::new() })
}

impl Setup {
    /// The setup of the user who runs this process: the key and the list of known servers are in the state folder.
    ///
    /// # Errors
    ///
    /// There is no such folder, or the key cannot be read or made.
    pub fn of_user(servers: &Servers) -> Result<Self, SessionError> {
        Ok(Self {
            servers: servers.servers.clone(),
            keys: servers.keys.clone(),
            client: ClientConfig::of_user()?,
            parameters: Parameters::default(),
            log_dir: None,
        })
    }

    /// Connects to all servers at once, and waits until each has answered or 10 s have passed.
    ///
    /// # Errors
    ///
    /// None of them can be used, or this machine has no socket. Some that cannot be used are no error
    /// ([`Session::missing`]).
    pub fn start(self) -> Result<Session, SessionError> {
        let Self { servers, keys, client, parameters, log_dir } = self;
        let client = ClientConfig { window: parameters.client.window, ..client };
        let connector = Connector::new(client, servers.len(), STORE)?;
        let mut session = Session {
            connector,
            keys,
            parameters,
            log_dir,
            log: None,
            members: Vec::new(),
            missing: Vec::new(),
            turn: Mutex::default(),
            reads: AtomicUsize::new(0),
        };
        let dialled = at_once(&servers, |address| session.dial(address, ANSWER_TIME));
        for (address, dialled) in servers.into_iter().zip(dialled) {
            match dialled.and_then(|dialled| session.line(dialled, 1)) {
                Ok(line) => session.members.push(Member { address, line: Mutex::new(line) }),
                Err(source) => session.missing.push(HostError { address, source }),
            }
        }
        if session.members.is_empty() {
            return Err(SessionError::NoServer(session.missing));
        }
        let names = session.names();
        let log = session.log_dir.as_deref().map(|dir| Log::create(dir, &names));
        session.log = log.transpose()?;
        Ok(session)
    }
}
