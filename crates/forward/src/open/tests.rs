//! Messages that are cut, longer, or random.

use super::*;
use crate::target::Host;

fn sample(host: &str, loopback: Loopback) -> Open {
    let target = Target { host: Host::parse(host).unwrap(), port: 443 };
    Open { target: target.into(), loopback }
}

#[test]
fn a_message_is_decoded_as_it_was_encoded() {
    for host in ["10.0.0.1", "2001:db8::1", "a.example", &"n".repeat(255)] {
        for loopback in [Loopback::Refused, Loopback::Named] {
            let open = sample(host, loopback);
            assert_eq!(Open::decode(&open.encode()), Ok(open));
        }
    }
    let bytes = socket().encode();
    assert_eq!(Open::decode(&bytes), Ok(socket()));
    for length in 0..bytes.len() {
        assert!(Open::decode(&bytes[..length]).is_err(), "{length}");
    }
    let flagged = [&bytes[..2], &[1], &bytes[3..]].concat();
    assert!(Open::decode(&flagged).is_err(), "a Unix socket has no loopback address");
}

fn socket() -> Open {
    let target = Goal::Socket(SocketPath::parse("/run/a.sock").unwrap());
    Open { target, loopback: Loopback::Refused }
}

#[test]
fn every_cut_and_every_longer_message_is_refused() {
    for host in ["10.0.0.1", "2001:db8::1", "a.example"] {
        let mut bytes = sample(host, Loopback::Refused).encode();
        for length in 0..bytes.len() {
            assert!(Open::decode(&bytes[..length]).is_err(), "{host} {length}");
        }
        bytes.push(0);
        assert_eq!(Open::decode(&bytes), Err(MessageError::Long));
    }
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let good = sample("a.example", Loopback::Refused).encode();
    for (at, value, wanted) in [
        (0, 2, MessageError::Version(2)),
        (1, 9, MessageError::Value { field: "the kind of a flow", value: 9 }),
        (2, 2, MessageError::Value { field: "the flags of a flow", value: 2 }),
        (3, 7, MessageError::Value { field: "the kind of an address", value: 7 }),
        (5, b' ', MessageError::Host),
        (5, 0xff, MessageError::Text),
    ] {
        let mut bytes = good.clone();
        bytes[at] = value;
        assert_eq!(Open::decode(&bytes), Err(wanted));
    }
    let mut bytes = good;
    let length = bytes.len();
    bytes[length - 2..].fill(0);
    assert_eq!(Open::decode(&bytes), Err(MessageError::Port));
}

#[test]
fn random_bytes_cause_no_panic() {
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..rng.usize(..40)).map(|_| rng.u8(..8)).collect();
        if let Ok(open) = Open::decode(&bytes) {
            assert_eq!(open.encode(), bytes);
        }
        bytes.splice(0..0, sample("a.b", Loopback::Named).encode());
        let _ = Open::decode(&bytes[..rng.usize(..=bytes.len())]);
    }
}
