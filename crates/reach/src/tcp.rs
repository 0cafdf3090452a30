//! Connections over TCP, for paths that let no UDP through: TLS 1.3, and in it streams and objects of `hikyaku-pipes`.
//!
//! One connection is carried by several TCP connections, each a pipe with a handshake of its own. The end that connects
//! opens the first one, gets a token of the other end in it, and opens more with that token as the tuner asks for them
//! (`Steer`). The end that listens ([`TcpDoor`]) gives tokens out, and puts further pipes to their connections.

mod decisions;
mod door;
mod handshakes;
mod other;
mod socket;
mod steer;

pub use decisions::{Decision, Decisions};
pub use door::{Admitted, HELLO, TcpDoor};
pub use handshakes::{HandshakeLimits, Handshakes, Place};
pub use steer::{PIPES_MAX, Pipes};

use crate::carrier::Connection;
use crate::dial::Address;
use crate::watch::{Fate, Gone, watch_pipe};
use hikyaku_crypto::{
    ClientCredentials, Handshake, NotAPeerName, PeerName, SettleTrust, TrustOutcome,
};
use hikyaku_net::{Memory, Side};
use hikyaku_pipes::{Config, Extender, OnLoss, Pipe, Token};
use hikyaku_tcp::{Options, connect_first, in_turn};
use other::Overheard;
use socket::{Bounded, Prepared};
use std::io;
use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use steer::{Seen, Steer};

/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 16;

/// Why there is no connection over TCP.
#[derive(Debug, thiserror::Error)]
pub enum TcpError {
    /// The name cannot be looked up, or nothing answers there.
    #[error("cannot connect to {address} over TCP")]
    Connect {
        /// Where to.
        address: Address,
        /// The cause.
        source: io::Error,
    },
    /// The host is no name.
    #[error(transparent)]
    Name(#[from] NotAPeerName),
    /// No TLS handshake.
    #[error(transparent)]
    Handshake(#[from] Handshake),
    /// The server's key is not the expected one, or it cannot be remembered.
    #[error(transparent)]
    Trust(#[from] SettleTrust),
    /// A service of another kind has the port.
    #[error("{service} has the port, and no daemon of hikyaku")]
    Other {
        /// What it is.
        service: &'static str,
    },
    /// The system refuses to start a thread, or to set the socket up.
    #[error("cannot use the connection")]
    System(#[from] io::Error),
}

/// An end that is not heard for so long is gone. The same as over UDP.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);
/// The pause before a handshake that was ended is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long the handshakes of a further pipe may take.
const PATIENCE_FURTHER: Duration = Duration::from_secs(8);

/// How to connect over TCP.
#[derive(Clone)]
pub(crate) struct Call {
    /// Where to, as the user said it.
    pub(crate) address: Address,
    /// The addresses to try.
    pub(crate) at: Vec<SocketAddr>,
    pub(crate) credentials: ClientCredentials,
    /// Everything together takes at most this long.
    pub(crate) patience: Duration,
    pub(crate) config: Config,
    pub(crate) pipes: Pipes,
    /// An end that is not heard for so long is gone.
    pub(crate) silence: Duration,
    /// Where it is noted that it is.
    pub(crate) fate: Fate,
    /// Where the round-trip times of paths are remembered.
    pub(crate) memory: Memory,
    /// Receives the decisions on the number of connections.
    pub(crate) decisions: Decisions,
}

/// A connection over TCP, and what is known of it.
pub(crate) struct Called {
    pub(crate) connection: Connection,
    pub(crate) trust: TrustOutcome,
    /// The other end's address.
    pub(crate) peer: SocketAddr,
}

impl Call {
    /// Connects. A daemon that is busy with the handshakes of others may end one that has just begun: then it is tried once
    /// more.
    pub(crate) fn dial(self) -> Result<Called, TcpError> {
        let until = Instant::now() + self.patience;
        let again = self.clone();
        match self.dial_once(until) {
            Err(TcpError::Handshake(Handshake::Io(error)))
                if matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
                    && Instant::now() + AGAIN < until =>
            {
                thread::sleep(AGAIN);
                again.dial_once(until)
            }
            other => other,
        }
    }

    fn dial_once(self, until: Instant) -> Result<Called, TcpError> {
        let name = PeerName::new(&self.address.host, self.address.port)?;
        let connect = |source| TcpError::Connect { address: self.address.clone(), source };
        let stream = first_of(&self.at, until).map_err(connect)?;
        let peer = stream.peer_addr()?;
        let begin = Instant::now();
        let mut heard = Overheard::new(Bounded { stream: &stream, until });
        let shaken = self.credentials.connect(&name, &mut heard);
        let (tls, trust) = shaken.map_err(|error| match (error, heard.service()) {
            (Handshake::Tls(_) | Handshake::Io(_), Some(service)) => TcpError::Other { service },
            (error, _) => error.into(),
        })?;
        // The handshake takes one, and some time of both processors.
        let round_trip = begin.elapsed();
        let trust = trust.settle(SystemTime::now())?;
        let config = Config { on_loss: OnLoss::Repair, ..self.config };
        let seen = stream.try_clone()?;
        let socket = Prepared::of(stream)?;
        let (input, output) = tls.split(socket.input, socket.output);
        let pipe = Pipe::new(input, output).with_breaker(socket.breaker);
        let pipes = hikyaku_pipes::Connection::new(vec![pipe], Side::Client, config)?;
        let extender = pipes.extender();
        let connection = Connection::from(pipes);
        watch(&connection, self.silence, self.fate)?;
        let further = Further { peer, name, credentials: self.credentials };
        let seen = Seen::new(seen, self.memory);
        Steer::start(extender, (self.pipes, self.decisions), (round_trip, seen), further)?;
        Ok(Called { connection, trust, peer })
    }
}

/// How further pipes of a connection are opened.
struct Further {
    peer: SocketAddr,
    name: PeerName,
    credentials: ClientCredentials,
}

impl Further {
    /// Opens the pipe of this number. Returns its socket, to look at.
    fn open(&self, id: u32, token: Token, extender: &Extender) -> io::Result<TcpStream> {
        let until = Instant::now() + PATIENCE_FURTHER;
        let stream = TcpStream::connect_timeout(&self.peer, PATIENCE_FURTHER)?;
        let mut bounded = Bounded { stream: &stream, until };
        let shaken = self.credentials.connect(&self.name, &mut bounded);
        let (tls, trust) = shaken.map_err(io::Error::other)?;
        trust.settle(SystemTime::now()).map_err(io::Error::other)?;
        let seen = stream.try_clone()?;
        let socket = Prepared::of(stream)?;
        let (input, mut output) = tls.split(socket.input, socket.output);
        token.join(id, &mut output)?;
        extender.add(id, Pipe::new(input, output).with_breaker(socket.breaker))?;
        Ok(seen)
    }
}

/// A TCP connection to the first of the addresses that answers.
fn first_of(addresses: &[SocketAddr], until: Instant) -> io::Result<TcpStream> {
    let left = until.saturating_duration_since(Instant::now());
    let addresses = in_turn(addresses, ADDRESSES_MAX);
    Ok(connect_first(&addresses, &Options::default(), left, &|| true)?.stream)
}

/// Watches a connection until its end.
fn watch(connection: &Connection, silence: Duration, fate: Fate) -> io::Result<()> {
    let watched = connection.clone();
    let watch = move || watch_pipe(&watched, silence, &fate, || Gone::Lost);
    thread::Builder::new().name("tcp-watch".to_owned()).spawn(watch).map(drop)
}
