//! Both ends of a connection learn of its end, even if CLOSE packets are lost.

use hikyaku_proto::{
    ClientIds, CloseReason, Config, Connection, ConnectionId, Datagrams, Event, Session, Side, code,
};
use hikyaku_sim::SimSession;
use hikyaku_units::Instant;
use hikyaku_wire::{Frame, LongHeader, LongType, TAG_LEN, Version};
use std::net::SocketAddr;
use std::time::Duration;

const HALF: Duration = Duration::from_millis(50);

struct Pair {
    now: Instant,
    client: Connection,
    server: Connection,
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

fn connection(now: Instant, side: Side) -> Connection {
    let config = Config::default();
    let first = ConnectionId(7);
    let (local, peer) = match side {
        Side::Client => (ConnectionId(1), address(2)),
        Side::Server => (ConnectionId(2), address(1)),
    };
    let ids = ClientIds { local, destination: first, seed: 5 };
    let params = Connection::local_params(&config, local, first).encode();
    let session = Box::new(SimSession::new(side, params));
    match side {
        Side::Client => Connection::client(now, config, session, peer, ids),
        Side::Server => Connection::server(now, config, session, peer, ids),
    }
}

/// The packets that `from` sends now.
fn take(from: &mut Connection, now: Instant) -> Vec<Vec<u8>> {
    if from.poll_timeout().is_some_and(|(due, _)| due <= now) {
        from.handle_timeout(now);
    }
    let (mut packets, mut out) = (Vec::new(), Vec::new());
    while let Some(transmit) = from.poll_transmit(now, &mut out) {
        packets.extend(out[..transmit.len].chunks(transmit.segment).map(<[u8]>::to_vec));
    }
    packets
}

fn give(to: &mut Connection, now: Instant, source: SocketAddr, packets: Vec<Vec<u8>>) {
    for bytes in packets {
        to.handle_datagrams(now, Datagrams::one(source, now, bytes));
    }
}

impl Pair {
    /// Two ends before the handshake.
    fn apart() -> Self {
        let now = Instant::from_millis(1000);
        let (client, server) = (connection(now, Side::Client), connection(now, Side::Server));
        Self { now, client, server }
    }

    /// Two ends after the handshake, with nothing more to send.
    fn new() -> Self {
        let mut pair = Self::apart();
        (0..40).for_each(|_| pair.exchange());
        assert!(!pair.client.is_handshaking() && !pair.server.is_handshaking());
        pair
    }

    fn exchange(&mut self) {
        let packets = take(&mut self.client, self.now);
        self.now += HALF;
        give(&mut self.server, self.now, address(1), packets);
        let packets = take(&mut self.server, self.now);
        self.now += HALF;
        give(&mut self.client, self.now, address(2), packets);
    }

    fn is_server_closed(&mut self) -> bool {
        is_closed_by_peer(&mut self.server)
    }
}

/// Whether the peer has closed the connection.
fn is_closed_by_peer(end: &mut Connection) -> bool {
    let events = std::iter::from_fn(|| end.poll_event());
    events.into_iter().any(|event| matches!(event, Event::Closed(CloseReason::Peer { .. })))
}

// spec: end-1
#[test]
fn close_is_retransmitted_to_a_silent_peer() {
    let mut pair = Pair::new();
    pair.client.close(code::DONE, "done");
    let lost = take(&mut pair.client, pair.now);
    assert_eq!(lost.len(), 1);
    let (due, _) = pair.client.poll_timeout().expect("a time to say it again");
    pair.now = due;
    let again = take(&mut pair.client, pair.now);
    assert_eq!(again.len(), 1, "without having been asked");
    give(&mut pair.server, pair.now + HALF, address(1), again);
    assert!(pair.is_server_closed());
    assert!(pair.server.is_closed());
}

// spec: end-1
#[test]
fn close_answers_packets_that_still_arrive() {
    let mut pair = Pair::new();
    pair.client.close(code::DONE, "done");
    assert_eq!(take(&mut pair.client, pair.now).len(), 1);
    pair.server.open(hikyaku_proto::StreamKind::Ordered).expect("a stream");
    let id = pair.server.open(hikyaku_proto::StreamKind::Ordered).expect("a stream");
    pair.server.write(id, vec![1; 100].into());
    let late = take(&mut pair.server, pair.now);
    assert!(!late.is_empty());
    pair.now += Duration::from_millis(1);
    give(&mut pair.client, pair.now, address(2), late);
    assert_eq!(take(&mut pair.client, pair.now).len(), 1, "at once");
}

// spec: end-1
#[test]
fn the_closing_state_ends_after_three_round_trips() {
    let mut pair = Pair::new();
    pair.client.close(code::DONE, "done");
    let mut said = 0;
    for _ in 0..20 {
        said += take(&mut pair.client, pair.now).len();
        let Some((due, _)) = pair.client.poll_timeout() else { break };
        pair.now = pair.now.max(due);
    }
    assert!(pair.client.is_closed());
    assert!((2..=4).contains(&said), "{said} times");
}

// spec: hs-8
#[test]
fn a_server_that_closes_before_the_last_flight_informs_the_client() {
    let mut pair = Pair::apart();
    // The client's last flight is lost each time.
    while pair.client.is_handshaking() {
        pair.exchange();
    }
    assert!(pair.server.is_handshaking());
    pair.server.close(code::DONE, "going");
    let farewell = take(&mut pair.server, pair.now);
    assert!(!farewell.is_empty());
    give(&mut pair.client, pair.now + HALF, address(2), farewell);
    assert!(is_closed_by_peer(&mut pair.client));
    assert!(pair.client.is_closed());
}

/// A forged CLOSE under the Initial keys, in the server's name. Anyone who has seen the client's
/// first packet can build it.
fn forged_close() -> Vec<u8> {
    let header = LongHeader {
        kind: LongType::Initial,
        version: Version::CURRENT,
        destination: ConnectionId(1),
        source: ConnectionId(2),
        packet_number: 1000,
        token: Vec::new(),
    };
    let mut packet = Vec::new();
    header.encode(&mut packet);
    let head = packet.len();
    Frame::Close { code: code::DONE, reason: Vec::new() }.encode(&mut packet);
    packet.resize(packet.len() + TAG_LEN, 0);
    let (aad, body) = packet.split_at_mut(head);
    let keys = SimSession::new(Side::Server, Vec::new()).initial_keys(ConnectionId(7));
    keys.seal.seal(u64::from(header.packet_number), aad, body);
    packet
}

// spec: hs-8
#[test]
fn a_close_under_initial_keys_is_ignored_once_handshake_keys_exist() {
    let mut pair = Pair::apart();
    // Before the handshake keys exist, the forged CLOSE is accepted. This shows that it is
    // well-formed.
    let mut other = connection(pair.now, Side::Client);
    take(&mut other, pair.now);
    give(&mut other, pair.now, address(2), vec![forged_close()]);
    assert!(is_closed_by_peer(&mut other));
    while pair.client.is_handshaking() {
        pair.exchange();
    }
    give(&mut pair.client, pair.now, address(2), vec![forged_close()]);
    assert!(!is_closed_by_peer(&mut pair.client) && !pair.client.is_closed());
}
