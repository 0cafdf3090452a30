//! Attackers on the path of a handshake, with real TLS: every bit flipped, a captured handshake
//! replayed, and every element dropped, truncated, modified and sealed again.

use super::*;
use hikyaku_wire::{LongType, Reader};

/// The externally visible state of an end, without the counter of packets that failed to open.
#[derive(PartialEq, Debug)]
struct Sight {
    due: Option<Instant>,
    sent: u64,
    received: u64,
    in_flight: u64,
    keys: u64,
    phase: (bool, bool),
}

impl Sight {
    fn of(end: &Transport) -> Self {
        let stats = end.stats();
        Self {
            due: end.poll_timeout().map(|(at, _)| at),
            sent: stats.sent.packets,
            received: stats.received.packets,
            in_flight: stats.in_flight.bytes(),
            keys: stats.key_updates,
            phase: (end.is_handshaking(), end.is_closed()),
        }
    }
}

impl Pair {
    /// Advances one millisecond. `meddle` gets each datagram in flight and delivers what it likes.
    fn step(&mut self, meddle: &mut impl FnMut(&mut Self, usize, Vec<u8>)) {
        let mut flying = Vec::new();
        (0..2).for_each(|end| self.turn(end, &mut flying));
        self.now += Duration::from_millis(1);
        if matches!(self.fate, Fate::Reverse) {
            flying.reverse();
        }
        for (from, datagram) in flying {
            self.wire.push((from, datagram.clone()));
            meddle(self, from, datagram);
        }
    }

    fn is_connected(&self, end: usize) -> bool {
        self.events[end].contains(&Event::Connected) && self.closed(end).is_none()
    }
}

/// Delivers `datagram` with each of its bits flipped in turn, and then unmodified. The answers are
/// treated in the same way. Returns the count of flipped bits.
fn flip_all(pair: &mut Pair, from: usize, datagram: Vec<u8>) -> usize {
    let to = 1 - from;
    let before = Sight::of(&pair.ends[to]);
    let mut flipped = datagram.clone();
    for bit in 0..datagram.len() * 8 {
        flipped[bit / 8] ^= 1 << (bit % 8);
        pair.deliver(to, flipped.clone());
        let (now, mut out) = (pair.now, Vec::new());
        assert_eq!(pair.ends[to].poll_transmit(now, &mut out), None, "bit {bit} was answered");
        assert_eq!(pair.ends[to].poll_event(), None, "bit {bit}");
        assert_eq!(Sight::of(&pair.ends[to]), before, "bit {bit} of a datagram to {to}");
        flipped[bit / 8] ^= 1 << (bit % 8);
    }
    let flips = datagram.len() * 8;
    pair.deliver(to, datagram);
    // The other end's answers are delivered before the next bit, also with flipped bits.
    let mut flying = Vec::new();
    pair.turn(to, &mut flying);
    if matches!(pair.fate, Fate::Reverse) {
        flying.reverse();
    }
    let answers = flying.into_iter().map(|(from, datagram)| {
        pair.wire.push((from, datagram.clone()));
        flip_all(pair, from, datagram)
    });
    flips + answers.sum::<usize>()
}

#[test]
fn a_handshake_survives_every_flipped_bit() {
    let identity = Identity::generate().unwrap();
    for fate in [Fate::Arrive, Fate::Reverse] {
        let (mut pair, _) = Pair::new(&identity, pinned(&identity), [&ALL, &ALL]);
        pair.fate = fate;
        let mut flips = 0;
        for _ in 0..40 {
            pair.step(&mut |pair, from, datagram| flips += flip_all(pair, from, datagram));
            if (0..2).all(|end| pair.is_connected(end)) {
                break;
            }
        }
        assert!((0..2).all(|end| pair.is_connected(end)), "{:?}", pair.events);
        let longs = pair.wire.iter().filter(|(_, datagram)| datagram[0] & 0x80 != 0).count();
        assert!(longs >= 4 && flips > 40_000, "{longs} packets, {flips} flips");
    }
}

#[test]
fn a_replayed_handshake_opens_no_session() {
    let identity = Identity::generate().unwrap();
    let (mut pair, _) = Pair::new(&identity, pinned(&identity), [&ALL, &ALL]);
    pair.run(20);
    pair.send(0, &pattern(1, 20_000));
    pair.run(200);
    assert_eq!(pair.received[1].len(), 20_000);
    let capture: Vec<_> = pair.wire.iter().filter(|(from, _)| *from == 0).cloned().collect();
    // A server with the same identity that takes no part in the captured handshake.
    let (header, _) = LongHeader::decode(&capture[0].1).unwrap();
    let config = config(&ALL);
    let ids =
        ClientIds { local: ConnectionId(random_u64()), destination: header.destination, seed: 7 };
    let params = Transport::local_params(&config, ids.local, ids.destination).encode();
    let session = ServerCredentials::new(&identity).session(params).unwrap();
    let mut other = Transport::server(pair.now, config, Box::new(session), address(0), ids);
    let (mut sent, mut given) = (0, 0);
    for round in 0..10 {
        for (_, datagram) in &capture {
            given += datagram.len();
            let datagrams = Datagrams::one(address(0), pair.now, datagram.clone());
            other.handle_datagrams(pair.now, datagrams);
            let mut out = Vec::new();
            while let Some(transmit) = other.poll_transmit(pair.now, &mut out) {
                sent += transmit.len;
            }
            assert_eq!(other.poll_event(), None, "round {round}");
            assert!(other.poll_delivery().is_none());
            assert!(sent <= 3 * given, "{sent} bytes for {given}");
            pair.now += Duration::from_micros(100);
        }
    }
    assert!(other.is_handshaking() && sent > 0);
    // The original server ignores the replayed datagrams as well.
    let before = pair.ends[1].stats();
    for (_, datagram) in &capture {
        pair.deliver(1, datagram.clone());
        assert!(pair.ends[1].poll_delivery().is_none() && pair.ends[1].poll_event().is_none());
    }
    let after = pair.ends[1].stats();
    assert_eq!(after.received.packets, before.received.packets);
    assert_eq!(after.sent.packets, before.sent.packets);
    assert!(after.duplicates > before.duplicates);
}

/// An attacker's action on one datagram of a handshake.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Drop,
    Truncate(usize),
    /// Changes this byte of the TLS message and seals the packet again, if its keys are public.
    Edit(usize),
    /// Changes the source connection id.
    Rename,
    /// Delivers it after the next datagram.
    Delay,
}

/// Opens an Initial packet with the public keys of the id `first`, applies `edit`, and seals it
/// again. The two ids are those from which the keys are derived, before and after.
fn reseal(
    datagram: &[u8],
    from: usize,
    ids: [ConnectionId; 2],
    edit: impl FnOnce(&mut LongHeader, &mut Vec<Frame>),
) -> Option<Vec<u8>> {
    let (mut header, len) = LongHeader::decode(datagram).ok()?;
    if header.kind != LongType::Initial {
        return None;
    }
    let keys = |id: ConnectionId, end| {
        let side = [rustls::Side::Client, rustls::Side::Server][end];
        super::super::pair(initial_suite().keys(&id.0.to_le_bytes(), side, Version::V1))
    };
    let (aad, sealed) = datagram.split_at(len);
    let mut body = sealed.to_vec();
    let number = u64::from(header.packet_number);
    let opened = keys(ids[0], 1 - from).open.open(number, aad, &mut body)?;
    let mut reader = Reader::new(&body[..opened]);
    let mut frames: Vec<_> =
        core::iter::from_fn(|| Frame::decode(&mut reader).ok().flatten()).collect();
    edit(&mut header, &mut frames);
    let mut packet = Vec::new();
    header.encode(&mut packet);
    let head = packet.len();
    frames.iter().for_each(|frame| frame.encode(&mut packet));
    packet.resize(packet.len() + 16, 0);
    let (aad, body) = packet.split_at_mut(head);
    keys(ids[1], from).seal.seal(number, aad, body);
    Some(packet)
}

impl Deed {
    /// What of the datagram is delivered, and whether that is after the next one.
    fn done_to(self, datagram: &[u8], first: ConnectionId, from: usize) -> (Option<Vec<u8>>, bool) {
        match self {
            Self::Drop => (None, false),
            Self::Truncate(len) => (Some(datagram[..len.min(datagram.len())].to_vec()), false),
            Self::Delay => (Some(datagram.to_vec()), true),
            Self::Rename => {
                let renamed = reseal(datagram, from, [first; 2], |header, _| header.source.0 ^= 1);
                (renamed, false)
            }
            Self::Edit(at) => {
                let edited = reseal(datagram, from, [first; 2], |_, frames| {
                    for frame in frames {
                        if let Frame::Crypto { data, .. } = frame
                            && let Some(byte) = data.get_mut(at)
                        {
                            *byte ^= 1 << (at % 8);
                        }
                    }
                });
                (edited, false)
            }
        }
    }
}

/// Runs a handshake in which each action is applied to the datagram of its number. True if both
/// ends are connected.
fn tried(identity: &Identity, deeds: &[(usize, Deed)]) -> bool {
    let (mut pair, _) = Pair::new(identity, pinned(identity), [&ALL, &ALL]);
    let (mut number, mut late) = (0, Vec::new());
    let mut first = None;
    for _ in 0..60 {
        pair.step(&mut |pair, from, datagram| {
            let first = *first.get_or_insert_with(|| {
                LongHeader::decode(&datagram).expect("a first packet").0.destination
            });
            let deed = deeds.iter().find(|(at, _)| *at == number).map(|(_, deed)| *deed);
            number += 1;
            let (arrives, is_late) = match deed {
                Some(deed) => deed.done_to(&datagram, first, from),
                None => (Some(datagram), false),
            };
            let Some(arrives) = arrives else { return };
            if is_late {
                late.push((1 - from, arrives));
                return;
            }
            pair.deliver(1 - from, arrives);
            late.drain(..).for_each(|(to, datagram)| pair.deliver(to, datagram));
        });
    }
    let connected = [pair.is_connected(0), pair.is_connected(1)];
    if connected == [true, true] {
        // Both ends have negotiated the same parameters, and the preferred ones.
        for end in &pair.ends {
            assert_eq!(end.stats().cipher, Some(CipherId::Aegis128L), "{deeds:?}");
        }
        pair.send(0, b"up");
        pair.send(1, b"down");
        pair.run(60);
        assert_eq!(pair.received, [b"down".to_vec(), b"up".to_vec()], "{deeds:?}");
    }
    connected == [true, true]
}

#[test]
fn every_edit_of_a_hello_is_detected() {
    let identity = Identity::generate().unwrap();
    assert!(tried(&identity, &[]));
    let (mut pair, _) = Pair::new(&identity, pinned(&identity), [&ALL, &ALL]);
    pair.run(3);
    let first = LongHeader::decode(&pair.wire[0].1).unwrap().0.destination;
    let mut edits = 0;
    for number in 0..pair.wire.len() {
        let (from, datagram) = &pair.wire[number];
        let mut len = 0;
        let _ = reseal(datagram, *from, [first; 2], |_, frames| {
            let crypto = frames.iter().filter_map(|frame| match frame {
                Frame::Crypto { data, .. } => Some(data.len()),
                _ => None,
            });
            len = crypto.max().unwrap_or(0);
        });
        // Every byte outside of key shares and random numbers, and some bytes of these.
        for at in (0..len).filter(|at| *at < 120 || len - at < 400 || at % 16 == 0) {
            edits += 1;
            assert!(!tried(&identity, &[(number, Deed::Edit(at))]), "byte {at} of {number}");
        }
    }
    assert!(edits > 500, "{edits} edits");
}

#[test]
fn dropped_truncated_and_late_datagrams_only_delay_the_handshake() {
    let identity = Identity::generate().unwrap();
    let deeds = [Deed::Drop, Deed::Delay, Deed::Truncate(1199), Deed::Truncate(40)];
    for one in 0..6 {
        for deed in deeds {
            assert!(tried(&identity, &[(one, deed)]), "{deed:?} of {one}");
        }
        for two in 0..one {
            for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 2), (3, 1), (2, 3)] {
                let pair = [(one, deeds[a]), (two, deeds[b])];
                assert!(tried(&identity, &pair), "{pair:?}");
            }
        }
    }
}

#[test]
fn an_id_changed_in_transit_is_detected() {
    let identity = Identity::generate().unwrap();
    // Both packets of the client hello, or the server's answer under public keys.
    assert!(!tried(&identity, &[(0, Deed::Rename), (1, Deed::Rename)]));
    assert!(!tried(&identity, &[(2, Deed::Rename)]));
}

/// The attacker gives the server another initial id, with packets under the keys of that id, and
/// reverts the change in the answers.
#[test]
fn a_first_id_that_was_changed_on_the_way_is_noticed() {
    let identity = Identity::generate().unwrap();
    let (mut pair, _) = Pair::new(&identity, pinned(&identity), [&ALL, &ALL]);
    // The server was created with the other id.
    let first = pair.ends[0].initial_destination().expect("it has begun");
    let other = ConnectionId(random_u64());
    let config = config(&ALL);
    let ids = ClientIds { local: ConnectionId(random_u64()), destination: other, seed: 7 };
    let params = Transport::local_params(&config, ids.local, other).encode();
    let session = ServerCredentials::new(&identity).session(params).unwrap();
    pair.ends[1] = Transport::server(pair.now, config, Box::new(session), address(0), ids);
    for _ in 0..60 {
        pair.step(&mut |pair, from, datagram| {
            let ids = if from == 0 { [first, other] } else { [other, first] };
            let changed = reseal(&datagram, from, ids, |header, _| {
                if header.destination == first {
                    header.destination = other;
                }
            });
            pair.deliver(1 - from, changed.unwrap_or(datagram));
        });
    }
    let Some(CloseReason::Handshake(text)) = pair.closed(0) else {
        panic!("{:?}", pair.events[0]);
    };
    assert!(text.contains("another connection"), "{text}");
}
