//! The options of a socket, chosen before it is bound.

use hikyaku_units::DataSize;

/// Options of a socket. The default asks for buffers of 16 MiB, both address families and all
/// offloads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketOptions {
    /// Receive buffer in bytes. 16 MiB hold 13 ms of a 10 Gbit/s stream, which covers a receiver
    /// thread that the kernel schedules late. The usual limit of Linux (`net.core.rmem_max`, 208
    /// KiB) holds 0.17 ms.
    pub recv_buffer: DataSize,
    /// Send buffer in bytes. One segmented send has 64 KB, so 208 KiB would hold three.
    pub send_buffer: DataSize,
    /// Differentiated services code point of every packet, 0 to 63 (RFC 2474); `None` is best
    /// effort.
    pub dscp: Option<u8>,
    /// The network interface to send and receive on, regardless of the routing table.
    pub bind_device: Option<String>,
    /// The address families of a socket that is bound to an IPv6 address.
    pub family: Family,
    /// Segmentation offload on sending.
    pub segmentation: Offload,
    /// Coalescing of received datagrams by the kernel.
    pub coalescing: Offload,
    /// Selection of a socket by the id in a datagram, where several share a port ([`bind_group`](crate::UdpSocket::bind_group)).
    pub steering: Offload,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            recv_buffer: DataSize::from_bytes(16 << 20),
            send_buffer: DataSize::from_bytes(16 << 20),
            dscp: None,
            bind_device: None,
            family: Family::DualStack,
            segmentation: Offload::WhereSupported,
            coalescing: Offload::WhereSupported,
            steering: Offload::WhereSupported,
        }
    }
}

/// The address families of a socket that is bound to an IPv6 address. A socket bound to an IPv4
/// address always has IPv4 only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv6 and IPv4 (`IPV6_V6ONLY` is off).
    DualStack,
    /// IPv6 only. Another socket can then be bound to the same IPv4 port.
    OnlyV6,
}

/// Whether an offload is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offload {
    /// Used if the kernel supports it. Segmentation ends when a device refuses it.
    WhereSupported,
    /// Never used: for tests, and for devices that implement it incorrectly.
    Off,
}
