//! Two connections in memory with a real TLS handshake, in virtual time.

mod attack;

use super::*;
use crate::testing::{Folder, shake, shake_as};
use crate::{ClientCredentials, Identity, PeerName, ServerCredentials, Trust, TrustHandle};
use crate::{KnownPeers, random_u64};
use bytes::Bytes;
use hikyaku_proto::{
    ClientIds, CloseReason, Config, Connection as Transport, Datagrams, Event, StreamId, StreamKind,
};
use hikyaku_units::Instant;
use hikyaku_wire::{Frame, LongHeader};
use std::net::SocketAddr;
use std::time::Duration;

const ALL: [CipherId; 3] = [CipherId::Aegis128L, CipherId::Aes128Gcm, CipherId::ChaCha20Poly1305];

/// A client and a server, connected by a wire with one millisecond of delay.
struct Pair {
    now: Instant,
    ends: [Transport; 2],
    events: [Vec<Event>; 2],
    received: [Vec<u8>; 2],
    /// Every datagram sent so far, with the end that sent it.
    wire: Vec<(usize, Vec<u8>)>,
    fate: Fate,
}

/// What the wire does to handshake datagrams.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrive,
    /// The datagram with this number is lost.
    Lose(usize),
    /// Each arrives twice.
    Double,
    /// Those of one flight arrive in reverse order.
    Reverse,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + end as u8], 4433))
}

fn config(ciphers: &[CipherId]) -> Config {
    Config { ciphers: ciphers.to_vec(), key_packets: 20, ..Config::default() }
}

fn peer() -> PeerName {
    PeerName::new("example.org", 4433).unwrap()
}

impl Pair {
    fn new(identity: &Identity, trust: Trust, ciphers: [&[CipherId]; 2]) -> (Self, TrustHandle) {
        let now = Instant::from_millis(1000);
        let destination = ConnectionId(random_u64());
        let ids = |local| ClientIds { local, destination, seed: 7 };
        let ids = [ids(ConnectionId(random_u64())), ids(ConnectionId(random_u64()))];
        let configs = [config(ciphers[0]), config(ciphers[1])];
        let params =
            |end: usize| Transport::local_params(&configs[end], ids[end].local, destination);
        let (session, handle) =
            ClientCredentials::new(trust).session(&peer(), params(0).encode()).unwrap();
        let client =
            Transport::client(now, configs[0].clone(), Box::new(session), address(1), ids[0]);
        let session = ServerCredentials::new(identity).session(params(1).encode()).unwrap();
        let server =
            Transport::server(now, configs[1].clone(), Box::new(session), address(0), ids[1]);
        let pair = Self {
            now,
            ends: [client, server],
            events: Default::default(),
            received: Default::default(),
            wire: Vec::new(),
            fate: Fate::Arrive,
        };
        (pair, handle)
    }

    /// Advances the time by `steps` milliseconds.
    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            let mut flying = Vec::new();
            for end in 0..2 {
                self.turn(end, &mut flying);
            }
            self.now += Duration::from_millis(1);
            if matches!(self.fate, Fate::Reverse) {
                flying.reverse();
            }
            for (end, datagram) in flying {
                let number = self.wire.len();
                self.wire.push((end, datagram.clone()));
                let copies = match self.fate {
                    Fate::Lose(lost) if lost == number => 0,
                    Fate::Double => 2,
                    _ => 1,
                };
                (0..copies).for_each(|_| self.deliver(1 - end, datagram.clone()));
            }
        }
    }

    fn turn(&mut self, end: usize, flying: &mut Vec<(usize, Vec<u8>)>) {
        let transport = &mut self.ends[end];
        if transport.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
            transport.handle_timeout(self.now);
        }
        let mut out = Vec::new();
        while let Some(transmit) = transport.poll_transmit(self.now, &mut out) {
            let datagrams = out[..transmit.len].chunks(transmit.segment);
            flying.extend(datagrams.map(|datagram| (end, datagram.to_vec())));
        }
        while let Some((id, delivery)) = transport.poll_delivery() {
            delivery.run.pieces().for_each(|piece| self.received[end].extend_from_slice(piece));
            transport.consumed(id, delivery.run.len() as u64);
        }
        self.events[end].extend(core::iter::from_fn(|| transport.poll_event()));
    }

    fn deliver(&mut self, end: usize, bytes: Vec<u8>) {
        self.ends[end]
            .handle_datagrams(self.now, Datagrams::one(address(1 - end), self.now, bytes));
    }

    fn send(&mut self, end: usize, bytes: &[u8]) -> StreamId {
        let stream = self.ends[end].open(StreamKind::Ordered).expect("streams may be opened");
        self.ends[end].write(stream, Bytes::copy_from_slice(bytes));
        self.ends[end].finish(stream);
        stream
    }

    fn closed(&self, end: usize) -> Option<&CloseReason> {
        self.events[end].iter().find_map(|event| match event {
            Event::Closed(reason) => Some(reason),
            _ => None,
        })
    }
}

fn pinned(identity: &Identity) -> Trust {
    Trust::Pinned(identity.fingerprint())
}

fn pattern(seed: u64, len: u64) -> Vec<u8> {
    (0..len).map(|at| ((at * 31 + seed) % 251) as u8).collect()
}

#[test]
fn data_crosses_under_every_cipher_and_many_keys() {
    let identity = Identity::generate().unwrap();
    for cipher in ALL {
        let (mut pair, handle) = Pair::new(&identity, pinned(&identity), [&[cipher], &ALL]);
        pair.run(20);
        for end in 0..2 {
            assert!(pair.events[end].contains(&Event::Connected), "{:?}", pair.events[end]);
        }
        assert_eq!(handle.fingerprint(), Some(identity.fingerprint()));
        let (up, down) = (pattern(1, 300_000), pattern(2, 300_000));
        pair.send(0, &up);
        pair.send(1, &down);
        pair.run(2000);
        assert!(pair.received == [down, up], "{cipher:?}");
        for end in 0..2 {
            let stats = pair.ends[end].stats();
            assert!(stats.key_updates > 2, "{} key updates", stats.key_updates);
            assert_eq!(stats.undecryptable, 0);
        }
        let word = pattern(1, 300_000)[1000..1032].to_vec();
        let is_seen = |(_, packet): &(usize, Vec<u8>)| packet.windows(32).any(|w| w == word);
        assert!(!pair.wire.iter().any(is_seen), "plaintext on the wire");
    }
}

#[test]
fn both_ends_choose_one_cipher_from_lists_in_different_orders() {
    let identity = Identity::generate().unwrap();
    let without_aes = [CipherId::ChaCha20Poly1305, CipherId::Aes128Gcm];
    for ciphers in [[&without_aes[..], &ALL[..]], [&ALL, &without_aes]] {
        let (mut pair, _) = Pair::new(&identity, pinned(&identity), ciphers);
        pair.run(20);
        pair.send(0, b"hello");
        pair.run(20);
        assert_eq!(pair.received[1], b"hello");
    }
}

#[test]
fn a_handshake_survives_loss_duplication_and_reordering() {
    let identity = Identity::generate().unwrap();
    let fates = (0..8).map(Fate::Lose).chain([Fate::Double, Fate::Reverse]);
    for fate in fates {
        let (mut pair, _) = Pair::new(&identity, pinned(&identity), [&ALL, &ALL]);
        pair.fate = fate;
        pair.run(3000);
        pair.send(0, b"up");
        pair.send(1, b"down");
        pair.run(1000);
        assert_eq!(pair.received, [b"down".to_vec(), b"up".to_vec()], "{fate:?}");
    }
}

/// Anybody can seal Initial packets, so their content must not reach TLS once it has handshake
/// keys.
#[test]
fn handshake_bytes_under_the_initial_keys_are_ignored_later() {
    let identity = Identity::generate().unwrap();
    let (mut pair, _) = Pair::new(&identity, pinned(&identity), [&ALL, &ALL]);
    pair.run(2);
    // The server has answered, and the client has read the answer and sent its own.
    let first = &pair.wire[0].1;
    let (header, len) = LongHeader::decode(first).unwrap();
    let keys = initial_suite().keys(
        &header.destination.0.to_le_bytes(),
        rustls::Side::Client,
        Version::V1,
    );
    let mut forged = first[..len].to_vec();
    Frame::Crypto { offset: 0, data: vec![0; 3000] }.encode(&mut forged);
    forged.resize(forged.len() + 16, 0);
    let (aad, body) = forged.split_at_mut(len);
    let seal = super::pair(keys).seal;
    seal.seal(u64::from(header.packet_number), aad, body);
    pair.deliver(1, forged);
    pair.run(20);
    assert!(pair.events[1].contains(&Event::Connected), "{:?}", pair.events[1]);
}

#[test]
fn a_wrong_pin_ends_the_handshake_with_both_fingerprints() {
    let [identity, other] = [(); 2].map(|()| Identity::generate().unwrap());
    let (mut pair, handle) = Pair::new(&identity, pinned(&other), [&ALL, &ALL]);
    pair.run(20);
    let Some(CloseReason::Handshake(text)) = pair.closed(0) else {
        panic!("{:?}", pair.events[0]);
    };
    for part in [identity.fingerprint().to_string(), other.fingerprint().to_string()] {
        assert!(text.contains(&part), "{text}");
    }
    assert!(text.contains("example.org:4433"), "{text}");
    assert!(matches!(handle.refusal(), Some(Untrusted::Pin { .. })));
    // The server learns that the handshake failed, but not the client's reason.
    let expected = CloseReason::Peer {
        code: hikyaku_proto::code::CRYPTO,
        reason: "the TLS handshake failed".to_owned(),
    };
    assert_eq!(pair.closed(1), Some(&expected));
    assert!(!pair.events[1].contains(&Event::Connected));
}

#[test]
fn the_key_exchange_is_post_quantum() {
    let identity = Identity::generate().unwrap();
    for end in shake(&identity, identity.fingerprint()).unwrap() {
        assert!(end.is_complete());
        assert_eq!(end.key_exchange(), Some(NamedGroup::X25519MLKEM768));
    }
}

// spec: key-0
#[test]
fn data_keys_come_from_the_exporter_by_its_label() {
    let identity = Identity::generate().unwrap();
    let [client, server] = shake(&identity, identity.fingerprint()).unwrap();
    let mut context = 2u64.to_le_bytes().to_vec();
    context.extend_from_slice(&0x6869_0001_u32.to_le_bytes());
    let exported = server
        .connection
        .export_keying_material([0; 32], b"EXPORTER-hikyaku data", Some(&context))
        .unwrap();
    assert_eq!(*client.data_secret(CipherId::Aes128Gcm).unwrap(), exported);
}

#[test]
fn every_connection_and_cipher_has_its_own_secret() {
    let identity = Identity::generate().unwrap();
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let [client, server] = shake(&identity, identity.fingerprint()).unwrap();
        for cipher in ALL {
            let secret = client.data_secret(cipher).unwrap();
            assert_eq!(secret, server.data_secret(cipher).unwrap());
            secrets.push(secret);
        }
    }
    for (index, one) in secrets.iter().enumerate() {
        assert!(secrets[..index].iter().all(|other| other != one));
    }
}

#[test]
fn there_are_no_data_keys_before_completion() {
    let identity = Identity::generate().unwrap();
    let mut server = ServerCredentials::new(&identity).session(Vec::new()).unwrap();
    assert!(server.data_keys(CipherId::Aes128Gcm).is_none());
}

#[test]
fn a_client_must_hold_the_key_it_presents() {
    let [server, client, other] = [(); 3].map(|()| Identity::generate().unwrap());
    let trust = || ClientCredentials::new(Trust::Pinned(server.fingerprint()));
    let asks = ServerCredentials::mutual(&server);
    let [_, end] = shake_as(&trust().with_identity(&client), &asks).unwrap();
    assert!(end.is_complete());
    assert_eq!(end.peer_key().fingerprint(), Some(client.fingerprint()));
    // One client presents no key, and one presents a key that it does not hold.
    for wrong in [trust(), trust().with_identity(&other.pretending(&client))] {
        assert!(shake_as(&wrong, &asks).is_err());
    }
    // A client with an identity refuses a server that does not ask for it.
    let asks_not = ServerCredentials::new(&server);
    assert!(shake_as(&trust().with_identity(&client), &asks_not).is_err());
    let [_, end] = shake_as(&trust(), &asks_not).unwrap();
    assert!(end.is_complete() && end.peer_key().fingerprint().is_none());
}

#[test]
fn garbage_is_an_error() {
    let identity = Identity::generate().unwrap();
    for garbage in [&[0; 4][..], &[0xff; 400], b"\x01\x00\x00\x05hello", b"\x02\x00\x00\x00"] {
        let mut server = ServerCredentials::new(&identity).session(Vec::new()).unwrap();
        assert!(server.read(garbage).is_err(), "{garbage:?}");
    }
}

#[test]
fn a_first_use_is_remembered_and_a_changed_key_refused() {
    let folder = Folder::new();
    let list = KnownPeers::at(folder.path("state/known_peers"));
    let trust = || Trust::FirstUse(list.clone());
    let [identity, other] = [(); 2].map(|()| Identity::generate().unwrap());
    let day = std::time::UNIX_EPOCH + Duration::from_secs(20_454 * 86_400);

    let (mut pair, handle) = Pair::new(&identity, trust(), [&ALL, &ALL]);
    assert!(matches!(handle.settle(day), Err(crate::SettleTrust::Unfinished)));
    pair.run(20);
    assert_eq!(list.list().unwrap(), []);
    let first = crate::TrustOutcome::FirstUse(identity.fingerprint());
    assert_eq!(handle.settle(day).unwrap(), first);
    assert_eq!(list.list().unwrap().len(), 1);

    let (mut pair, handle) = Pair::new(&identity, trust(), [&ALL, &ALL]);
    pair.run(20);
    assert_eq!(handle.settle(day).unwrap(), crate::TrustOutcome::Known);

    let (mut pair, handle) = Pair::new(&other, trust(), [&ALL, &ALL]);
    pair.run(20);
    let Some(CloseReason::Handshake(text)) = pair.closed(0) else {
        panic!("{:?}", pair.events[0]);
    };
    let place = format!("{}:1", list.path().display());
    let [old, new] = [identity.fingerprint(), other.fingerprint()].map(|f| f.to_string());
    for part in [&place, &old, &new, "2026-01-01", "example.org:4433"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(matches!(handle.settle(day), Err(crate::SettleTrust::Untrusted(_))));
    assert_eq!(list.list().unwrap().len(), 1);
}
