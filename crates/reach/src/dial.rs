//! A connection to a daemon's address.

mod address;
mod servers;
mod trouble;

pub use address::{Address, NotAnAddress, PORT};
pub use servers::{Ending, Servers, trust};
pub use trouble::of_connect;

use crate::carrier::Connection;
use crate::closed::ClosedPort;
use crate::daemon::{NoService, Offered, ask};
use crate::race::{Met, NotMet, Race};
use crate::service::Readers;
use crate::ssh::Family;
use crate::tcp::{self, Call, Called, Decisions, Pipes, TcpError};
use crate::tuning::window_of_many;
use crate::watch::Fate;
use hikyaku_console::{Tone, no_listener, say};
use hikyaku_crypto::ClientCredentials;
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_net::{
    ConnectConfig, ConnectError, DataSize, Endpoint, EndpointConfig, EndpointError, Fingerprint,
    Identity, Memory, OnDrop, StalledStreams, Target, Trust, TrustOutcome,
};
use hikyaku_tcp::addresses;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::time::{Duration, Instant};

/// A socket for connections to many daemons.
pub struct Dialler {
    endpoint: Endpoint,
    identity: Identity,
    window: DataSize,
    via: Via,
    readers: Readers,
    silence: Duration,
    /// For connections over TCP.
    pipe_silence: Duration,
    pipes: Pipes,
    memory: Memory,
    family: Option<Family>,
}

/// What may carry a connection to a daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Via {
    /// The transport over UDP; where no UDP gets through, TLS over TCP.
    #[default]
    Auto,
    /// The transport over UDP only.
    Udp,
    /// TLS over TCP only.
    Tcp,
}

/// Why there is no connection to a daemon.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// It cannot be reached, or its key is not the expected one.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The same over TCP.
    #[error(transparent)]
    Tcp(#[from] TcpError),
    /// It does not offer the service.
    #[error(transparent)]
    Service(#[from] NoService),
    /// The kernel of its host refuses the port.
    #[error("{}", no_listener(host, protocols, *port))]
    Refused {
        /// The host as the user named it.
        host: String,
        /// The protocols that were tried.
        protocols: &'static str,
        /// The port.
        port: u16,
    },
}

/// A connection to a daemon.
pub struct Dialled {
    /// The connection, which belongs to the service.
    pub connection: Connection,
    /// The daemon's key, if it was met for the first time. A person may want to compare it.
    pub first_use: Option<Fingerprint>,
    /// What carries it.
    pub carrier: Carrier,
    /// Features of the service that both ends have.
    pub features: BTreeSet<String>,
}

/// What carries a connection to a daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// The transport over UDP.
    Udp,
    /// TLS over TCP.
    Tcp,
}

impl Carrier {
    /// Its name, for users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        }
    }
}

/// Memory of all connections of a socket for data that is not read yet, and what one connection has of it at least.
const WINDOWS_BYTES: u64 = 512_000_000;
const WINDOW_BYTES_MIN: u64 = 16_000_000;
/// How long the ends of connections may take to reach the daemons. One that is not told keeps the place of the session until
/// it has found the silence.
const LAST_WORD: Duration = Duration::from_secs(1);

impl Dialler {
    /// Binds a socket for connections to about `servers` daemons, which know this end by `identity`.
    ///
    /// # Errors
    ///
    /// No socket can be had.
    pub fn new(
        identity: Identity,
        servers: usize,
        memory: Memory,
        via: Via,
    ) -> Result<Self, EndpointError> {
        let mut config = EndpointConfig::default();
        config.memory = memory.clone();
        (config.on_drop, config.linger, config.closing) = (OnDrop::Wait, LAST_WORD, LAST_WORD);
        // A machine without IPv6 has no socket for it.
        let endpoint = Endpoint::bind((Ipv6Addr::UNSPECIFIED, 0).into(), config.clone())
            .or_else(|_| Endpoint::bind((Ipv4Addr::UNSPECIFIED, 0).into(), config))?;
        let window = (WINDOWS_BYTES / servers.max(1) as u64).max(WINDOW_BYTES_MIN);
        let (window, readers) = (DataSize::from_bytes(window), Readers::One);
        Ok(Self {
            endpoint,
            identity,
            window,
            via,
            readers,
            silence: SILENCE,
            pipe_silence: tcp::SILENCE,
            pipes: Pipes::Auto,
            memory,
            family: None,
        })
    }

    /// The same with this number of TCP connections, where TCP carries a connection. Default: [`Pipes::Auto`].
    pub fn with_pipes(self, pipes: Pipes) -> Self {
        Self { pipes, ..self }
    }

    /// Uses addresses of this family only. Default: both.
    pub fn with_family(self, family: Option<Family>) -> Self {
        Self { family, ..self }
    }

    /// Sets the time after which a silent daemon counts as lost. Default: 10 s.
    pub fn with_silence(self, silence: Duration) -> Self {
        Self { silence, pipe_silence: silence, ..self }
    }

    /// The same for streams that many programs read, as those of carried flows. A daemon that is not heard for `silence`
    /// is gone.
    pub fn for_flows(self, silence: Duration) -> Self {
        Self { readers: Readers::Many, silence, ..self }
    }

    /// The same with this much memory for data of one connection that are not read yet, in place of a share of 512 MB.
    pub fn with_window(self, window: DataSize) -> Self {
        Self { window, ..self }
    }

    /// A command that would make the socket faster, if there is one.
    pub fn advice(&self) -> Option<&str> {
        self.endpoint.advice()
    }

    /// Connects to a daemon and asks for a service, both within `patience` each.
    ///
    /// # Errors
    ///
    /// It cannot be reached, has another key than `trust` expects, or does not offer the service.
    pub fn dial(
        &self,
        address: &Address,
        trust: Trust,
        service: &Offered<'_>,
        patience: Duration,
    ) -> Result<Dialled, DialError> {
        let at = self.look_up(address)?;
        let target = Target::at(address.host.clone(), at.clone());
        let call = self.call(address, at, trust.clone(), patience);
        let (connection, outcome, carrier) = match self.via {
            Via::Auto => self.by_udp_or_tcp((target, call), trust, patience)?,
            Via::Udp => {
                let closed = ClosedPort::ask(call.at);
                let mut udp = pin!(self.endpoint.connect(target, self.udp_config(trust, patience)));
                loop {
                    match wait(udp.as_mut(), &Stop::default(), Some(Instant::now() + LOOK)) {
                        Ok(connected) => break by_udp(connected?),
                        Err(_) if closed.is_found() => {
                            return Err(refused(address, "UDP"));
                        }
                        Err(Cut::TooLate | Cut::Stopped) => {}
                    }
                }
            }
            Via::Tcp => by_tcp(call.dial().map_err(|error| not_called(address, error))?),
        };
        let first_use = match outcome {
            Some(TrustOutcome::FirstUse(key)) => Some(key),
            _ => None,
        };
        let features = ask(&connection, service, patience)?.features;
        say(Tone::Detail, format_args!("{address} is reached by {}", carrier.name()));
        Ok(Dialled { connection, first_use, carrier, features })
    }

    /// The one of the two that connects. TCP begins later, so that it is used only where UDP does not get through.
    fn by_udp_or_tcp(
        &self,
        (target, call): (Target, Call),
        trust: Trust,
        patience: Duration,
    ) -> Result<(Connection, Option<TrustOutcome>, Carrier), DialError> {
        let address = call.address.clone();
        let udp = self.endpoint.connect(target, self.udp_config(trust, patience));
        let at = call.at.clone();
        let race = Race {
            memory: self.memory.clone(),
            at: &at,
            closed: ClosedPort::ask(at.clone()),
            udp_time: None,
        };
        let is_silence = |error: &ConnectError| {
            matches!(error, ConnectError::NoAnswer { .. } | ConnectError::Unreachable { .. })
        };
        match race.run(udp, call, is_silence) {
            Ok(Met::Udp(connection)) => Ok(by_udp(connection)),
            Ok(Met::Tcp(called)) => Ok(by_tcp(called)),
            Err(NotMet::Udp(error)) => Err(error.into()),
            Err(NotMet::Both { udp, tcp }) => Err(neither(&address, udp, tcp)),
            Err(NotMet::Thread(error)) => Err(TcpError::System(error).into()),
        }
    }

    /// The addresses of a host, of the family that is used. The name is looked up once for all ways to connect.
    fn look_up(&self, address: &Address) -> Result<Vec<SocketAddr>, ConnectError> {
        let (host, port) = (address.host.as_str(), address.port);
        let not_found = |source| ConnectError::NotFound { host: host.to_owned(), source };
        addresses(host, port, self.family).map_err(not_found)
    }

    /// How to connect over TCP.
    fn call(
        &self,
        address: &Address,
        at: Vec<SocketAddr>,
        trust: Trust,
        patience: Duration,
    ) -> Call {
        let config = hikyaku_pipes::Config {
            window: self.window.bytes(),
            ..hikyaku_pipes::Config::default()
        };
        Call {
            address: address.clone(),
            at,
            credentials: ClientCredentials::new(trust).with_identity(&self.identity),
            patience,
            config,
            pipes: self.pipes,
            silence: self.pipe_silence,
            fate: Fate::default(),
            memory: self.memory.clone(),
            decisions: Decisions::default(),
        }
    }

    fn udp_config(&self, trust: Trust, patience: Duration) -> ConnectConfig {
        let mut config = ConnectConfig::new(trust);
        config.credentials = config.credentials.with_identity(&self.identity);
        config.transport.connect_timeout = patience;
        let transport = &mut config.transport;
        transport.receive_window = self.window;
        transport.initial_window = transport.initial_window.min(self.window);
        transport.stream_window = transport.initial_window;
        transport.max_streams = OBJECTS;
        transport.keep_alive = KEEP_ALIVE;
        transport.idle_timeout = self.silence;
        if self.readers == Readers::Many {
            transport.stream_window = window_of_many(self.window).min(transport.initial_window);
            transport.stalled = StalledStreams::Stop;
        }
        config
    }
}

/// The error of a port that the kernel of the host refuses.
fn refused(address: &Address, protocols: &'static str) -> DialError {
    DialError::Refused { host: address.host.clone(), protocols, port: address.port }
}

/// Why neither UDP nor TCP leads to a daemon. Without an error of UDP, the kernel of its host refuses the UDP port.
fn neither(address: &Address, udp: Option<ConnectError>, tcp: TcpError) -> DialError {
    match (udp, tcp) {
        (_, error @ TcpError::Other { .. }) => error.into(),
        // The reason that matters is that of UDP.
        (Some(error), _) => error.into(),
        (None, TcpError::Connect { source, .. }) if is_refused(&source) => {
            refused(address, "UDP and TCP")
        }
        (None, error) => error.into(),
    }
}

/// Why TCP alone does not lead to a daemon.
fn not_called(address: &Address, error: TcpError) -> DialError {
    match error {
        TcpError::Connect { source, .. } if is_refused(&source) => refused(address, "TCP"),
        error => error.into(),
    }
}

/// Whether the kernel of the host refuses a connection over TCP.
fn is_refused(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionRefused
}

/// What a connection over UDP is, and what its handshake says of the server.
fn by_udp(connection: hikyaku_net::Connection) -> (Connection, Option<TrustOutcome>, Carrier) {
    let outcome = connection.trust();
    (connection.into(), outcome, Carrier::Udp)
}

/// The same over TCP.
fn by_tcp(called: Called) -> (Connection, Option<TrustOutcome>, Carrier) {
    (called.connection, Some(called.trust), Carrier::Tcp)
}

/// How often it is looked whether the UDP port is closed.
const LOOK: Duration = Duration::from_millis(20);
/// Objects that a daemon may have open.
const OBJECTS: u32 = 64;
/// A daemon is heard at least this often.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// A daemon that is not heard for so long is gone. Its work can be given to others, and outages of a path are shorter.
const SILENCE: Duration = Duration::from_secs(10);
