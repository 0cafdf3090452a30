//! Many messages in one call: sendmmsg(2) and recvmmsg(2).

use super::{
    EMPTY_VECTOR, Filled, MAX_MESSAGES, Slot, fill_header, filled, send_header, vector_of,
};
use crate::address::RawAddress;
use crate::control::Control;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::{io, mem, ptr};

/// Sends each `size` bytes of `contents` as a datagram, at most [`MAX_MESSAGES`] of them. Returns
/// how many the kernel accepted, at least one.
pub(crate) fn send_each(
    fd: BorrowedFd<'_>,
    to: (&RawAddress, usize),
    control: &Control,
    contents: &[u8],
    size: usize,
) -> io::Result<usize> {
    let mut vectors = [const { EMPTY_VECTOR }; MAX_MESSAGES];
    let mut headers = zeroed_headers();
    let mut count = 0;
    let slots = headers.iter_mut().zip(&mut vectors);
    for ((header, vector), piece) in slots.zip(contents.chunks(size.max(1))) {
        *vector = vector_of(piece);
        header.msg_hdr = send_header(to, control, vector);
        count += 1;
    }
    // SAFETY: the first `count` headers point to memory borrowed by this function's arguments or
    // to `vectors`, with their right lengths; sendmmsg reads those and writes only to `msg_len`
    // of the headers.
    let result =
        unsafe { libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), count as libc::c_uint, 0) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Receives the waiting messages into `slots` without blocking. Returns their count, and sets as
/// many entries of `places_filled`.
pub(crate) fn receive<'a>(
    fd: BorrowedFd<'_>,
    slots: impl Iterator<Item = Slot<'a>>,
    places_filled: &mut [Filled],
) -> io::Result<usize> {
    let mut vectors = [const { EMPTY_VECTOR }; MAX_MESSAGES];
    let mut headers = zeroed_headers();
    let mut count = 0;
    let places = headers.iter_mut().zip(&mut vectors).take(places_filled.len());
    for ((header, vector), slot) in places.zip(slots) {
        fill_header(&mut header.msg_hdr, slot, vector);
        count += 1;
    }
    // SAFETY: the first `count` headers point to the memory of distinct slots, exclusively
    // borrowed for longer than this call ('a is a parameter), and to `vectors`, with their right
    // lengths; any bytes are valid there. The timeout is null, which is allowed.
    let result = unsafe {
        let flags = libc::MSG_DONTWAIT as _;
        let headers = headers.as_mut_ptr();
        libc::recvmmsg(fd.as_raw_fd(), headers, count as libc::c_uint, flags, ptr::null_mut())
    };
    let received = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    for (place, header) in places_filled.iter_mut().zip(&headers[..received]) {
        *place = filled(&header.msg_hdr, header.msg_len as usize);
    }
    Ok(received)
}

fn zeroed_headers() -> [libc::mmsghdr; MAX_MESSAGES] {
    // SAFETY: mmsghdr is integers and raw pointers, for all of which zero bytes are a value. Some
    // C libraries have private padding in it, so that it cannot be written as a literal.
    unsafe { mem::zeroed() }
}
