//! Socket options of Linux: socket(7), ip(7), ipv6(7), udp(7).

use crate::sys;
use hikyaku_units::DataSize;
use std::io;
use std::os::fd::BorrowedFd;

/// Binds the socket to a network interface (`SO_BINDTODEVICE`, socket(7)).
pub(crate) fn bind_device(fd: BorrowedFd<'_>, device: &str) -> io::Result<()> {
    sys::set_bytes(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device.as_bytes())
}

/// Set on IPv6 sockets as well: the kernel applies these options to IPv4 packets on them.
pub(super) fn set_v4(fd: BorrowedFd<'_>, traffic_class: u8) -> io::Result<()> {
    let set = |name, value| sys::set_int(fd, libc::SOL_IP, name, value);
    // Set the don't-fragment bit, and ignore the path MTU that ICMP reports (ip(7)). The transport
    // probes the path MTU itself, because anyone can forge ICMP.
    set(libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
    set(libc::IP_RECVTOS, 1)?;
    set(libc::IP_PKTINFO, 1)?;
    set(libc::IP_TOS, traffic_class.into())
}

pub(super) fn set_v6(fd: BorrowedFd<'_>, traffic_class: u8, only_v6: i32) -> io::Result<()> {
    let set = |name, value| sys::set_int(fd, libc::SOL_IPV6, name, value);
    set(libc::IPV6_V6ONLY, only_v6)?;
    set(libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
    set(libc::IPV6_RECVTCLASS, 1)?;
    set(libc::IPV6_RECVPKTINFO, 1)?;
    set(libc::IPV6_TCLASS, traffic_class.into())
}

/// Asks for the drop counter and for the time at which packets arrive.
pub(super) fn report_arrivals(fd: BorrowedFd<'_>) {
    // The drop counter is for diagnosis only, so the socket works on a kernel without it.
    let _ = sys::set_int(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    // Without kernel timestamps the receiver uses the time at which it reads.
    let _ = sys::set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
}

/// Lets other sockets of this user be bound to the same port, before or after this one is bound (`SO_REUSEPORT`, socket(7)).
pub(crate) fn share_port(fd: BorrowedFd<'_>) -> io::Result<()> {
    sys::set_int(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)
}

/// Selects the socket of a shared port for each datagram: its byte `at` modulo the number of sockets, or 0 if the datagram is
/// shorter (`SO_ATTACH_REUSEPORT_CBPF`, socket(7)). No privilege is needed.
pub(crate) fn steer(fd: BorrowedFd<'_>, at: usize, sockets: usize) -> io::Result<()> {
    let step = |code: u32, k: usize| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k: u32::try_from(k).unwrap_or(u32::MAX),
    };
    sys::attach_selector(
        fd,
        &mut [
            step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, at),
            step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, sockets),
            step(libc::BPF_RET | libc::BPF_A, 0),
        ],
    )
}

/// Fails if the kernel does not segment what is sent.
pub(super) fn has_segmentation(fd: BorrowedFd<'_>) -> io::Result<()> {
    sys::get_int(fd, libc::SOL_UDP, libc::UDP_SEGMENT).map(drop)
}

/// Has the kernel coalesce what is received.
pub(super) fn coalesce(fd: BorrowedFd<'_>) -> io::Result<()> {
    sys::set_int(fd, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Asks for a receive buffer; returns what was granted.
pub(super) fn recv_buffer(fd: BorrowedFd<'_>, asked: DataSize) -> io::Result<DataSize> {
    buffer(fd, RECV_BUFFER, asked)
}

/// Asks for a send buffer; returns what was granted.
pub(super) fn send_buffer(fd: BorrowedFd<'_>, asked: DataSize) -> io::Result<DataSize> {
    buffer(fd, SEND_BUFFER, asked)
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
