//! The bytes in a socket that are not sent or not acknowledged.

use rustix::ioctl::{Getter, Opcode, ioctl};
use std::ffi::c_int;
use std::io;
use std::os::fd::AsFd;

/// `SIOCOUTQ` (tcp(7)), which is `TIOCOUTQ` of asm-generic/ioctls.h.
const SIOCOUTQ: Opcode = 0x5411;

/// Bytes that were written to a socket and that the other end's kernel has not acknowledged, sent or not.
///
/// # Errors
///
/// The descriptor is no TCP socket, or the socket listens.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<u64> {
    let bytes = outgoing_queue(socket)?;
    // The kernel computes it as a difference of sequence numbers, which is not negative.
    Ok(u64::try_from(bytes).unwrap_or(0))
}

fn outgoing_queue(socket: impl AsFd) -> io::Result<c_int> {
    // SAFETY: SIOCOUTQ writes one `int` to the address that it is given (`tcp_ioctl` of net/ipv4/tcp.c), and `Getter`
    // gives it the address of a `c_int` of its own.
    let bytes = unsafe { ioctl(socket, Getter::<SIOCOUTQ, c_int>::new()) };
    Ok(bytes?)
}

#[cfg(test)]
mod tests;
