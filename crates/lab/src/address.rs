//! The lab's addresses. They are the same in every lab: labs do not see each other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The IPv4 address of a port: 10.77.0.1 for the client, 10.77.N.1 for server N.
pub fn ipv4(port: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, port as u8, 1)
}

/// The IPv6 address of a port: fd77::1 for the client, fd77:0:0:N::1 for server N.
pub fn ipv6(port: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, 0, 0, port as u16, 0, 0, 0, 1)
}

/// The port that has `address`.
pub(crate) fn port_of(address: IpAddr) -> Option<u32> {
    match address {
        IpAddr::V4(address) => {
            let port = u32::from(address.octets()[2]);
            (ipv4(port) == address).then_some(port)
        }
        IpAddr::V6(address) => {
            let port = u32::from(address.segments()[3]);
            (port < 256 && ipv6(port) == address).then_some(port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_their_port() {
        for port in [0, 1, 2, 254] {
            assert_eq!(port_of(ipv4(port).into()), Some(port));
            assert_eq!(port_of(ipv6(port).into()), Some(port));
        }
        assert_eq!(port_of("10.77.1.2".parse().unwrap()), None);
        assert_eq!(port_of("ff02::2".parse().unwrap()), None);
    }
}
