//! A data connection.

use crate::control::LOOK_EVERY;
use crate::error::FtpError;
use crate::gauge::Gauge;
use crate::guard::Guard;
use crate::transfer::Flow;
use rustls::Connection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// A data connection, for threads that look at their flow now and then: a read or a write that takes longer than
/// [`LOOK_EVERY`] fails with `WouldBlock` and may be tried again. Bytes that a write has taken are not sent before
/// [`flush`](Write::flush) has succeeded.
#[derive(Debug)]
pub(crate) struct Data {
    stream: TcpStream,
    /// Which of the server's data nodes is at its other end, from 0.
    stripe: usize,
    /// TLS, if the bytes are encrypted.
    tls: Option<Box<Connection>>,
    gauge: Option<Arc<Gauge>>,
}

impl Data {
    /// A connection that the server has opened. `guard` authenticates it.
    ///
    /// # Errors
    /// The server does not have the key, or the connection is lost.
    pub(crate) fn accepted(
        (stream, stripe): (TcpStream, usize),
        guard: Option<&Guard>,
        flow: &Flow<'_>,
    ) -> Result<Self, FtpError> {
        let mut data = Self::new(stream, stripe)?;
        if let Some(guard) = guard {
            data.tls = guard.accept(&mut data.stream, flow)?;
        }
        Ok(data)
    }

    /// A connection that this end has opened. `guard` authenticates it.
    ///
    /// # Errors
    /// The server does not have the key, or the connection is lost.
    pub(crate) fn connected(
        (stream, stripe): (TcpStream, usize),
        guard: Option<&Guard>,
        flow: &Flow<'_>,
    ) -> Result<Self, FtpError> {
        let mut data = Self::new(stream, stripe)?;
        if let Some(guard) = guard {
            data.tls = guard.connect(&mut data.stream, flow)?;
        }
        Ok(data)
    }

    fn new(stream: TcpStream, stripe: usize) -> Result<Self, FtpError> {
        let look = Some(LOOK_EVERY);
        stream.set_nonblocking(false).map_err(FtpError::Data)?;
        stream.set_read_timeout(look).map_err(FtpError::Data)?;
        stream.set_write_timeout(look).map_err(FtpError::Data)?;
        // The end of a part is a short block that must not wait for an acknowledgement.
        stream.set_nodelay(true).map_err(FtpError::Data)?;
        Ok(Self { stream, stripe, tls: None, gauge: None })
    }

    /// The connection, which keeps a gauge up to date.
    pub(crate) fn gauged(self, gauge: Arc<Gauge>) -> Self {
        Self { gauge: Some(gauge), ..self }
    }

    /// Whether it carries bytes from this moment on.
    pub(crate) fn set_resting(&self, is_resting: bool) {
        if let Some(gauge) = &self.gauge {
            gauge.set_resting(is_resting);
        }
    }

    /// Which of the server's data nodes is at its other end, from 0.
    pub(crate) const fn stripe(&self) -> usize {
        self.stripe
    }

    /// Packets that the kernel has retransmitted since the connection began; 0 if the kernel does not report them.
    pub(crate) fn retransmitted(&self) -> u64 {
        hikyaku_tcp::info(&self.stream).map_or(0, |info| u64::from(info.retransmitted_packets))
    }
}

impl Data {
    fn read_some(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.stream.read(bytes) };
        loop {
            match tls.reader().read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            if tls.read_tls(&mut self.stream)? == 0 {
                return Ok(0);
            }
            tls.process_new_packets()
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }
}

impl Data {
    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.stream.write(bytes) };
        // Bytes that were accepted before go first, so that at most one buffer of TLS is queued.
        while tls.wants_write() {
            tls.write_tls(&mut self.stream)?;
        }
        tls.writer().write(bytes)
    }
}

impl Read for Data {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.read_some(bytes)?;
        if let Some(gauge) = &self.gauge {
            gauge.received(read, || hikyaku_tcp::info(&self.stream).ok());
        }
        Ok(read)
    }
}

impl Write for Data {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.write_some(bytes);
        if let Some(gauge) = &self.gauge {
            gauge.sent(|| hikyaku_tcp::info(&self.stream).ok());
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return self.stream.flush() };
        while tls.wants_write() {
            tls.write_tls(&mut self.stream)?;
        }
        Ok(())
    }
}
