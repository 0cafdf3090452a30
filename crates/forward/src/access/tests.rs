//! Addresses in many spellings.

use super::*;

#[test]
fn addresses_that_no_flow_may_reach_are_refused_in_every_spelling() {
    for (text, wanted) in [
        ("0.0.0.0", Forbidden::Unspecified),
        ("0.1.2.3", Forbidden::Unspecified),
        ("::", Forbidden::Unspecified),
        ("::ffff:0.0.0.0", Forbidden::Unspecified),
        ("127.0.0.1", Forbidden::Loopback),
        ("127.255.0.9", Forbidden::Loopback),
        ("::1", Forbidden::Loopback),
        ("::ffff:127.0.0.1", Forbidden::Loopback),
        ("::7f00:1", Forbidden::Loopback),
        ("64:ff9b::7f00:1", Forbidden::Loopback),
        ("2002:7f00:1::", Forbidden::Loopback),
        ("169.254.169.254", Forbidden::LinkLocal),
        ("::ffff:169.254.169.254", Forbidden::LinkLocal),
        ("64:ff9b::a9fe:a9fe", Forbidden::LinkLocal),
        ("fe80::1", Forbidden::LinkLocal),
        ("febf::1", Forbidden::LinkLocal),
        ("100.100.100.200", Forbidden::Metadata),
        ("168.63.129.16", Forbidden::Metadata),
        ("fd00:ec2::254", Forbidden::Metadata),
        ("224.0.0.1", Forbidden::Multicast),
        ("239.255.255.255", Forbidden::Multicast),
        ("ff02::1", Forbidden::Multicast),
        ("255.255.255.255", Forbidden::Broadcast),
    ] {
        assert_eq!(check(text.parse().unwrap(), Loopback::Refused), Err(wanted), "{text}");
    }
}

#[test]
fn addresses_of_other_hosts_are_dialled() {
    for text in ["10.0.0.1", "192.0.2.1", "100.64.0.1", "2001:db8::1", "fd00::1"] {
        assert_eq!(check(text.parse().unwrap(), Loopback::Refused), Ok(()), "{text}");
    }
}

#[test]
fn loopback_is_reached_if_it_is_named_and_the_rest_is_not() {
    for text in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(check(text.parse().unwrap(), Loopback::Named), Ok(()), "{text}");
    }
    for text in ["0.0.0.0", "169.254.169.254", "ff02::1"] {
        assert!(check(text.parse().unwrap(), Loopback::Named).is_err(), "{text}");
    }
    for (text, wanted) in [
        ("localhost", Loopback::Named),
        ("LocalHost", Loopback::Named),
        ("127.0.0.2", Loopback::Named),
        ("::1", Loopback::Named),
        ("localhost.example", Loopback::Refused),
        ("10.0.0.1", Loopback::Refused),
    ] {
        assert_eq!(is_named_loopback(&Host::parse(text).unwrap()), wanted, "{text}");
    }
}
