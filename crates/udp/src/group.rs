//! Several sockets on one port. The kernel gives each datagram to the socket that its connection id names.

use crate::bind::{BindError, Port, UdpSocket};
use crate::configure::{share_port, steer};
use crate::options::{Offload, SocketOptions};
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::os::fd::AsFd;

/// Offset of the lowest byte of the destination id in a datagram, in both forms of the header.
// spec: head-1
pub const STEERING_BYTE: usize = 8;

impl UdpSocket {
    /// Binds `count` sockets to one port, or fewer where the system refuses more. The socket with index j receives the
    /// datagrams whose byte [`STEERING_BYTE`] is j modulo the number of sockets, and the first one those that are shorter. On a
    /// kernel without this selection (before Linux 4.5) each pair of addresses has a socket by chance.
    ///
    /// As long as one of the sockets is open all must be: the kernel gives the index of a closed one to the last.
    ///
    /// A port that another program is bound to stays an error: the first socket is bound without sharing its port, and lets the
    /// others in afterwards. Only processes of the same user could join as well.
    ///
    /// # Errors
    /// The first socket cannot be bound.
    pub fn bind_group(
        address: SocketAddr,
        options: &SocketOptions,
        count: NonZeroU8,
    ) -> Result<Vec<Self>, BindError> {
        let first = Self::bind(address, options)?;
        let address = first.local_addr();
        let mut sockets = vec![first];
        if count.get() > 1 && share_port(sockets[0].as_fd()).is_ok() {
            let others = 1..count.get();
            let others = others.map_while(|_| Self::bind_to(address, options, Port::Shared).ok());
            sockets.extend(others);
            if options.steering == Offload::WhereSupported {
                // An old kernel refuses it.
                let _ = steer(sockets[0].as_fd(), STEERING_BYTE, sockets.len());
            }
        }
        Ok(sockets)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
