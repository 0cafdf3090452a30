//! One message in a call, for systems without sendmmsg(2) and recvmmsg(2).

use super::{
    EMPTY_VECTOR, Filled, MAX_MESSAGES, Slot, empty_header, fill_header, filled, send_one,
};
use crate::address::RawAddress;
use crate::control::Control;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sends each `size` bytes of `contents` as a datagram, at most [`MAX_MESSAGES`] of them. Returns
/// how many the kernel accepted, at least one.
pub(crate) fn send_each(
    fd: BorrowedFd<'_>,
    to: (&RawAddress, usize),
    control: &Control,
    contents: &[u8],
    size: usize,
) -> io::Result<usize> {
    let mut count = 0;
    for piece in contents.chunks(size.max(1)).take(MAX_MESSAGES) {
        match send_one(fd, to, control, piece) {
            Ok(()) => count += 1,
            // The next call finds the error again.
            Err(_) if count > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Receives the waiting messages into `slots` without blocking. Returns their count, and sets as
/// many entries of `places_filled`.
pub(crate) fn receive<'a>(
    fd: BorrowedFd<'_>,
    slots: impl Iterator<Item = Slot<'a>>,
    places_filled: &mut [Filled],
) -> io::Result<usize> {
    let mut count = 0;
    for (place, slot) in places_filled.iter_mut().zip(slots) {
        let mut vector = EMPTY_VECTOR;
        let mut header = empty_header();
        fill_header(&mut header, slot, &mut vector);
        // SAFETY: the header points to the memory of a slot, exclusively borrowed for longer than
        // this call ('a is a parameter), and to `vector`, with their right lengths; any bytes are
        // valid there.
        let result = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
        match usize::try_from(result) {
            Ok(length) => *place = filled(&header, length),
            // Nothing waits any more, or the next call finds the error.
            Err(_) if count > 0 => break,
            Err(_) => return Err(io::Error::last_os_error()),
        }
        count += 1;
    }
    Ok(count)
}
