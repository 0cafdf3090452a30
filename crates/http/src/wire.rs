//! The bytes of a connection: TCP, or TLS over it, with a buffer for bytes behind a head or a line.

use crate::fault::Fault;
use crate::head::{HEAD_BYTES_MAX, Head};
use rustls::{ClientConnection, StreamOwned};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time between two checks of the stop of a connection that waits for bytes.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Octets of a line of a chunked body at most.
const LINE_BYTES_MAX: usize = 4096;

/// Ends the requests of a download. Clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends them.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether they are to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Fails if they are to end.
    ///
    /// # Errors
    ///
    /// [`Fault::Stopped`].
    pub fn check(&self) -> Result<(), Fault> {
        if self.is_set() { Err(Fault::Stopped) } else { Ok(()) }
    }

    /// Waits for this time, or until the stop is set.
    pub fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_set() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    const fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &stream.sock,
        }
    }

    /// Reads at least one byte. Returns 0 at the end.
    fn pull(&mut self, into: &mut [u8], patience: Duration, stop: &Stop) -> Result<usize, Fault> {
        let begin = Instant::now();
        loop {
            stop.check()?;
            match self.read(into) {
                Ok(length) => return Ok(length),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                        if begin.elapsed() >= patience {
                            return Err(Fault::Silent(patience));
                        }
                    }
                    ErrorKind::Interrupted => {}
                    // TLS without a final alert may have been cut off by an attacker on the path.
                    ErrorKind::UnexpectedEof => return Err(Fault::Closed),
                    _ => return Err(Fault::Connection(error)),
                },
            }
        }
    }
}

/// A stream with a buffer.
pub(crate) struct Wire {
    stream: Stream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    patience: Duration,
    stop: Stop,
}

impl Wire {
    pub(crate) fn new(stream: Stream, patience: Duration, stop: Stop) -> Self {
        let buffer = vec![0; HEAD_BYTES_MAX].into_boxed_slice();
        Self { stream, buffer, start: 0, end: 0, patience, stop }
    }

    /// Replaces the stop.
    pub(crate) fn end_with(&mut self, stop: &Stop) {
        self.stop = stop.clone();
    }

    /// The TCP connection, if its buffer is empty.
    pub(crate) fn into_tcp(self) -> Option<TcpStream> {
        match self.stream {
            Stream::Plain(stream) if self.start == self.end => Some(stream),
            _ => None,
        }
    }

    /// The round-trip time of now, as the kernel measures it from what it receives. `None` before the first measurement.
    pub(crate) fn receive_rtt(&self) -> Option<Duration> {
        let info = hikyaku_tcp::info(self.stream.tcp()).ok()?;
        (!info.receive_rtt.is_zero()).then_some(info.receive_rtt)
    }

    /// Whether the buffer is empty: the server has sent nothing behind its answer, as far as is known.
    pub(crate) const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.stream.write_all(bytes).map_err(Fault::Connection)
    }

    /// Reads the head of a response. It has to be complete after `within`.
    pub(crate) fn head(&mut self, begin: Instant, within: Duration) -> Result<Head, Fault> {
        loop {
            if let Some((head, length)) = Head::parse(&self.buffer[self.start..self.end])? {
                self.start += length;
                return Ok(head);
            }
            if begin.elapsed() >= within {
                return Err(Fault::Slow(within));
            }
            self.fill()?;
        }
    }

    /// The time without a byte after which a request fails.
    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    /// Reads more into the buffer, which has room: a caller keeps at most a head in it.
    fn fill(&mut self) -> Result<(), Fault> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let room = &mut self.buffer[self.end..];
        match self.stream.pull(room, self.patience, &self.stop)? {
            0 => Err(Fault::Closed),
            length => {
                self.end += length;
                Ok(())
            }
        }
    }

    /// A line without its end (`\r\n` or `\n`).
    pub(crate) fn line(&mut self) -> Result<Vec<u8>, Fault> {
        loop {
            let waiting = &self.buffer[self.start..self.end];
            if let Some(at) = waiting.iter().position(|&byte| byte == b'\n') {
                let line = waiting[..at].strip_suffix(b"\r").unwrap_or(&waiting[..at]).to_vec();
                self.start += at + 1;
                return Ok(line);
            }
            if waiting.len() > LINE_BYTES_MAX {
                return Err(Fault::Lie("sends a line without end"));
            }
            self.fill()?;
        }
    }

    /// Reads bytes of a body. Returns 0 at the end of the connection.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize, Fault> {
        if self.start == self.end {
            return self.stream.pull(into, self.patience, &self.stop);
        }
        let length = into.len().min(self.end - self.start);
        into[..length].copy_from_slice(&self.buffer[self.start..self.start + length]);
        self.start += length;
        Ok(length)
    }
}
