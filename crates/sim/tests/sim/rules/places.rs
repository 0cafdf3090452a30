//! A client whose address changes, and an idle client that keeps its NAT mapping.

use super::{HALF, frames, met};
use hikyaku_proto::{Config, Side, StreamKind};
use hikyaku_sim::{Duo, Mark, address};
use hikyaku_units::Instant;
use hikyaku_wire::Frame;
use std::net::SocketAddr;
use std::time::Duration;

/// Delivers the client's packets to the server from the address `place`.
fn deliver_from(duo: &mut Duo, place: SocketAddr) {
    for packet in duo.take(Side::Client) {
        let stride = packet.len();
        duo.give_from(place, Side::Server, (packet, stride), Mark::None);
    }
}

/// Two ends, of which the client continues from `place` until the server has validated that
/// address.
fn moved_to(place: SocketAddr) -> Duo {
    let mut duo = met();
    assert_eq!(duo.end(Side::Server).stats().datagram, 1472, "the search has ended");
    let id = duo.end(Side::Client).open(StreamKind::Ordered).expect("a stream");
    duo.end(Side::Client).write(id, vec![1; 10].into());
    deliver_from(&mut duo, place);
    let asked: Vec<_> = duo
        .take_addressed(Side::Server)
        .into_iter()
        .filter(|(_, packet)| {
            frames(packet).iter().any(|frame| matches!(frame, Frame::PathChallenge(_)))
        })
        .collect();
    assert!(!asked.is_empty() && asked.iter().all(|(target, _)| *target == place), "{asked:?}");
    assert_eq!(duo.end(Side::Server).stats().moves, 0);
    duo.now += HALF;
    duo.give(Side::Client, asked.into_iter().map(|(_, packet)| packet));
    deliver_from(&mut duo, place);
    assert_eq!(duo.end(Side::Server).stats().moves, 1);
    duo
}

// spec: path-3
#[test]
fn a_new_port_keeps_the_measurements_of_the_path_and_a_new_host_does_not() {
    let mut port = address(Side::Client);
    port.set_port(6001);
    assert_eq!(moved_to(port).end(Side::Server).stats().datagram, 1472);
    let host = SocketAddr::from(([10, 9, 9, 9], 5000));
    assert_eq!(moved_to(host).end(Side::Server).stats().datagram, 1200);
}

// spec: path-4
#[test]
fn a_client_that_migrates_before_handshake_done_is_reached() {
    // With this size there is no path-MTU search that would send packets.
    let config = Config { max_datagram: 1200, ..Config::default() };
    let mut duo = Duo::apart(&config, &config);
    let place = SocketAddr::from(([10, 9, 9, 9], 5000));
    duo.exchange(HALF);
    deliver_from(&mut duo, address(Side::Client));
    assert!(!duo.end(Side::Server).is_handshaking(), "the server has all it needs");
    for _ in 0..1000 {
        // Packets to the client's old address are lost.
        let answers = duo.take_addressed(Side::Server);
        duo.now += HALF;
        let heard = answers.into_iter().filter(|(target, _)| *target == place);
        duo.give(Side::Client, heard.map(|(_, packet)| packet));
        deliver_from(&mut duo, place);
    }
    assert_eq!(duo.end(Side::Server).stats().moves, 1);
}

/// When the client sends packets in ten minutes in which neither application sends anything.
fn said(config: &Config) -> Vec<Instant> {
    let mut duo = Duo::met(config, config, HALF);
    let until = duo.now + Duration::from_secs(600);
    let mut said = vec![duo.now];
    while duo.now < until {
        let due = duo.next_timeout().expect("it keeps the path").min(until);
        duo.now = due.max(duo.now + Duration::from_micros(10));
        let packets = duo.take(Side::Client);
        if !packets.is_empty() {
            said.push(duo.now);
        }
        duo.give(Side::Server, packets);
        let answers = duo.take(Side::Server);
        duo.give(Side::Client, answers);
    }
    assert!(!duo.end(Side::Client).is_closed() && !duo.end(Side::Server).is_closed());
    assert_eq!(duo.end(Side::Client).stats().outages, 0);
    said
}

#[test]
fn an_idle_client_sends_only_keep_alives() {
    // Common address translators (NAT) remove a mapping after 30 s, and one of two packets may be
    // lost.
    let eager = Config { keep_alive: Duration::from_secs(2), ..Config::default() };
    for (config, longest) in [(Config::default(), 15), (eager, 3)] {
        let said = said(&config);
        let pauses = said.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(pauses.max() <= Some(Duration::from_secs(longest)), "{said:?}");
        // Its own keep-alives, the answers to those of the other end, and probes of the path-MTU
        // search.
        let most = 3 * Duration::from_secs(600).as_secs() / config.keep_alive.as_secs();
        assert!(said.len() as u64 <= most, "{} times in ten minutes", said.len());
    }
}
