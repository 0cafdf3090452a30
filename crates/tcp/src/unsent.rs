//! How much of what is written to a socket may wait in the kernel to be sent for the first time.

use hikyaku_units::DataSize;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// Lets a writer wait while `limit` or more waits in the kernel to be sent for the first time (`TCP_NOTSENT_LOWAT`, tcp(7)).
/// Without it a slow connection takes megabytes of which another one could have sent its part. Linux adapts the send
/// buffer as before.
///
/// # Errors
///
/// The kernel's, of setsockopt(2).
pub fn limit_unsent(socket: impl AsFd, limit: DataSize) -> io::Result<()> {
    let bytes = libc::c_int::try_from(limit.bytes()).unwrap_or(libc::c_int::MAX);
    // SAFETY: TCP_NOTSENT_LOWAT reads one `int` at the address that it is given. It outlives the call.
    let result = unsafe {
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);
        let value = ptr::from_ref(&bytes).cast();
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, value, length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernel_has_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        limit_unsent(&stream, DataSize::from_bytes(100_000)).unwrap();
        let mut bytes: libc::c_int = 0;
        let mut length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the kernel writes one `int` to `bytes`, and its length to `length`. Both outlive the call.
        let result = unsafe {
            let value = ptr::from_mut(&mut bytes).cast();
            let (level, option) = (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);
            libc::getsockopt(stream.as_raw_fd(), level, option, value, &raw mut length)
        };
        assert_eq!((result, bytes), (0, 100_000));
    }
}
