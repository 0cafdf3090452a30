//! Connections to daemons over TCP, for paths that let no UDP through: TLS 1.3, and in it streams and objects of
//! `hikyaku-pipes`.

use crate::carrier::Connection;
use crate::dial::Address;
use crate::watch::{Fate, Gone, watch_pipe};
use hikyaku_crypto::{
    ClientCredentials, Fingerprint, Handshake, NotAPeerName, PeerName, ServerCredentials,
    SettleTrust, TlsStream, TrustOutcome,
};
use hikyaku_net::Side;
use hikyaku_pipes::{Config, Pipe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

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
    /// The system refuses to start a thread, or to set the socket up.
    #[error("cannot use the connection")]
    System(#[from] io::Error),
}

/// An end that is not heard for so long is gone. The same as over UDP.
const SILENCE: Duration = Duration::from_secs(10);

/// Connects to a daemon; everything together takes at most `patience`.
pub(crate) fn dial(
    address: &Address,
    credentials: &ClientCredentials,
    patience: Duration,
    config: Config,
) -> Result<(Connection, TrustOutcome), TcpError> {
    let until = Instant::now() + patience;
    let peer = PeerName::new(&address.host, address.port)?;
    let connect = |source| TcpError::Connect { address: address.clone(), source };
    let stream = to(address, until).map_err(connect)?;
    let (tls, trust) = credentials.connect(&peer, &mut Bounded { stream: &stream, until })?;
    let outcome = trust.settle(SystemTime::now())?;
    Ok((carried(tls, stream, Side::Client, config)?, outcome))
}

/// A TCP connection to the first address of the host that answers.
fn to(address: &Address, until: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for at in (address.host.as_str(), address.port).to_socket_addrs()? {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&at, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A port that accepts connections over TCP.
pub struct TcpDoor {
    listener: TcpListener,
    credentials: ServerCredentials,
}

impl TcpDoor {
    /// Listens at `address`.
    ///
    /// # Errors
    ///
    /// The port is taken, or the user may not have it.
    pub fn bind(address: SocketAddr, credentials: ServerCredentials) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address)?, credentials })
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

    /// Shakes hands with one that came, within `patience`. Returns its key, if it was asked for one.
    ///
    /// # Errors
    ///
    /// It is no client, or too slow.
    pub fn admit(
        &self,
        stream: TcpStream,
        patience: Duration,
    ) -> Result<(Connection, Option<Fingerprint>), TcpError> {
        let until = Instant::now() + patience;
        let tls = self.credentials.accept(&mut Bounded { stream: &stream, until })?;
        let key = tls.peer_fingerprint();
        Ok((carried(tls, stream, Side::Server, Config::default())?, key))
    }
}

/// The connection in an encrypted stream, which is watched until its end.
fn carried(
    tls: TlsStream,
    stream: TcpStream,
    side: Side,
    config: Config,
) -> io::Result<Connection> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(None)?;
    // A peer that takes nothing for so long is gone: whoever reads gives credit first.
    stream.set_write_timeout(Some(SILENCE))?;
    let (input, output) = tls.split(stream.try_clone()?, Closing(stream));
    let connection = Connection::from(hikyaku_pipes::Connection::new(
        vec![Pipe::new(input, output)],
        side,
        config,
    )?);
    let watched = connection.clone();
    thread::Builder::new().name("tcp-watch".to_owned()).spawn(move || {
        watch_pipe(&watched, SILENCE, &Fate::default(), || Gone::Lost);
    })?;
    Ok(connection)
}

/// The direction to the peer. Its end ends the whole connection, so that who reads does not wait for ever.
struct Closing(TcpStream);

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// A stream that may be used until a time, whatever the peer sends and how slowly.
struct Bounded<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl Bounded<'_> {
    fn left(&self) -> io::Result<Duration> {
        match self.until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }
}

impl Read for Bounded<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(out)
    }
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
