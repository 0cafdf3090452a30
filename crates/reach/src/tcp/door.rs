//! The port of the end that listens.

use super::handshakes::Place;
use super::socket::{Bounded, Prepared};
use super::{SILENCE, TcpError, watch};
use crate::carrier::Connection;
use crate::watch::Fate;
use hikyaku_crypto::{Fingerprint, ServerCredentials, random_array};
use hikyaku_net::Side;
use hikyaku_pipes::{Config, Extender, First, OnLoss, Pipe, Token};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io::{self, Cursor, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A port that accepts connections over TCP.
pub struct TcpDoor {
    listener: TcpListener,
    credentials: ServerCredentials,
    config: Config,
    silence: Duration,
    /// The connections that take further pipes, by their tokens, and whose they are.
    open: Mutex<HashMap<Token, (Extender, Option<Fingerprint>)>>,
}

/// What came of a handshake.
pub enum Admitted {
    /// A new connection, and the key of its client if it was asked for one.
    New(Connection, Option<Fingerprint>),
    /// A further pipe of a connection that is there.
    Further,
}

/// A client begins to speak within this time after it has connected.
pub const HELLO: Duration = Duration::from_secs(2);
/// Pipes of all connections of a port. Each costs this end two threads and 300 kB.
const PIPES_OF_PORT_MAX: usize = 2048;

impl TcpDoor {
    /// Listens at `address`.
    ///
    /// # Errors
    ///
    /// The port is taken, or the user may not have it.
    pub fn bind(address: SocketAddr, credentials: ServerCredentials) -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::bind(address)?,
            credentials,
            config: Config::default(),
            silence: SILENCE,
            open: Mutex::default(),
        })
    }

    /// The same for connections with these limits, whose peer is gone if it is not heard for so long.
    pub(crate) fn with_limits(self, config: Config, silence: Duration) -> Self {
        Self { config, silence, ..self }
    }

    /// The address and the port that it has.
    ///
    /// # Errors
    ///
    /// The system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next that comes within `time`, of which nothing is known but its address.
    ///
    /// # Errors
    ///
    /// The listener fails; or the one that came is gone already, and the next may be asked for.
    pub fn accept(&self, time: Duration) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        let time = Timespec::try_from(time).ok();
        let mut ready = [PollFd::new(&self.listener, PollFlags::IN)];
        match poll(&mut ready, time.as_ref()) {
            Ok(0) | Err(Errno::INTR) => Ok(None),
            Ok(_) => self.listener.accept().map(Some),
            Err(error) => Err(error.into()),
        }
    }

    /// Shakes hands with one that came, and hears for what it came, within `patience`. It begins to speak within
    /// [`HELLO`], which `place` is told.
    ///
    /// # Errors
    ///
    /// It is no client, or too slow; or it has a pipe for a connection that is not there, or not its own.
    pub fn admit(
        &self,
        stream: TcpStream,
        place: &Place,
        patience: Duration,
    ) -> Result<Admitted, TcpError> {
        let until = Instant::now() + patience;
        stream.set_read_timeout(Some(HELLO))?;
        if stream.peek(&mut [0])? > 0 {
            place.has_spoken();
        }
        let tls = self.credentials.accept(&mut Bounded { stream: &stream, until })?;
        let key = tls.peer_fingerprint();
        let socket = Prepared::of(stream)?;
        let (mut input, output) = tls.split(socket.input, socket.output);
        input.input_mut().set_until(Some(until))?;
        let first = First::read(&mut input)?;
        input.input_mut().set_until(None)?;
        match first {
            First::Further { id, token } => {
                let pipe = Pipe::new(input, output).with_breaker(socket.breaker);
                self.further(token, key)?.add(id, pipe)?;
                Ok(Admitted::Further)
            }
            First::New(read) => {
                let input = Cursor::new(read).chain(input);
                let pipe = Pipe::new(input, output).with_breaker(socket.breaker);
                let config = Config { on_loss: OnLoss::Repair, ..self.config.clone() };
                let pipes = hikyaku_pipes::Connection::new(vec![pipe], Side::Server, config)?;
                let (token, extender) = (Token(random_array()), pipes.extender());
                extender.offer(token);
                self.open().insert(token, (extender, key));
                let connection = Connection::from(pipes);
                watch(&connection, self.silence, Fate::default())?;
                Ok(Admitted::New(connection, key))
            }
        }
    }

    /// The connections that are open.
    fn open(&self) -> MutexGuard<'_, HashMap<Token, (Extender, Option<Fingerprint>)>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, (extender, _)| !extender.is_over());
        open
    }

    /// The connection to which a further pipe of the holder of `key` belongs.
    fn further(&self, token: Token, key: Option<Fingerprint>) -> io::Result<Extender> {
        let open = self.open();
        let pipes: usize = open.values().map(|(extender, _)| extender.figures().pipes).sum();
        let (extender, owner) = open.get(&token).ok_or(io::ErrorKind::NotFound)?;
        match *owner == key && pipes < PIPES_OF_PORT_MAX {
            true => Ok(extender.clone()),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}
