//! TCP sockets of carried flows.

use rustix::net::sockopt;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

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

/// Prepares a socket: it is reset when it is closed, whoever closes it, unless [`end_clean`] was called. So a gateway
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

/// Closes a socket whose both directions have ended: the kernel delivers what it still has.
pub(crate) fn end_clean(socket: TcpStream) {
    // If this fails, the socket is reset: an error at the program, and no loss that goes unnoticed.
    let _ = sockopt::set_socket_linger(&socket, None);
}

/// Resets a socket when the other end's kernel has everything that was written to it. Its program then reads these
/// bytes, and gets ECONNRESET after them.
pub(crate) async fn reset_after_delivery(socket: TcpStream) {
    let (mut last, mut since) = (u64::MAX, Instant::now());
    while let Ok(left) = hikyaku_tcp::unacknowledged(&socket) {
        if left == 0 || (left == last && since.elapsed() > DELIVERY_STALL) {
            break;
        }
        if left != last {
            (last, since) = (left, Instant::now());
        }
        tokio::select! {
            () = sleep(DELIVERY_POLL) => {}
            // The other end has reset it: nothing is delivered any more.
            _ = socket.ready(Interest::ERROR) => break,
        }
    }
    drop(socket);
}

/// Writes all of `bytes`.
pub(crate) async fn write_all(socket: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
