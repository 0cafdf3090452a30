//! Socket options of systems that descend from 4.4BSD, such as macOS: ip(4), ip6(4), getsockopt(2).

use crate::sys;
use hikyaku_units::DataSize;
use std::io;
use std::os::fd::BorrowedFd;

/// Smaller buffers than these are not asked for.
const BUFFER_BYTES_MIN: i32 = 64 << 10;

/// No system call binds to an interface by its name.
pub(crate) fn bind_device(_fd: BorrowedFd<'_>, _device: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Which socket of a shared port gets a datagram is not documented.
pub(crate) fn share_port(_fd: BorrowedFd<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn steer(_fd: BorrowedFd<'_>, _at: usize, _sockets: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn set_v4(fd: BorrowedFd<'_>, traffic_class: u8) -> io::Result<()> {
    let set = |name, value| sys::set_int(fd, libc::IPPROTO_IP, name, value);
    // These options fail on IPv6 sockets of some versions, which then send fragments of IPv4
    // packets, and see neither the addresses nor the marks of those they receive.
    let _ = set(libc::IP_DONTFRAG, 1);
    let _ = set(libc::IP_RECVTOS, 1);
    let _ = set(libc::IP_PKTINFO, 1);
    let _ = set(libc::IP_TOS, traffic_class.into());
    Ok(())
}

pub(super) fn set_v6(fd: BorrowedFd<'_>, traffic_class: u8, only_v6: i32) -> io::Result<()> {
    let set = |name, value| sys::set_int(fd, libc::IPPROTO_IPV6, name, value);
    set(libc::IPV6_V6ONLY, only_v6)?;
    set(libc::IPV6_DONTFRAG, 1)?;
    set(libc::IPV6_RECVTCLASS, 1)?;
    set(libc::IPV6_RECVPKTINFO, 1)?;
    set(libc::IPV6_TCLASS, traffic_class.into())
}

/// Asks for the time at which packets arrive.
pub(super) fn report_arrivals(fd: BorrowedFd<'_>) {
    // Without kernel timestamps the receiver uses the time at which it reads.
    let _ = sys::set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMP, 1);
}

/// There is no segmentation.
pub(super) fn has_segmentation(_fd: BorrowedFd<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There is no coalescing.
pub(super) fn coalesce(_fd: BorrowedFd<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Asks for a receive buffer; returns what was granted.
pub(super) fn recv_buffer(fd: BorrowedFd<'_>, asked: DataSize) -> io::Result<DataSize> {
    buffer(fd, libc::SO_RCVBUF, asked)
}

/// Asks for a send buffer; returns what was granted.
pub(super) fn send_buffer(fd: BorrowedFd<'_>, asked: DataSize) -> io::Result<DataSize> {
    buffer(fd, libc::SO_SNDBUF, asked)
}

/// A size beyond the limit of the system is refused, not cut: half of it is asked for then.
fn buffer(fd: BorrowedFd<'_>, name: i32, asked: DataSize) -> io::Result<DataSize> {
    let mut value = i32::try_from(asked.bytes()).unwrap_or(i32::MAX);
    while let Err(error) = sys::set_int(fd, libc::SOL_SOCKET, name, value) {
        if value <= BUFFER_BYTES_MIN {
            return Err(error);
        }
        value /= 2;
    }
    let granted = sys::get_int(fd, libc::SOL_SOCKET, name)?;
    Ok(DataSize::from_bytes(u64::try_from(granted).unwrap_or(0)))
}
