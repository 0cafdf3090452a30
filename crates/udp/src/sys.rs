//! The system calls that have no safe wrapper. All `unsafe` code of the crate is here.

#[cfg(target_os = "linux")]
mod many;
#[cfg(any(test, not(target_os = "linux")))]
mod singly;

#[cfg(target_os = "linux")]
pub(crate) use many::{receive, send_each};
#[cfg(not(target_os = "linux"))]
pub(crate) use singly::{receive, send_each};

use crate::address::{RAW_LENGTH, RawAddress};
use crate::control::Control;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::{mem, ptr};

/// The most messages in one call. Their headers are on the stack.
pub(crate) const MAX_MESSAGES: usize = 64;

/// Sets an `int` socket option.
pub(crate) fn set_int(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_bytes(fd, level, name, &value.to_ne_bytes())
}

/// Sets a socket option from bytes.
pub(crate) fn set_bytes(fd: BorrowedFd<'_>, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call and is only
    // read.
    let result = unsafe {
        let length = value.len() as libc::socklen_t;
        libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Attaches a program that selects a socket of a shared port.
#[cfg(target_os = "linux")]
pub(crate) fn attach_selector(
    fd: BorrowedFd<'_>,
    program: &mut [libc::sock_filter],
) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the option takes a `sock_fprog`, whose pointer and length describe `program`; both outlive the call, which copies
    // the program and keeps no pointer.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            ptr::from_ref(&program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an `int` socket option.
pub(crate) fn get_int(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<i32> {
    let mut value = 0_i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `value` and the length to `length`; both
    // outlive the call, and any bytes are a valid i32.
    let result = unsafe {
        let pointer = ptr::from_mut(&mut value).cast();
        libc::getsockopt(fd.as_raw_fd(), level, name, pointer, &raw mut length)
    };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Sends `contents` as one message. A control message can ask the kernel to segment it.
pub(crate) fn send_one(
    fd: BorrowedFd<'_>,
    to: (&RawAddress, usize),
    control: &Control,
    contents: &[u8],
) -> io::Result<()> {
    let mut vector = vector_of(contents);
    let header = send_header(to, control, &mut vector);
    // SAFETY: every pointer in `header` is to memory borrowed by this function's arguments or to
    // `vector`, with its right length; sendmsg reads them and writes to none.
    let result = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const header, 0) };
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The buffers for one received message: its contents, sender and control messages.
pub(crate) struct Slot<'a> {
    pub(crate) contents: &'a mut [u8],
    pub(crate) from: &'a mut RawAddress,
    pub(crate) control: &'a mut Control,
}

/// How many bytes the kernel wrote into a [`Slot`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Filled {
    pub(crate) contents: usize,
    pub(crate) control: usize,
    pub(crate) cut: Cut,
}

/// Whether the message was truncated (`MSG_TRUNC`).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Cut {
    #[default]
    Whole,
    Truncated,
}

const EMPTY_VECTOR: libc::iovec = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };

fn vector_of(contents: &[u8]) -> libc::iovec {
    // The kernel only reads through these vectors when it sends.
    libc::iovec { iov_base: contents.as_ptr().cast_mut().cast(), iov_len: contents.len() }
}

fn send_header(
    (address, length): (&RawAddress, usize),
    control: &Control,
    vector: &mut libc::iovec,
) -> libc::msghdr {
    let mut header = empty_header();
    let written = control.written();
    if length > 0 {
        header.msg_name = address.as_ptr().cast_mut().cast();
        header.msg_namelen = length as libc::socklen_t;
    }
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    if !written.is_empty() {
        header.msg_control = written.as_ptr().cast_mut().cast();
        header.msg_controllen = written.len() as _;
    }
    header
}

/// Says in `header` where the kernel writes one message.
fn fill_header(header: &mut libc::msghdr, slot: Slot<'_>, vector: &mut libc::iovec) {
    let room = slot.control.room();
    vector.iov_base = slot.contents.as_mut_ptr().cast();
    vector.iov_len = slot.contents.len();
    header.msg_name = ptr::from_mut(slot.from).cast();
    header.msg_namelen = RAW_LENGTH as libc::socklen_t;
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    header.msg_control = room.as_mut_ptr().cast();
    header.msg_controllen = room.len() as _;
}

/// What the kernel has written: `length` bytes of contents, and what `header` says.
fn filled(header: &libc::msghdr, length: usize) -> Filled {
    let is_cut = header.msg_flags & libc::MSG_TRUNC != 0;
    let cut = if is_cut { Cut::Truncated } else { Cut::Whole };
    // The type is size_t in one C library and socklen_t in another.
    #[allow(clippy::unnecessary_cast)]
    let control = header.msg_controllen as usize;
    Filled { contents: length, control, cut }
}

fn empty_header() -> libc::msghdr {
    // SAFETY: msghdr is integers and raw pointers, for all of which zero bytes are a value. Some C
    // libraries have private padding in it, so that it cannot be written as a literal.
    unsafe { mem::zeroed() }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
