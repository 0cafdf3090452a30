//! Addresses in a lab. They are the same in every lab, because the namespaces of different labs are
//! not connected.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The IPv4 address of a port: 10.77.0.1 for the client, 10.77.N.1 for server N.
pub fn ipv4(port: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, port as u8, 1)
}

/// The IPv6 address of a port: fd77::1 for the client, fd77:0:0:N::1 for server N.
pub fn ipv6(port: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, 0, 0, port as u16, 0, 0, 0, 1)
}

/// The host number of a gateway in its site's network.
pub(crate) const GATEWAY: u32 = 254;

/// The IPv4 address of host `number` of site `site`; sites count from 0. The first host of the
/// first site has 10.77.1.1.
pub(crate) fn host_ipv4(site: u32, number: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, site as u8 + 1, number as u8)
}

/// The IPv6 address of host `number` of site `site`; the first host of the first site has
/// fd77:0:0:1::1.
pub(crate) fn host_ipv6(site: u32, number: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, 0, 0, site as u16 + 1, 0, 0, 0, number as u16)
}

/// The site, counted from 0, whose network contains `address`.
pub(crate) fn site_of(address: IpAddr) -> Option<u32> {
    match address {
        IpAddr::V4(address) => match address.octets() {
            [10, 77, site @ 1..=255, _] => Some(u32::from(site) - 1),
            _ => None,
        },
        IpAddr::V6(address) => match address.segments() {
            [0xfd77, 0, 0, site @ 1..=255, ..] => Some(u32::from(site) - 1),
            _ => None,
        },
    }
}

/// The port with this address.
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
    fn an_address_maps_back_to_its_port() {
        for port in [0, 1, 2, 254] {
            assert_eq!(port_of(ipv4(port).into()), Some(port));
            assert_eq!(port_of(ipv6(port).into()), Some(port));
        }
        assert_eq!(port_of("10.77.1.2".parse().unwrap()), None);
        assert_eq!(port_of("ff02::2".parse().unwrap()), None);
    }

    #[test]
    fn an_address_maps_back_to_its_site() {
        for (site, number) in [(0, 1), (0, GATEWAY), (7, 3), (253, 2)] {
            assert_eq!(site_of(host_ipv4(site, number).into()), Some(site));
            assert_eq!(site_of(host_ipv6(site, number).into()), Some(site));
        }
        for nobody in ["10.77.0.1", "10.78.1.1", "192.168.1.1", "fd77::1", "ff02::2"] {
            assert_eq!(site_of(nobody.parse().unwrap()), None, "{nobody}");
        }
    }
}
