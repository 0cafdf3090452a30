//! Packet numbers, keys and acknowledgements.

use super::{HALF, frames, met, placed, run_alone, short};
use hikyaku_proto::{CloseReason, Config, Event, KeyPair, Side, StreamId, StreamKind};
use hikyaku_sim::{Duo, SimSession, Words, other};
use hikyaku_wire::{Ack, Block, Frame, PacketKind, SHORT_HEADER_LEN, TAG_LEN, Trailer};
use std::collections::BTreeSet;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(2);

/// Two ends, of which the client has `bytes` bytes to send.
fn sending(bytes: usize, half: Duration) -> (Duo, StreamId) {
    let mut duo = Duo::met(&Config::default(), &Config::default(), half);
    let id = duo.end(Side::Client).open(StreamKind::Ordered).expect("a stream");
    duo.end(Side::Client).write(id, vec![7; bytes].into());
    duo.end(Side::Client).finish(id);
    (duo, id)
}

// spec: pn-1
#[test]
fn no_packet_number_is_used_twice_under_loss() {
    let (mut duo, _) = sending(2_000_000, SHORT);
    let mut seen = [BTreeSet::new(), BTreeSet::new()];
    for _ in 0..2000 {
        for (from, seen) in [Side::Client, Side::Server].into_iter().zip(&mut seen) {
            for packet in duo.take(from) {
                let Some(header) = short(&packet) else { continue };
                assert!(seen.insert(header.packet_number), "{from:?}: {}", header.packet_number);
                if header.packet_number % 5 != 3 {
                    duo.give(other(from), [packet]);
                }
            }
            duo.now += SHORT;
        }
    }
    let stats = duo.end(Side::Client).stats();
    assert!(stats.lost_packets > 100 && duo.events(Side::Server).len() >= 2, "{stats:?}");
}

// spec: pn-2
#[test]
fn a_duplicated_packet_is_accepted_once() {
    let (mut duo, _) = sending(300_000, SHORT);
    let (mut got, mut all) = (0, Vec::new());
    for _ in 0..200 {
        let packets = duo.take(Side::Client);
        all.extend(packets.clone());
        duo.give(Side::Server, packets);
        let before = duo.end(Side::Server).stats();
        duo.give(Side::Server, all.clone());
        let after = duo.end(Side::Server).stats();
        assert_eq!(before.received.packets, after.received.packets);
        assert_eq!(before.received_payload, after.received_payload);
        while let Some((_, delivery)) = duo.end(Side::Server).poll_delivery() {
            got += delivery.run.len();
        }
        duo.now += SHORT;
        let answers = duo.take(Side::Server);
        duo.give(Side::Client, answers);
        duo.now += SHORT;
    }
    assert_eq!(got, 300_000);
}

/// Copies of the packet with one flipped bit each: all bits of the header, some of the rest.
fn damaged(packet: &[u8], from: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
    let len = packet.len() * 8;
    (from..len).filter(|bit| *bit < 8 * SHORT_HEADER_LEN || bit % 409 == 0).map(|bit| {
        let mut bad = packet.to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        bad
    })
}

// spec: auth-1
#[test]
fn packets_that_fail_authentication_change_nothing() {
    let mut duos = [sending(40_000, SHORT).0, sending(40_000, SHORT).0];
    let mut forgeries = 0;
    for _ in 0..60 {
        for from in [Side::Client, Side::Server] {
            let [honest, harmed] = &mut duos;
            let (packets, same) = (honest.take(from), harmed.take(from));
            assert_eq!(packets, same, "the other end says the same");
            for packet in &packets {
                let bad: Vec<_> = damaged(packet, 0).chain([packet[..20].to_vec()]).collect();
                forgeries += bad.len();
                harmed.give(other(from), bad);
            }
            for duo in &mut duos {
                duo.give(other(from), packets.clone());
                duo.now += SHORT;
            }
            let [honest, harmed] = &mut duos;
            for side in [Side::Client, Side::Server] {
                let timers = [&mut *honest, &mut *harmed].map(|duo| duo.end(side).poll_timeout());
                assert_eq!(timers[0], timers[1]);
                let [a, mut b] = [&mut *honest, harmed].map(|duo| duo.end(side).stats());
                // All statistics but the counters of packets that failed authentication and of
                // duplicates.
                (b.undecryptable, b.duplicates) = (a.undecryptable, a.duplicates);
                assert_eq!(format!("{a:?}"), format!("{b:?}"));
                assert_eq!(honest.events(side), harmed.events(side));
            }
        }
    }
    assert!(forgeries > 5000, "{forgeries}");
}

// spec: auth-1
#[test]
fn packets_that_fail_authentication_do_not_reset_the_idle_timeout() {
    for (side, kind) in [(Side::Client, 0x81), (Side::Client, 0x80), (Side::Server, 0x81)] {
        let mut duo = Duo::apart(&Config::default(), &Config::default());
        // Until the client's last flight, which is the last that arrives.
        while duo.end(Side::Client).is_handshaking() {
            duo.exchange(HALF);
        }
        let last = duo.take(Side::Client);
        duo.give(Side::Server, last);
        let begin = duo.now;
        let mut closed = None;
        for second in 0..60 {
            let mut noise = vec![0x5a; 300];
            noise[..4].copy_from_slice(&[kind, 0, 0, 0]);
            noise[28..30].fill(0);
            duo.give(side, [noise]);
            run_alone(&mut duo, side, begin + Duration::from_secs(second));
            let events = duo.events(side);
            if events.iter().any(|event| matches!(event, Event::Closed(_))) {
                closed.get_or_insert(second);
            }
        }
        assert!(closed.is_some_and(|second| second <= 31), "{side:?} {kind:x}: {closed:?}");
    }
}

/// A packet of the client with this header, sealed with valid keys.
fn sealed(head: [u8; SHORT_HEADER_LEN]) -> Vec<u8> {
    let mut packet = head.to_vec();
    Frame::Ping.encode(&mut packet);
    packet.resize(packet.len() + TAG_LEN, 0);
    let (head, body) = packet.split_at_mut(SHORT_HEADER_LEN);
    let KeyPair { seal, .. } = SimSession::data_pair(Side::Client, 0);
    seal.seal(1000, head, body);
    packet
}

// spec: head-1
#[test]
fn a_packet_with_other_flags_or_another_id_is_dropped() {
    let good = Words::frames(&[Frame::Ping]).packet(Side::Client, 1000, 0);
    let head: [u8; SHORT_HEADER_LEN] = *good.first_chunk().expect("a header");
    let taken = |head: [u8; SHORT_HEADER_LEN]| {
        let mut duo = met();
        let before = duo.end(Side::Server).stats().received.packets;
        duo.give(Side::Server, [sealed(head)]);
        duo.end(Side::Server).stats().received.packets - before
    };
    assert_eq!(taken(head), 1, "it would be taken");
    for bit in 3..16 {
        let mut other = head;
        other[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(taken(other), 0, "bit {bit}");
    }
}

/// The client's events after an ACK under the server's keys.
fn events_after_ack(duo: &mut Duo, ack: Ack) -> Vec<Event> {
    duo.events(Side::Client);
    let lie = Words::frames(&[Frame::Ack(ack)]).packet(Side::Server, 1 << 20, 0);
    duo.give(Side::Client, [lie]);
    duo.events(Side::Client)
}

fn is_forgery(events: &[Event]) -> bool {
    matches!(events, [.., Event::Closed(CloseReason::Violation(text))] if text.contains("never sent"))
}

// spec: ack-6
#[test]
fn an_acknowledgement_of_an_unsent_packet_ends_the_connection() {
    let mut duo = met();
    let block = Block { first: 5000, runs: vec![1] };
    let events =
        events_after_ack(&mut duo, Ack { largest: 5000, blocks: vec![block], ..Ack::default() });
    assert!(is_forgery(&events), "{events:?}");
}

// spec: ack-6
#[test]
fn an_acknowledgement_of_a_skipped_number_ends_the_connection() {
    let (mut duo, _) = sending(20_000_000, SHORT);
    let mut numbers = BTreeSet::new();
    for _ in 0..4000 {
        let packets = duo.take(Side::Client);
        numbers.extend(packets.iter().filter_map(|p| short(p)).map(|h| h.packet_number));
        duo.now += SHORT;
        duo.give(Side::Server, packets);
        while let Some((id, delivery)) = duo.end(Side::Server).poll_delivery() {
            duo.end(Side::Server).consumed(id, delivery.run.len() as u64);
        }
        let answers = duo.take(Side::Server);
        duo.now += SHORT;
        duo.give(Side::Client, answers);
        let end = numbers.last().copied().unwrap_or_default();
        if let Some(trap) = (*numbers.first().unwrap_or(&0)..end).find(|n| !numbers.contains(n)) {
            let block = Block { first: trap, runs: vec![1] };
            let largest = end;
            let events =
                events_after_ack(&mut duo, Ack { largest, blocks: vec![block], ..Ack::default() });
            assert!(is_forgery(&events), "{trap}: {events:?}");
            return;
        }
    }
    panic!("{} packets, and none left out", numbers.len());
}

// spec: ack-5
#[test]
fn data_and_some_frames_are_ack_eliciting() {
    let wants = |words: Words| {
        let mut duo = met();
        let quiet = |duo: &mut Duo| {
            duo.end(Side::Server).poll_timeout().is_some_and(|(_, why)| why != "acknowledgement")
        };
        assert!(quiet(&mut duo));
        duo.give(Side::Server, [words.packet(Side::Client, 1000, 0)]);
        !quiet(&mut duo)
    };
    let floor = Frame::Floor { floor: 0, rtt_micros: 100_000 };
    let silent = [Frame::Padding(9), Frame::Ack(Ack::default()), floor];
    let more = Frame::MaxStreams { kind: StreamKind::Object, count: 5 };
    let asking = [Frame::Ping, Frame::MaxData(1 << 30), more, Frame::PathChallenge(4)];
    assert!(silent.iter().all(|frame| !wants(Words::frames(std::slice::from_ref(frame)))));
    assert!(!wants(Words::frames(&silent)));
    assert!(asking.iter().all(|frame| wants(Words::frames(std::slice::from_ref(frame)))));
    assert!(wants(Words::Data(Trailer { stream: 0, offset: 0 }, vec![1; 10])));
}

// spec: key-3
#[test]
fn the_previous_key_is_discarded_after_three_round_trips() {
    let mut duo = met();
    let words = Words::frames(&[Frame::Ping]);
    duo.give(Side::Server, [words.packet(Side::Client, 2000, 1)]);
    assert_eq!(duo.end(Side::Server).stats().key_updates, 1);
    let moved = duo.now;
    for (number, after, is_taken) in [(1000, 10, true), (1001, 380, true), (1002, 420, false)] {
        run_alone(&mut duo, Side::Server, moved + Duration::from_millis(after));
        let before = duo.end(Side::Server).stats().received.packets;
        duo.give(Side::Server, [words.packet(Side::Client, number, 0)]);
        let taken = duo.end(Side::Server).stats().received.packets - before;
        assert_eq!(taken, u64::from(is_taken), "after {after} ms");
    }
}

// spec: ack-4
#[test]
fn a_probe_is_answered_with_everything_above_the_floor() {
    let mut duo = met();
    duo.take(Side::Server);
    // Every second packet arrives, so that there are many ranges to acknowledge.
    for number in (100..20_100).step_by(2) {
        let words = Words::Data(Trailer { stream: 0, offset: number * 10 }, vec![1; 10]);
        duo.give(Side::Server, [words.packet(Side::Client, number, 0)]);
        duo.now += Duration::from_micros(10);
    }
    (0..8).for_each(|_| {
        duo.take(Side::Server);
        duo.now += HALF;
    });
    let floor = 5000;
    let ask = [Frame::Floor { floor, rtt_micros: 100_000 }, Frame::Ping];
    duo.give(Side::Server, [Words::frames(&ask).packet(Side::Client, 20_100, 0)]);
    let answers = duo.take(Side::Server);
    let mut covered = BTreeSet::new();
    for frame in answers.iter().flat_map(|packet| frames(packet)) {
        let Frame::Ack(ack) = frame else { continue };
        covered.extend(ack.blocks.iter().flat_map(|block| block.first..block.end()));
    }
    assert!((floor..=20_100).all(|number| covered.contains(&number)), "{}", covered.len());
}

// spec: mtu-1
#[test]
fn a_datagram_size_is_used_after_its_probe_was_acknowledged() {
    for fits in [1300, 1500] {
        let mut duo = Duo::apart(&Config::default(), &Config::default());
        let (mut stream, mut largest, mut acked, mut probed) = (None, 0, 1200, 1200);
        for _ in 0..600 {
            if let Some(id) = stream {
                // The client always has data to send.
                duo.end(Side::Client).write(id, vec![7; 20_000].into());
            }
            if stream.is_none() && !duo.end(Side::Client).is_handshaking() {
                let id = duo.end(Side::Client).open(StreamKind::Ordered).expect("a stream");
                duo.end(Side::Client).write(id, vec![7; 40_000].into());
                stream = Some(id);
            }
            for packet in duo.take(Side::Client) {
                if placed(&packet).is_some() {
                    largest = largest.max(packet.len());
                    assert!(packet.len() <= acked, "{} before its probe", packet.len());
                } else if packet.len() > 1200 && packet.len() <= fits {
                    assert_eq!(short(&packet).map(|h| h.kind), Some(PacketKind::Control));
                    probed = probed.max(packet.len());
                }
                if packet.len() <= fits {
                    duo.give(Side::Server, [packet]);
                }
            }
            while let Some((id, delivery)) = duo.end(Side::Server).poll_delivery() {
                duo.end(Side::Server).consumed(id, delivery.run.len() as u64);
            }
            duo.now += SHORT;
            let answers = duo.take(Side::Server);
            duo.now += SHORT;
            // Probes acknowledged by these packets may be used as the packet size from now on.
            acked = probed;
            duo.give(Side::Client, answers);
        }
        assert_eq!(largest, if fits == 1300 { 1252 } else { 1472 });
    }
}
