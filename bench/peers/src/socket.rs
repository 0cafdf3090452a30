//! UDP sockets with large buffers, and batches that fit into UDP.

use anyhow::Result;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use crate::{Args, Role};

/// What each socket asks for. Granted only up to `net.core.rmem_max`.
const BUFFER: usize = 32 << 20;

/// The most that one UDP datagram, and so one segmented send, can hold.
const LARGEST: usize = 65_507;

/// The socket of one end.
///
/// # Errors
/// If the address is taken.
pub fn bind(args: &Args) -> Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(BUFFER)?;
    socket.set_send_buffer_size(BUFFER)?;
    let address = match args.role {
        Role::Server => args.address,
        Role::Client => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
    };
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// How many payloads of `payload` bytes fit into one segmented send, at most `most`.
///
/// quinn and noq batch ten datagrams whatever their size. Ten jumbo frames are more than the kernel
/// takes, and the refusal looks like loss to them.
pub fn segments_that_fit(payload: u16, most: usize) -> usize {
    most.min(LARGEST / usize::from(payload).max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumbo_batches_are_cut() {
        assert_eq!(segments_that_fit(1472, 10), 10);
        assert_eq!(segments_that_fit(8972, 10), 7);
    }
}
