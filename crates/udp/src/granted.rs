//! What the kernel granted, and how an administrator can raise its limits.

use crate::options::SocketOptions;
use hikyaku_units::DataSize;

/// The buffer sizes and offloads of a bound socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// The receive buffer in bytes, without the kernel's doubling, so comparable with the size
    /// asked for.
    pub recv_buffer: DataSize,
    /// The send buffer in the same unit.
    pub send_buffer: DataSize,
    /// Segmentation offload on sending. Becomes `Absent` when a send finds that it does not work.
    pub gso: Support,
    /// Coalescing of received datagrams (`UDP_GRO`, udp(7)).
    pub gro: Support,
}

/// Whether an offload is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Support {
    /// In use.
    Present,
    /// Disabled by the options, unknown to the kernel, or refused by a device.
    Absent,
}

impl Granted {
    /// A command that raises the kernel's limit to the receive buffer asked for; `None` if it was
    /// granted.
    pub fn recv_advice(&self, asked: &SocketOptions) -> Option<String> {
        advice("net.core.rmem_max", asked.recv_buffer, self.recv_buffer)
    }

    /// A command that raises the kernel's limit to the send buffer asked for; `None` if it was
    /// granted.
    pub fn send_advice(&self, asked: &SocketOptions) -> Option<String> {
        advice("net.core.wmem_max", asked.send_buffer, self.send_buffer)
    }
}

fn advice(key: &str, asked: DataSize, granted: DataSize) -> Option<String> {
    (granted < asked).then(|| format!("sysctl -w {key}={}", asked.bytes()))
}
