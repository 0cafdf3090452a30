//! What a caller asks of a socket before it is bound.

use hikyaku_units::DataSize;

/// What a socket is to have. The default asks 16 MiB each way, both families and every offload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketOptions {
    /// Receive buffer to ask for. Ten gigabits a second fill 16 MiB in 13 ms, which is what a
    /// descheduled receiver costs; the kernel's usual limit of 208 KiB lasts 0.17 ms.
    pub recv_buffer: DataSize,
    /// Send buffer to ask for. One super-packet is 64 KB, so 208 KiB holds three.
    pub send_buffer: DataSize,
    /// Differentiated services code point of every packet, 0..=63; `None` leaves best effort.
    pub dscp: Option<u8>,
    /// Network interface to be bound to, whatever the routes say.
    pub bind_device: Option<String>,
    /// Which families a socket bound to an IPv6 address speaks.
    pub family: Family,
    /// Whether one call may hand the kernel many segments.
    pub segmentation: Offload,
    /// Whether the kernel may hand over many datagrams joined.
    pub coalescing: Offload,
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
        }
    }
}

/// The families of a socket bound to an IPv6 address. One bound to an IPv4 address speaks IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// `[::]` receives IPv4 as well, and can send to it.
    DualStack,
    /// Only IPv6, so that another socket can have the same IPv4 port.
    OnlyV6,
}

/// Whether an offload is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offload {
    /// Used if the kernel knows it, dropped when a device refuses it.
    WhereSupported,
    /// Never used: for tests, and for devices that claim it and get it wrong.
    Off,
}
