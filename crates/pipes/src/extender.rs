//! Further pipes for a connection that is open.

use crate::connection::{Figures, Shared};
use crate::frame::{HEADER_BYTES, Header, Kind, PIPES_MAX, TOKEN_BYTES};
use crate::pump::Pipe;
use hikyaku_proto::StreamId;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Instant;

/// Adds pipes to a connection, and sets the number that carries data. It does not keep the connection open.
#[derive(Clone)]
pub struct Extender(pub(crate) Arc<Shared>);

/// The token with which the other end can add pipes. It is as secret as the data in the pipes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub [u8; TOKEN_BYTES]);

/// The first frame of a pipe that was opened to this end.
pub enum First {
    /// With the first frame of a new connection. These bytes of it have been read.
    New([u8; HEADER_BYTES]),
    /// As a further pipe, with this number, of the connection of which the token is.
    Further {
        /// The number of the pipe, which the connection does not have yet.
        id: u32,
        /// The connection's token.
        token: Token,
    },
}

impl Extender {
    /// The largest number of pipes of a connection.
    pub const PIPES_MAX: usize = PIPES_MAX;

    /// Adds a pipe whose other end the peer adds under the same number. A number is used once in a connection.
    ///
    /// # Errors
    ///
    /// There is one of this number, or there are [`Extender::PIPES_MAX`], or the connection has ended; or the system
    /// refuses to start a thread.
    pub fn add(&self, id: u32, mut pipe: Pipe) -> io::Result<()> {
        let breaker = pipe.breaker.take();
        if !self.0.lock().add_pipe(id, breaker, Instant::now()) {
            return Err(io::Error::other("the connection takes no such pipe"));
        }
        pipe.start(id, &self.0).inspect_err(|_| {
            self.0.lose(id, hikyaku_proto::CloseReason::TimedOut);
        })
    }

    /// Lets only the first `width` pipes carry data, at both ends. The others stay, for messages and for what others
    /// do not deliver.
    pub fn set_width(&self, width: u32) {
        self.0.change(|mux| mux.set_width(width));
    }

    /// Gives the peer a token with which it can add pipes.
    pub fn offer(&self, token: Token) {
        self.0.change(|mux| mux.offer_token(token.0));
    }

    /// The token that the peer has given, if it has.
    pub fn token(&self) -> Option<Token> {
        self.0.lock().token().map(Token)
    }

    /// Whether the connection has ended.
    pub fn is_over(&self) -> bool {
        self.0.end().is_some()
    }

    /// The present statistics.
    pub fn figures(&self) -> Figures {
        self.0.figures()
    }
}

impl First {
    /// Reads how a pipe begins.
    ///
    /// # Errors
    ///
    /// The bytes are no frame, or the pipe fails.
    // fuzz: none, a header and sixteen bytes
    pub fn read(input: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0; HEADER_BYTES];
        input.read_exact(&mut bytes)?;
        let header = Header::read(&bytes).map_err(io::Error::other)?;
        if header.kind != Kind::Join {
            return Ok(Self::New(bytes));
        }
        let mut token = [0; TOKEN_BYTES];
        if header.length != token.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        input.read_exact(&mut token)?;
        Ok(Self::Further { id: header.id.0, token: Token(token) })
    }
}

impl Token {
    /// Begins a pipe as a further one, with this number, of the connection of which the token is.
    ///
    /// # Errors
    ///
    /// Those of the pipe.
    pub fn join(&self, id: u32, output: &mut impl Write) -> io::Result<()> {
        let Self(token) = self;
        let header = Header { kind: Kind::Join, id: StreamId(id), value: 0, length: token.len() };
        output.write_all(&[&header.write()[..], token].concat())?;
        output.flush()
    }
}
