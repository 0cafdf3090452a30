//! Settings of a connection that are derived from the route to its peer.

use crate::paths::PathKey;
use hikyaku_proto::Config;
use hikyaku_udp::{largest_payload, route_mtu};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The MTU of Ethernet, for a route without one.
const USUAL_MTU: usize = 1500;

/// `config` with the datagram size and header size of the route to `peer`.
pub(crate) fn fit(config: &Config, peer: SocketAddr, device: Option<&str>) -> Config {
    let mtu = route_mtu(peer, device).unwrap_or(USUAL_MTU);
    let payload = largest_payload(mtu, peer.ip());
    let ip_overhead = match peer.ip().to_canonical() {
        IpAddr::V4(_) => 28,
        IpAddr::V6(_) => 48,
    };
    Config {
        max_datagram: u16::try_from(payload).unwrap_or(u16::MAX),
        ip_overhead,
        ..config.clone()
    }
}

/// The path to `peer` as this machine would choose it. No packet is sent.
pub(crate) fn path_to(peer: SocketAddr) -> Option<PathKey> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(peer).ok()?;
    Some(PathKey::new(peer.ip(), socket.local_addr().ok()?.ip()))
}
