//! The encoding has the layout of the structures in `libc`, checked by their field offsets.

use super::*;
use std::mem::offset_of;

#[test]
fn offsets_are_those_of_the_c_structs() {
    assert_eq!(offset_of!(libc::sockaddr_in, sin_port), 2);
    assert_eq!(offset_of!(libc::sockaddr_in, sin_addr), 4);
    assert_eq!(offset_of!(libc::sockaddr_in6, sin6_port), 2);
    assert_eq!(offset_of!(libc::sockaddr_in6, sin6_flowinfo), 4);
    assert_eq!(offset_of!(libc::sockaddr_in6, sin6_addr), 8);
    assert_eq!(offset_of!(libc::sockaddr_in6, sin6_scope_id), 24);
}

#[test]
fn encoded_addresses_decode() {
    for (text, family) in [
        ("192.0.2.7:443", SocketFamily::V4),
        ("192.0.2.7:443", SocketFamily::V6),
        ("[2001:db8::1]:9", SocketFamily::V6),
        ("[fe80::1%3]:65535", SocketFamily::V6),
    ] {
        let address: SocketAddr = text.parse().unwrap();
        let (raw, _) = RawAddress::encode(address, family).unwrap();
        assert_eq!(raw.decode(), Some(address), "{text} on {family:?}");
    }
}

#[test]
fn an_ipv4_socket_has_no_ipv6_destinations() {
    assert!(RawAddress::encode("[::1]:1".parse().unwrap(), SocketFamily::V4).is_none());
}

#[test]
fn an_unknown_family_does_not_decode() {
    assert_eq!(RawAddress::empty().decode(), None);
}
