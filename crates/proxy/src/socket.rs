//! Sockets of carried flows: of TCP, and Unix sockets.
//!
//! A Unix socket knows no reset. A flow that breaks looks like one that ends to a program at a Unix socket, unless the
//! gateway has bytes of it that it has not read.

use bytes::BytesMut;
use rustix::net::{Shutdown, sockopt};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep};

/// A socket of a program or a server.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A silent program or server is asked after this long whether it is still there,
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// and again after this long,
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(60);
/// and is given up after so many questions.
const KEEPALIVE_PROBES: u32 = 5;
/// Bytes that wait in the kernel before a reset are given up if the reader takes none for this long.
const DELIVERY_STALL: Duration = Duration::from_secs(10);
/// Interval at which the kernel is asked whether they are delivered.
const DELIVERY_POLL: Duration = Duration::from_millis(2);

/// Prepares a socket: it is reset when it is closed, whoever closes it, unless `end_clean` was called. So a gateway
/// that is killed leaves no end that looks clean.
pub(crate) fn prepare(socket: impl AsFd) -> io::Result<()> {
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    // An urgent byte keeps its place among the others; otherwise reads would leave it out.
    sockopt::set_socket_oobinline(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&socket, KEEPALIVE_PROBES)?;
    sockopt::set_socket_keepalive(&socket, true)?;
    Ok(())
}

impl From<TcpStream> for Socket {
    fn from(socket: TcpStream) -> Self {
        Self::Tcp(socket)
    }
}

impl From<UnixStream> for Socket {
    fn from(socket: UnixStream) -> Self {
        Self::Unix(socket)
    }
}

impl Socket {
    /// Its own address, if it has one of TCP.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(tcp) => tcp.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => tcp.readable().await,
            Self::Unix(unix) => unix.readable().await,
        }
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => tcp.writable().await,
            Self::Unix(unix) => unix.writable().await,
        }
    }

    /// Waits until it has an error, such as a reset.
    pub(crate) async fn broken(&self) {
        // An error of the wait is one of the socket as well.
        let _ = match self {
            Self::Tcp(tcp) => tcp.ready(Interest::ERROR).await,
            Self::Unix(unix) => unix.ready(Interest::ERROR).await,
        };
    }

    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.try_read(buffer),
            Self::Unix(unix) => unix.try_read(buffer),
        }
    }

    pub(crate) fn try_read_buf(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.try_read_buf(buffer),
            Self::Unix(unix) => unix.try_read_buf(buffer),
        }
    }

    pub(crate) fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.try_write_vectored(pieces),
            Self::Unix(unix) => unix.try_write_vectored(pieces),
        }
    }

    /// Writes all of `bytes`.
    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write_vectored(&[IoSlice::new(bytes)]) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the direction to the program. That fails only for a socket that is broken, which another event tells.
    pub(crate) fn shut(&self) {
        let _ = match self {
            Self::Tcp(tcp) => rustix::net::shutdown(tcp, Shutdown::Write),
            Self::Unix(unix) => rustix::net::shutdown(unix, Shutdown::Write),
        };
    }

    /// Closes a socket whose both directions have ended: the kernel delivers what it still has.
    pub(crate) fn end_clean(self) {
        if let Self::Tcp(tcp) = self {
            // If this fails, the socket is reset: an error at the program, and no loss that goes unnoticed.
            let _ = sockopt::set_socket_linger(&tcp, None);
        }
    }

    /// Resets a socket when the other end's kernel has everything that was written to it. Its program then reads these
    /// bytes, and gets ECONNRESET after them.
    pub(crate) async fn reset_after_delivery(self) {
        let (mut last, mut since) = (u64::MAX, Instant::now());
        let Self::Tcp(tcp) = &self else { return };
        while let Ok(left) = hikyaku_tcp::unacknowledged(tcp) {
            if left == 0 || (left == last && since.elapsed() > DELIVERY_STALL) {
                break;
            }
            if left != last {
                (last, since) = (left, Instant::now());
            }
            tokio::select! {
                () = sleep(DELIVERY_POLL) => {}
                // The other end has reset it: nothing is delivered any more.
                () = self.broken() => break,
            }
        }
    }
}
