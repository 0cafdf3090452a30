//! The addresses of a host that are dialled.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};

/// An address family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The addresses of a host, at this port and of this family if one is wanted.
///
/// # Errors
///
/// The name is not found, or has no such address.
pub fn addresses(host: &str, port: u16, family: Option<Family>) -> io::Result<Vec<SocketAddr>> {
    let is_wanted = |address: &SocketAddr| match family {
        None => true,
        Some(Family::V4) => address.is_ipv4(),
        Some(Family::V6) => address.is_ipv6(),
    };
    let found: Vec<_> = (host, port).to_socket_addrs()?.filter(is_wanted).collect();
    if found.is_empty() {
        let lacks = match family {
            None => "the name has no address",
            Some(Family::V4) => "no IPv4 address",
            Some(Family::V6) => "no IPv6 address",
        };
        return Err(io::Error::new(ErrorKind::NotFound, lacks));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_family_are_found() {
        let found = |host, family| addresses(host, 1, family).map(|all| all.len());
        assert_eq!(found("127.0.0.1", None).unwrap(), 1);
        assert_eq!(found("127.0.0.1", Some(Family::V4)).unwrap(), 1);
        assert_eq!(found("::1", Some(Family::V6)).unwrap(), 1);
        let error = found("127.0.0.1", Some(Family::V6)).unwrap_err();
        assert_eq!(error.to_string(), "no IPv6 address");
    }
}
