//! What the kernel gave of what was asked, and how an administrator can make it give more.

use crate::options::SocketOptions;
use hikyaku_units::DataSize;

/// What a bound socket really has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// The receive buffer, in the same terms as it was asked.
    pub recv_buffer: DataSize,
    /// The send buffer, in the same terms as it was asked.
    pub send_buffer: DataSize,
    /// Segmentation offload on sending; turns to `Absent` if a send finds that it does not work.
    pub gso: Support,
    /// Joining of datagrams on receiving.
    pub gro: Support,
}

/// Whether an offload is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Support {
    /// In use.
    Present,
    /// Switched off, unknown to the kernel, or refused by a device.
    Absent,
}

impl Granted {
    /// The command that lets the kernel grant the receive buffer asked for; `None` if it did.
    pub fn recv_advice(&self, asked: &SocketOptions) -> Option<String> {
        advice("net.core.rmem_max", asked.recv_buffer, self.recv_buffer)
    }

    /// The command that lets the kernel grant the send buffer asked for; `None` if it did.
    pub fn send_advice(&self, asked: &SocketOptions) -> Option<String> {
        advice("net.core.wmem_max", asked.send_buffer, self.send_buffer)
    }
}

fn advice(key: &str, asked: DataSize, granted: DataSize) -> Option<String> {
    (granted < asked).then(|| format!("sysctl -w {key}={}", asked.bytes()))
}
