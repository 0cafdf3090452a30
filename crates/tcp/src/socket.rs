//! Connections and listeners with options that have to be set before the handshake.

use crate::addresses::Family;
use crate::congestion::{ControlError, set_control};
use hikyaku_units::DataSize;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 256;

/// The options of a socket before its handshake. The default leaves everything to the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The address that a connection leaves from. Default: the kernel's choice by route.
    pub local: Option<IpAddr>,
    /// Size of each of the two buffers (`SO_SNDBUF`, `SO_RCVBUF`), without the kernel's doubling. The kernel grants at
    /// most `net.core.wmem_max` and `rmem_max`, and no longer adapts a buffer that was set. Default: the kernel adapts
    /// both (`tcp_wmem`, `tcp_rmem`), which is right unless a fixed size is wanted.
    pub buffer: Option<DataSize>,
    /// The congestion control. Default: the system's.
    pub congestion: Option<String>,
    /// The family of the addresses that are dialled ([`addresses`](crate::addresses())). Default: both.
    pub family: Option<Family>,
}

/// A connection was not established.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kernel's error, or `TimedOut`.
    #[error("{0}")]
    Io(io::Error),
    /// The congestion control of the options cannot be set.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl ConnectError {
    /// Whether the kernel of the host refuses the port.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Io(error) => error,
            ConnectError::Control(error) => Self::other(error),
        }
    }
}

/// The sizes of a socket's buffers, without the kernel's doubling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    /// The send buffer.
    pub send: DataSize,
    /// The receive buffer.
    pub receive: DataSize,
}

/// Connects to `address`, and waits `within` at most. The stream is blocking.
///
/// # Errors
/// The connection is refused, or not established in time (`TimedOut`), or an option cannot be set.
pub fn connect(
    address: SocketAddr,
    options: &Options,
    within: Duration,
) -> Result<TcpStream, ConnectError> {
    let socket = begin(address, options)?;
    wait_writable(&socket, within)?;
    finish(socket)
}

/// Begins a handshake. The socket is writable at its end.
pub(crate) fn begin(address: SocketAddr, options: &Options) -> Result<OwnedFd, ConnectError> {
    let socket = prepared(address.ip(), options, SocketFlags::NONBLOCK)?;
    if let Some(local) = options.local {
        bind(&socket, &SocketAddr::new(local, 0)).map_err(io::Error::from)?;
    }
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// The connection of a handshake that has ended.
pub(crate) fn finish(socket: OwnedFd) -> Result<TcpStream, ConnectError> {
    sockopt::socket_error(&socket).and_then(|result| result).map_err(io::Error::from)?;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Listens on `address`; port 0 takes any free port. Accepted connections inherit the options.
///
/// # Errors
/// The address is taken or not of this host, or an option cannot be set.
pub fn listen(address: SocketAddr, options: &Options) -> Result<TcpListener, ConnectError> {
    let socket = prepared(address.ip(), options, SocketFlags::empty())?;
    // A port whose earlier connections are in TIME_WAIT can be bound again, as std's listeners do it.
    sockopt::set_socket_reuseaddr(&socket, true).map_err(io::Error::from)?;
    bind(&socket, &address).map_err(io::Error::from)?;
    rustix::net::listen(&socket, BACKLOG).map_err(io::Error::from)?;
    Ok(TcpListener::from(socket))
}

/// The sizes that the kernel granted, or has adapted to.
///
/// # Errors
/// The kernel's, of getsockopt(2).
pub fn buffers(socket: impl AsFd) -> io::Result<Buffers> {
    // socket(7): the kernel doubles what is set, for its own records, and returns the doubled value.
    let half = |bytes: usize| DataSize::from_bytes(bytes as u64 / 2);
    let send = half(sockopt::socket_send_buffer_size(&socket)?);
    let receive = half(sockopt::socket_recv_buffer_size(&socket)?);
    Ok(Buffers { send, receive })
}

/// Resets a connection: bytes that are still in its send buffer are not sent, and the other end sees an error.
pub fn reset(stream: TcpStream) {
    // If this fails, the connection ends after its buffer has been sent.
    let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
    drop(stream);
}

fn prepared(ip: IpAddr, options: &Options, flags: SocketFlags) -> Result<OwnedFd, ConnectError> {
    let family = if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, flags)?;
    if let Some(size) = options.buffer {
        let bytes = usize::try_from(size.bytes()).unwrap_or(usize::MAX).min(i32::MAX as usize);
        sockopt::set_socket_send_buffer_size(&socket, bytes).map_err(io::Error::from)?;
        sockopt::set_socket_recv_buffer_size(&socket, bytes).map_err(io::Error::from)?;
    }
    if let Some(name) = &options.congestion {
        set_control(&socket, name)?;
    }
    Ok(socket)
}

pub(crate) fn socket(family: AddressFamily, flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(socket_with(family, SocketType::STREAM, flags | SocketFlags::CLOEXEC, None)?)
}

/// Waits until the handshake has succeeded or failed.
fn wait_writable(socket: &OwnedFd, within: Duration) -> io::Result<()> {
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&left)) {
            Ok(0) => return Err(ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            // A signal handler ran.
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
