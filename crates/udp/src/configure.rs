//! Socket options, set once before binding.

use crate::address::SocketFamily;
use crate::bind::BindError;
use crate::granted::Support;
use crate::options::{Family, Offload, SocketOptions};
use crate::sys;
use hikyaku_units::DataSize;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// What the kernel granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Configured {
    pub(crate) recv_buffer: DataSize,
    pub(crate) send_buffer: DataSize,
    pub(crate) gso: Support,
    pub(crate) gro: Support,
    pub(crate) traffic_class: u8,
}

pub(crate) fn configure(
    fd: BorrowedFd<'_>,
    family: SocketFamily,
    address: SocketAddr,
    options: &SocketOptions,
) -> Result<Configured, BindError> {
    let refused = |step| move |source| BindError::Refused { address, step, source };
    if let Some(device) = &options.bind_device {
        bind_device(fd, device)
            .map_err(|source| BindError::Device { device: device.clone(), source })?;
    }
    let traffic_class = options.dscp.map_or(0, |dscp| dscp << 2);
    set_v4(fd, traffic_class).map_err(refused("IPv4 options"))?;
    if family == SocketFamily::V6 {
        let only_v6 = i32::from(options.family == Family::OnlyV6);
        set_v6(fd, traffic_class, only_v6).map_err(refused("IPv6 options"))?;
    }
    // The drop counter is for diagnosis only, so the socket works on a kernel without it.
    let _ = sys::set_int(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    // Without kernel timestamps the receiver uses the time at which it reads.
    let _ = sys::set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
    let recv_buffer = buffer(fd, RECV_BUFFER, options.recv_buffer).map_err(refused("SO_RCVBUF"))?;
    let send_buffer = buffer(fd, SEND_BUFFER, options.send_buffer).map_err(refused("SO_SNDBUF"))?;
    let gso = offload(options.segmentation, || {
        sys::get_int(fd, libc::SOL_UDP, libc::UDP_SEGMENT).map(drop)
    });
    let gro = offload(options.coalescing, || sys::set_int(fd, libc::SOL_UDP, libc::UDP_GRO, 1));
    Ok(Configured { recv_buffer, send_buffer, gso, gro, traffic_class })
}

/// Binds the socket to a network interface (`SO_BINDTODEVICE`, socket(7)).
pub(crate) fn bind_device(fd: BorrowedFd<'_>, device: &str) -> io::Result<()> {
    sys::set_bytes(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device.as_bytes())
}

/// Set on IPv6 sockets as well: the kernel applies these options to IPv4 packets on them.
fn set_v4(fd: BorrowedFd<'_>, traffic_class: u8) -> io::Result<()> {
    let set = |name, value| sys::set_int(fd, libc::SOL_IP, name, value);
    // Set the don't-fragment bit, and ignore the path MTU that ICMP reports (ip(7)). The transport
    // probes the path MTU itself, because anyone can forge ICMP.
    set(libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
    set(libc::IP_RECVTOS, 1)?;
    set(libc::IP_PKTINFO, 1)?;
    set(libc::IP_TOS, traffic_class.into())
}

fn set_v6(fd: BorrowedFd<'_>, traffic_class: u8, only_v6: i32) -> io::Result<()> {
    let set = |name, value| sys::set_int(fd, libc::SOL_IPV6, name, value);
    set(libc::IPV6_V6ONLY, only_v6)?;
    set(libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
    set(libc::IPV6_RECVTCLASS, 1)?;
    set(libc::IPV6_RECVPKTINFO, 1)?;
    set(libc::IPV6_TCLASS, traffic_class.into())
}

/// The two options for a buffer size: the first ignores the administrator's limit and needs
/// `CAP_NET_ADMIN`, the second is capped by it (socket(7)).
struct BufferOption {
    forced: i32,
    plain: i32,
}

const RECV_BUFFER: BufferOption =
    BufferOption { forced: libc::SO_RCVBUFFORCE, plain: libc::SO_RCVBUF };
const SEND_BUFFER: BufferOption =
    BufferOption { forced: libc::SO_SNDBUFFORCE, plain: libc::SO_SNDBUF };

fn buffer(fd: BorrowedFd<'_>, option: BufferOption, asked: DataSize) -> io::Result<DataSize> {
    // The kernel doubles the value for its own overhead and reports the doubled value (socket(7)).
    let value = i32::try_from(asked.bytes()).map_or(i32::MAX / 2, |value| value.min(i32::MAX / 2));
    if sys::set_int(fd, libc::SOL_SOCKET, option.forced, value).is_err() {
        sys::set_int(fd, libc::SOL_SOCKET, option.plain, value)?;
    }
    let doubled = sys::get_int(fd, libc::SOL_SOCKET, option.plain)?;
    Ok(DataSize::from_bytes(u64::try_from(doubled).unwrap_or(0) / 2))
}

fn offload(wanted: Offload, try_it: impl FnOnce() -> io::Result<()>) -> Support {
    match wanted {
        Offload::Off => Support::Absent,
        Offload::WhereSupported => match try_it() {
            Ok(()) => Support::Present,
            Err(_) => Support::Absent,
        },
    }
}
