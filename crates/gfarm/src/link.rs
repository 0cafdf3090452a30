//! A connection to a server.

use crate::account::Dial;
use crate::code::{Reader, Writer};
use crate::config::Address;
use crate::error::{CallError, ConnectError};
use hikyaku_tcp::{Options, addresses, connect_first, in_turn};
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Addresses of a server that are tried.
const ADDRESSES_MAX: usize = 16;
/// How long a server may take to accept a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long a server may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Bytes that are read at once where a reply is small. Blocks of files are read without this buffer.
const BUFFER_BYTES: usize = 64 << 10;

/// Replies of a server.
pub(crate) type Replies = Reader<BufReader<Stream>>;

/// What carries a connection: TCP, or the socket that gfsd has for programs on its own machine.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) reply: Replies,
    pub(crate) round_trip: Duration,
}

impl Link {
    /// Connects to the first address of the host that answers.
    pub(crate) fn connect(server: &Address, dial: Dial) -> Result<Self, ConnectError> {
        let name = || ConnectError::Name { host: server.host.clone() };
        let addresses = addresses(&server.host, server.port, dial.family).map_err(|_| name())?;
        let within = dial.silence.unwrap_or(CONNECT_TIME);
        let addresses = in_turn(&addresses, ADDRESSES_MAX);
        let won = connect_first(&addresses, &Options::default(), within, &|| true);
        let won = won.map_err(|error| ConnectError::Connect {
            server: server.to_string(),
            kind: io::Error::from(error).kind(),
        })?;
        let failed = |error: io::Error| ConnectError::Call {
            server: server.to_string(),
            error: error.into(),
        };
        won.stream.set_nodelay(true).map_err(failed)?;
        Self::new(Stream::Tcp(won.stream), won.handshake, dial).map_err(failed)
    }

    /// Connects to a socket of this machine.
    pub(crate) fn connect_local(socket: &Path, dial: Dial) -> io::Result<Self> {
        Self::new(Stream::Unix(UnixStream::connect(socket)?), Duration::ZERO, dial)
    }

    fn new(stream: Stream, round_trip: Duration, dial: Dial) -> io::Result<Self> {
        let silence = Some(dial.silence.unwrap_or(ANSWER_TIME));
        match &stream {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(silence)?;
                stream.set_write_timeout(silence)?;
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(silence)?;
                stream.set_write_timeout(silence)?;
            }
        }
        let reply = Reader::new(BufReader::with_capacity(BUFFER_BYTES, stream));
        Ok(Self { reply, round_trip })
    }

    /// Sends requests.
    pub(crate) fn send(&self, requests: &Writer) -> Result<(), CallError> {
        Ok(self.stream().send(requests.bytes())?)
    }

    /// Sends bytes that follow a request.
    pub(crate) fn send_bytes(&self, bytes: &[u8]) -> Result<(), CallError> {
        Ok(self.stream().send(bytes)?)
    }

    /// Sends requests while the replies are read.
    pub(crate) fn sender(&self) -> Result<Sender, CallError> {
        Ok(Sender(self.stream().again()?))
    }

    /// Ends the connection.
    pub(crate) fn end(&self) {
        self.stream().end();
    }

    /// What ends the connection from another thread.
    pub(crate) fn hang_up(&self) -> io::Result<HangUp> {
        Ok(HangUp(self.stream().again()?))
    }

    /// A connection to a socket of this machine, with nothing of its replies in a buffer.
    pub(crate) fn unbuffered(&self) -> Option<&UnixStream> {
        match self.stream() {
            Stream::Unix(stream) if self.reply.source().buffer().is_empty() => Some(stream),
            _ => None,
        }
    }

    fn stream(&self) -> &Stream {
        self.reply.source().get_ref()
    }
}

impl Stream {
    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => (&*stream).write_all(bytes),
            Self::Unix(stream) => (&*stream).write_all(bytes),
        }
    }

    fn again(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
        })
    }

    fn end(&self) {
        // A connection that has ended by itself is not connected.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

/// The writing half of a connection.
#[derive(Debug)]
pub(crate) struct Sender(Stream);

impl Sender {
    pub(crate) fn send(&self, requests: &Writer) -> Result<(), CallError> {
        Ok(self.0.send(requests.bytes())?)
    }
}

/// Ends a connection that another thread uses.
#[derive(Debug)]
pub(crate) struct HangUp(Stream);

impl HangUp {
    pub(crate) fn now(&self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_tcp::Family;
    use std::net::TcpListener;

    #[test]
    fn a_server_is_dialled_as_the_user_wants() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Address { host: "127.0.0.1".to_owned(), port };
        let silence = Some(Duration::from_millis(200));
        let dial = Dial { family: Some(Family::V4), silence };
        let mut link = Link::connect(&server, dial).unwrap();
        let Stream::Tcp(stream) = link.stream() else { panic!("not by TCP") };
        assert_eq!([stream.read_timeout().unwrap(), stream.write_timeout().unwrap()], [silence; 2]);
        // The listener never answers.
        link.reply.good().unwrap_err();
        let other = Dial { family: Some(Family::V6), ..dial };
        let error = Link::connect(&server, other).unwrap_err();
        assert!(matches!(error, ConnectError::Name { .. }), "{error}");
    }
}
