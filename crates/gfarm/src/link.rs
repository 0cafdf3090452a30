//! A connection to a server.

use crate::code::{Reader, Writer};
use crate::config::Address;
use crate::error::{CallError, ConnectError};
use std::io::{BufReader, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long a server may take to accept a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long a server may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Bytes that are read at once where a reply is small. Blocks of files are read without this buffer.
const BUFFER_BYTES: usize = 64 << 10;

/// Replies of a server.
pub(crate) type Replies = Reader<BufReader<TcpStream>>;

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) reply: Replies,
    pub(crate) round_trip: Duration,
}

impl Link {
    /// Connects to the first address of the host that answers.
    pub(crate) fn connect(server: &Address) -> Result<Self, ConnectError> {
        let name = || ConnectError::Name { host: server.host.clone() };
        let addresses =
            (server.host.as_str(), server.port).to_socket_addrs().map_err(|_| name())?;
        let mut last = None;
        for address in addresses {
            let begin = Instant::now();
            match TcpStream::connect_timeout(&address, CONNECT_TIME) {
                Ok(stream) => {
                    let call = |error: std::io::Error| ConnectError::Call {
                        server: server.to_string(),
                        error: error.into(),
                    };
                    stream.set_nodelay(true).map_err(call)?;
                    stream.set_read_timeout(Some(ANSWER_TIME)).map_err(call)?;
                    stream.set_write_timeout(Some(ANSWER_TIME)).map_err(call)?;
                    let round_trip = begin.elapsed();
                    let reply = Reader::new(BufReader::with_capacity(BUFFER_BYTES, stream));
                    return Ok(Self { reply, round_trip });
                }
                Err(error) => last = Some(error.kind()),
            }
        }
        let failed = |kind| ConnectError::Connect { server: server.to_string(), kind };
        Err(last.map_or_else(name, failed))
    }

    /// Sends requests.
    pub(crate) fn send(&self, requests: &Writer) -> Result<(), CallError> {
        let mut stream: &TcpStream = self.reply.source().get_ref();
        Ok(stream.write_all(requests.bytes())?)
    }

    /// Sends requests while the replies are read.
    pub(crate) fn sender(&self) -> Result<Sender, CallError> {
        Ok(Sender(self.reply.source().get_ref().try_clone()?))
    }

    /// Ends the connection.
    pub(crate) fn end(&self) {
        // A connection that has ended by itself is not connected.
        let _ = self.reply.source().get_ref().shutdown(Shutdown::Both);
    }

    /// What ends the connection from another thread.
    pub(crate) fn hang_up(&self) -> std::io::Result<HangUp> {
        Ok(HangUp(self.reply.source().get_ref().try_clone()?))
    }
}

/// The writing half of a connection.
#[derive(Debug)]
pub(crate) struct Sender(TcpStream);

impl Sender {
    pub(crate) fn send(&self, requests: &Writer) -> Result<(), CallError> {
        Ok((&self.0).write_all(requests.bytes())?)
    }
}

/// Ends a connection that another thread uses.
#[derive(Debug)]
pub(crate) struct HangUp(TcpStream);

impl HangUp {
    pub(crate) fn now(&self) {
        // A connection that has ended by itself is not connected.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}
