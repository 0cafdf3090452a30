//! Validated and false migrations of the peer's address, and the bytes sent to each address.

use super::*;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

const SRTT: Duration = Duration::from_millis(100);
const TOKEN: u64 = 7;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn host(last: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port)
}

fn came(peer: &mut PeerAddress, source: SocketAddr, bytes: u64, order: Order) {
    peer.on_packet(source, bytes, order, || TOKEN);
}

#[test]
fn a_migration_is_validated_by_a_response_from_the_new_address() {
    let mut peer = PeerAddress::new(host(1, 5000));
    came(&mut peer, host(1, 5001), 60, Order::Newest);
    assert!(peer.is_in_doubt());
    assert_eq!(peer.challenge(at(0), SRTT), Some(TOKEN));
    assert_eq!(peer.destination(48), host(1, 5001));
    assert_eq!(peer.on_response(8), None);
    assert_eq!(peer.proven(), host(1, 5000));
    assert_eq!(peer.on_response(TOKEN), Some((Moved::Port, at(0))));
    assert_eq!(peer.proven(), host(1, 5001));
    assert!(!peer.is_in_doubt());
    came(&mut peer, host(2, 5001), 60, Order::Newest);
    assert_eq!(peer.challenge(at(9), SRTT), Some(TOKEN));
    assert_eq!(peer.on_response(TOKEN), Some((Moved::Host, at(9))));
}

// spec: path-1
#[test]
fn what_was_overtaken_moves_nobody_and_a_newer_packet_cancels_a_migration() {
    let mut peer = PeerAddress::new(host(1, 5000));
    came(&mut peer, host(3, 9), 2000, Order::Overtaken);
    assert!(!peer.is_in_doubt());
    came(&mut peer, host(3, 9), 2000, Order::Newest);
    assert!(peer.is_in_doubt());
    came(&mut peer, host(1, 5000), 2000, Order::Overtaken);
    assert!(peer.is_in_doubt());
    came(&mut peer, host(1, 5000), 2000, Order::Newest);
    assert!(!peer.is_in_doubt());
    // The response to the challenge arrives after the claim was cancelled.
    assert_eq!(peer.on_response(TOKEN), None);
    assert_eq!(peer.destination(100), host(1, 5000));
}

// spec: path-2
#[test]
fn an_unvalidated_address_gets_no_more_bytes_than_arrived_from_it() {
    let mut peer = PeerAddress::new(host(1, 5000));
    let (mut came_from, mut went_to) = (0, 0);
    let mut rng = fastrand::Rng::with_seed(1);
    for millis in 0..20_000 {
        let now = at(millis);
        if rng.u32(..10) == 0 {
            let bytes = rng.u64(48..200);
            came(&mut peer, host(3, 9), bytes, Order::Newest);
            came_from += bytes;
        }
        let mut bytes = rng.u64(48..1500);
        if peer.challenge(now, SRTT).is_some() {
            bytes = CHALLENGE_BYTES_MAX as u64;
        }
        if peer.destination(bytes) == host(3, 9) {
            went_to += bytes;
        }
        assert!(went_to <= came_from, "{went_to} of {came_from}");
    }
    assert!(went_to > 0);
}

#[test]
fn a_claim_without_response_is_abandoned() {
    let mut peer = PeerAddress::new(host(1, 5000));
    came(&mut peer, host(3, 9), 1000, Order::Newest);
    let mut asked = 0;
    for millis in 0..60_000 {
        asked += u32::from(peer.challenge(at(millis), SRTT).is_some());
    }
    assert_eq!(u64::from(asked), CHALLENGES_MAX);
    assert!(!peer.is_in_doubt());
    assert_eq!(peer.destination(100), host(1, 5000));
}

#[test]
fn too_few_bytes_arrived_for_a_challenge() {
    let mut peer = PeerAddress::new(host(1, 5000));
    came(&mut peer, host(3, 9), 20, Order::Newest);
    assert_eq!(peer.next_timeout(SRTT), None);
    assert_eq!(peer.challenge(at(0), SRTT), None);
    came(&mut peer, host(3, 9), 28, Order::Newest);
    assert_eq!(peer.challenge(at(0), SRTT), Some(TOKEN));
}

// spec: path-1
#[test]
fn a_late_response_over_a_longer_path_counts_after_the_credit_was_used_up() {
    let mut peer = PeerAddress::new(host(1, 5000));
    let mut answers: Vec<(u64, u64)> = Vec::new();
    let mut tokens = 0;
    for millis in 0..2000 {
        for (sent, token) in answers.extract_if(.., |(sent, _)| *sent + 70 <= millis) {
            if let Some(moved) = peer.on_response(token) {
                assert_eq!(moved, (Moved::Host, at(sent)));
                assert_eq!((peer.proven(), peer.is_in_doubt()), (host(3, 9), false));
                return;
            }
        }
        if millis % 10 == 0 {
            peer.on_packet(host(3, 9), 100, Order::Newest, || {
                tokens += 1000;
                tokens
            });
            // An ACK uses up the credit, so that the rest is too little for a challenge.
            peer.destination(60);
        }
        if let Some(token) = peer.challenge(at(millis), Duration::from_millis(5)) {
            assert_eq!(peer.destination(48), host(3, 9));
            answers.push((millis, token));
        }
    }
    panic!("never moved: {peer:?}");
}

#[test]
fn a_newer_packet_from_the_old_address_also_removes_an_abandoned_claim() {
    let mut peer = PeerAddress::new(host(1, 5000));
    came(&mut peer, host(3, 9), 48, Order::Newest);
    assert_eq!(peer.challenge(at(0), SRTT), Some(TOKEN));
    assert_eq!(peer.destination(48), host(3, 9));
    assert_eq!(peer.challenge(at(1000), SRTT), None, "no more came from there");
    assert!(!peer.is_in_doubt());
    came(&mut peer, host(1, 5000), 48, Order::Overtaken);
    assert!(peer.clone().on_response(TOKEN).is_some());
    came(&mut peer, host(1, 5000), 48, Order::Newest);
    assert_eq!(peer.on_response(TOKEN), None);
}
