//! What the kernel knows about the route to a destination.

use crate::transmit::MAX_BATCH_BYTES;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The MTU of the route to `destination` in bytes, including the IP header, by way of `device` if
/// one is given.
///
/// It is only the starting point of the path MTU search, because later hops may have a smaller MTU.
/// No packet is sent.
///
/// # Errors
///
/// There is no route, the device may not be used, or the system does not tell: only Linux does.
#[cfg(target_os = "linux")]
pub fn route_mtu(destination: SocketAddr, device: Option<&str>) -> io::Result<usize> {
    use crate::configure::bind_device;
    use crate::sys;
    use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
    use std::os::fd::AsFd;

    let (domain, level, name) = match destination {
        SocketAddr::V4(_) => (AddressFamily::INET, libc::SOL_IP, libc::IP_MTU),
        SocketAddr::V6(_) => (AddressFamily::INET6, libc::SOL_IPV6, libc::IPV6_MTU),
    };
    let fd = net::socket_with(domain, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    if let Some(device) = device {
        bind_device(fd.as_fd(), device)?;
    }
    // Connecting a UDP socket makes the kernel look up the route without sending anything.
    net::connect(&fd, &destination)?;
    let mtu = sys::get_int(fd.as_fd(), level, name)?;
    usize::try_from(mtu).map_err(io::Error::other)
}

/// The MTU of the route to a destination, which this system does not tell.
///
/// # Errors
///
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn route_mtu(_destination: SocketAddr, _device: Option<&str>) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The largest UDP payload in bytes of a packet of `mtu` bytes to `destination`.
pub fn largest_payload(mtu: usize, destination: IpAddr) -> usize {
    let headers = match destination.to_canonical() {
        IpAddr::V4(_) => 20 + 8,
        IpAddr::V6(_) => 40 + 8,
    };
    mtu.saturating_sub(headers).min(MAX_BATCH_BYTES)
}
