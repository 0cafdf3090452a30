//! Where UDP does not get through, as earlier connections have seen it.

use hikyaku_net::{Memory, UdpSeen};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Whether UDP did not get through to one of these addresses when it was tried last.
pub(crate) fn is_udp_blocked(memory: &Memory, addresses: &[SocketAddr]) -> bool {
    let is_blocked =
        |at: &SocketAddr| local_of(*at).is_some_and(|local| memory.is_udp_blocked(at.ip(), local));
    *memory != Memory::Off && addresses.iter().any(is_blocked)
}

/// Notes what was seen of UDP to these addresses.
pub(crate) fn note_udp(memory: &Memory, addresses: &[SocketAddr], seen: UdpSeen) {
    for at in addresses {
        if let Some(local) = local_of(*at) {
            memory.note_udp(at.ip(), local, seen);
        }
    }
}

/// The address from which this machine sends there. Nothing is sent.
fn local_of(peer: SocketAddr) -> Option<IpAddr> {
    let any = match peer.ip().to_canonical() {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // A machine may forbid UDP so thoroughly that this fails.
    socket.connect((peer.ip().to_canonical(), peer.port().max(1))).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
