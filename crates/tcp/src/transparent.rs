//! Sockets for connections to addresses that are not of this host (`IP_TRANSPARENT`, ip(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// Lets a listener of IPv4 have connections that a rule of the kernel (TPROXY) gives to it, whatever address they are for.
/// Such a connection has that address as its own.
///
/// # Errors
///
/// The kernel's, of setsockopt(2): the process needs `CAP_NET_ADMIN`.
pub fn set_transparent(listener: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: IP_TRANSPARENT reads one `int` at the address that it is given. It outlives the call.
    let result = unsafe {
        let (level, option) = (libc::SOL_IP, libc::IP_TRANSPARENT);
        let value = ptr::from_ref(&on).cast();
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(listener.as_fd().as_raw_fd(), level, option, value, length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
