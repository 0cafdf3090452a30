//! TLS 1.3 over a byte stream such as a TCP connection, for paths that let no UDP through.
//!
//! Both ends show the same keys as over UDP, and the same rules decide whether they are trusted. The two directions of a
//! stream may be used by two threads. No socket is opened here: the caller hands one over, and bounds how long the
//! handshake may take by the time-outs of its reads and writes.

use crate::client::{ClientCredentials, StartClient};
use crate::fingerprint::Fingerprint;
use crate::peer::PeerName;
use crate::server::{ServerCredentials, StartServer};
use crate::session::refusal;
use crate::trust::{Seen, TrustHandle, Untrusted};
use rustls::Connection;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(test)]
mod tests;

/// The two directions of a TLS stream, and whom it is with.
pub struct TlsStream {
    shared: Arc<Mutex<Connection>>,
}

/// Why there is no TLS stream.
#[derive(Debug, thiserror::Error)]
pub enum Handshake {
    /// The handshake of a client cannot begin.
    #[error(transparent)]
    StartClient(#[from] StartClient),
    /// The handshake of a server cannot begin.
    #[error(transparent)]
    StartServer(#[from] StartServer),
    /// The peer's key is not the expected one.
    #[error(transparent)]
    Untrusted(Untrusted),
    /// The peer does not speak TLS, or not the protocol that is carried in it.
    #[error("the other side does not speak hikyaku over TCP: {0}")]
    Tls(rustls::Error),
    /// The stream below failed, ended or took too long.
    #[error("the connection failed during the handshake")]
    Io(#[from] io::Error),
}

/// Bytes that are encrypted or read at a time: eight records of TLS.
const CHUNK_BYTES: usize = 128 << 10;

impl ClientCredentials {
    /// Shakes hands with the server `peer` over `stream`. The handle says whether the server was known; the caller
    /// settles it before it sends data.
    ///
    /// # Errors
    ///
    /// The server is not trusted or is none, or the stream fails.
    pub fn connect(
        &self,
        peer: &PeerName,
        stream: &mut (impl Read + Write),
    ) -> Result<(TlsStream, TrustHandle), Handshake> {
        let (client, trust) = self.client(peer)?;
        let tls = match shake(client.into(), stream) {
            Ok(tls) => tls,
            Err(Handshake::Untrusted(refused)) => {
                let _ = trust.seen().set(Seen::Refused(refused.clone()));
                return Err(Handshake::Untrusted(refused));
            }
            Err(error) => return Err(error),
        };
        if let Some(key) = tls.peer_fingerprint() {
            let _ = trust.seen().set(Seen::Proven(key));
        }
        Ok((tls, trust))
    }
}

impl ServerCredentials {
    /// Shakes hands with a client over `stream`.
    ///
    /// # Errors
    ///
    /// The peer is no client of this protocol or has not shown a key that it holds, or the stream fails.
    pub fn accept(&self, stream: &mut (impl Read + Write)) -> Result<TlsStream, Handshake> {
        shake(self.server()?.into(), stream)
    }
}

fn shake(mut tls: Connection, stream: &mut (impl Read + Write)) -> Result<TlsStream, Handshake> {
    while tls.is_handshaking() || tls.wants_write() {
        if let Err(error) = tls.complete_io(stream) {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            return Err(match inner.map(|inner| (refusal(inner).cloned(), inner.clone())) {
                Some((Some(refused), _)) => Handshake::Untrusted(refused),
                Some((None, inner)) => Handshake::Tls(inner),
                None => Handshake::Io(error),
            });
        }
    }
    tls.set_buffer_limit(Some(2 * CHUNK_BYTES));
    Ok(TlsStream { shared: Arc::new(Mutex::new(tls)) })
}

impl TlsStream {
    /// The fingerprint of the peer's key, which the handshake has proven; `None` of a client that was not asked for one.
    pub fn peer_fingerprint(&self) -> Option<Fingerprint> {
        let tls = lock(&self.shared);
        let key = tls.peer_certificates()?.first()?;
        Some(Fingerprint::of(key))
    }

    /// The two directions, over those of the stream below.
    pub fn split<R: Read, W: Write>(self, input: R, output: W) -> (TlsReader<R>, TlsWriter<W>) {
        let reader = TlsReader {
            shared: self.shared.clone(),
            input,
            sealed: vec![0; CHUNK_BYTES],
            unread: 0..0,
        };
        (reader, TlsWriter { shared: self.shared, output, sealed: Vec::new() })
    }
}

fn lock(shared: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The direction from the peer. A stream that ends without the peer's word for it is an error, so that no one on the
/// path can shorten it.
pub struct TlsReader<R> {
    shared: Arc<Mutex<Connection>>,
    input: R,
    sealed: Vec<u8>,
    /// What of `sealed` was not decrypted yet.
    unread: std::ops::Range<usize>,
}

impl<R> TlsReader<R> {
    /// The stream below, for its settings. What is read of it here is lost.
    pub const fn input_mut(&mut self) -> &mut R {
        &mut self.input
    }
}

impl<R: Read> Read for TlsReader<R> {
    // fuzz: none, rustls reads the peer's bytes
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            {
                let mut tls = lock(&self.shared);
                match tls.reader().read(out) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                }
                if !self.unread.is_empty() {
                    let mut rest = &self.sealed[self.unread.clone()];
                    self.unread.start += tls.read_tls(&mut rest)?;
                    tls.process_new_packets().map_err(io::Error::other)?;
                    continue;
                }
            }
            // Without the lock: the other direction goes on while nothing comes.
            match self.input.read(&mut self.sealed) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.unread = 0..length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The direction to the peer. Dropping it tells the peer that nothing more comes, if the stream takes it at once.
pub struct TlsWriter<W: Write> {
    shared: Arc<Mutex<Connection>>,
    output: W,
    sealed: Vec<u8>,
}

impl<W: Write> TlsWriter<W> {
    /// Encrypts what `fill` writes, and sends it.
    fn send(
        &mut self,
        fill: impl FnOnce(&mut Connection) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.sealed.clear();
        let written = {
            let mut tls = lock(&self.shared);
            let written = fill(&mut tls)?;
            while tls.wants_write() {
                tls.write_tls(&mut self.sealed)?;
            }
            written
        };
        self.output.write_all(&self.sealed)?;
        Ok(written)
    }
}

impl<W: Write> Write for TlsWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = &bytes[..bytes.len().min(CHUNK_BYTES)];
        self.send(|tls| tls.writer().write(chunk))
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        // Small slices share records: a header of a frame and its payload.
        self.send(|tls| {
            let (mut written, mut writer) = (0, tls.writer());
            for slice in slices {
                let room = slice.len().min(CHUNK_BYTES - written);
                written += writer.write(&slice[..room])?;
                if written >= CHUNK_BYTES {
                    break;
                }
            }
            Ok(written)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send(|_| Ok(0))?;
        self.output.flush()
    }
}

impl<W: Write> Drop for TlsWriter<W> {
    fn drop(&mut self) {
        let _ = self.send(|tls| {
            tls.send_close_notify();
            Ok(0)
        });
        let _ = self.output.flush();
    }
}
