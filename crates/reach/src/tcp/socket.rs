//! Sockets of TCP connections.

use hikyaku_units::DataSize;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// What may wait in the kernel to be sent on each of several TCP connections: more would be stuck in a slow one. Two
/// frames of pipes.
const UNSENT: DataSize = DataSize::from_bytes(256 << 10);
/// A peer that takes nothing for so long is gone: whoever reads gives credit first.
const TAKES_NOTHING: Duration = Duration::from_secs(10);

/// The parts of a socket after its handshake.
pub(super) struct Prepared<B> {
    pub(super) input: Input,
    pub(super) output: Closing,
    /// Ends both directions.
    pub(super) breaker: B,
}

impl Prepared<()> {
    /// Sets the socket up for a pipe.
    pub(super) fn of(stream: TcpStream) -> io::Result<Prepared<impl Fn() + Send + 'static>> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(Some(TAKES_NOTHING))?;
        // Kernels without it let more wait.
        let _ = hikyaku_tcp::limit_unsent(&stream, UNSENT);
        let breaks = stream.try_clone()?;
        let input = Input { stream: stream.try_clone()?, until: None };
        let breaker = move || drop(breaks.shutdown(Shutdown::Both));
        Ok(Prepared { input, output: Closing(stream), breaker })
    }
}

/// The direction from the peer, of which the beginning may have to come within a time.
pub(super) struct Input {
    stream: TcpStream,
    until: Option<Instant>,
}

impl Input {
    /// What is read must come until then, or may come at any time.
    pub(super) fn set_until(&mut self, until: Option<Instant>) -> io::Result<()> {
        self.until = until;
        self.stream.set_read_timeout(None)
    }
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.until {
            None => self.stream.read(out),
            Some(until) => Bounded { stream: &self.stream, until }.read(out),
        }
    }
}

/// The direction to the peer. Its end ends the whole connection, so that who reads does not wait for ever.
pub(super) struct Closing(TcpStream);

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
pub(super) struct Bounded<'a> {
    pub(super) stream: &'a TcpStream,
    pub(super) until: Instant,
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
