//! Loss recovery: probes and retransmissions.

use super::{HALF, frames, met, placed, run_alone};
use hikyaku_proto::{Config, Side, StreamKind};
use hikyaku_sim::{Duo, Words};
use hikyaku_units::{Instant, Rate};
use hikyaku_wire::Frame;
use std::time::Duration;

/// A client with `bytes` bytes to send, over a path with a round-trip time of 100 ms.
fn sending(bytes: usize) -> Duo {
    let mut duo = met();
    let id = duo.end(Side::Client).open(StreamKind::Ordered).expect("a stream");
    duo.end(Side::Client).write(id, vec![7; bytes].into());
    duo
}

fn is_probe(packet: &[u8]) -> bool {
    frames(packet).contains(&Frame::Ping)
}

/// When the client sends probes.
fn probes(said: &[(Instant, Vec<u8>)]) -> Vec<Instant> {
    said.iter().filter(|(_, packet)| is_probe(packet)).map(|(at, _)| *at).collect()
}

// spec: loss-3
#[test]
fn a_sender_probes_a_reordering_window_after_its_last_packet_and_then_less_often() {
    let mut duo = sending(1000);
    let begin = duo.now;
    let until = begin + Duration::from_millis(1000);
    let said = run_alone(&mut duo, Side::Client, until);
    assert!(said.iter().any(|(at, packet)| *at == begin && placed(packet).is_some()));
    let asked = probes(&said);
    let first = asked[0] - begin;
    // The reordering window is an eighth of 100 ms.
    let expected = Duration::from_micros(12_500)..Duration::from_millis(20);
    assert!(expected.contains(&first), "{first:?}");
    let waits: Vec<_> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.len() >= 2, "{waits:?}");
    assert!(waits[1] >= waits[0] * 3 / 2, "{waits:?}");
}

/// The packets of a client that sends data each 1.2 ms, for 100 ms, over a path of 0.2 ms to a server that answers.
fn paced(sharers: u32) -> Vec<Vec<u8>> {
    let payload_rate = Some(Rate::from_bits_per_sec(8_000_000));
    let half = Duration::from_micros(100);
    let mut duo = Duo::met(&Config { payload_rate, ..Config::default() }, &Config::default(), half);
    duo.end(Side::Client).set_sharers(sharers.try_into().expect("not zero"));
    let id = duo.end(Side::Client).open(StreamKind::Ordered).expect("a stream");
    duo.end(Side::Client).write(id, vec![7; 1_000_000].into());
    let mut said = Vec::new();
    for _ in 0..1000 {
        let packets = duo.take(Side::Client);
        said.extend(packets.iter().cloned());
        duo.now += half / 2;
        duo.give(Side::Server, packets);
        let answers = duo.take(Side::Server);
        duo.now += half / 2;
        duo.give(Side::Client, answers);
    }
    said
}

// spec: loss-3
#[test]
fn a_sender_with_others_beside_it_asks_nothing_while_data_wait_for_their_pacing() {
    let said = paced(2);
    let data = said.iter().filter(|packet| placed(packet).is_some()).count();
    let questions = said.iter().filter(|packet| is_probe(packet)).count();
    assert!(data > 60, "{data} packets");
    assert!(questions < data / 10, "{questions} questions beside {data} packets");
}

// spec: ack-3
#[test]
fn a_sender_with_others_beside_it_asks_for_fewer_reports_on_a_short_path() {
    let told = |sharers: u32| {
        let said = paced(sharers);
        let mut floors =
            said.iter().flat_map(|packet| frames(packet)).filter_map(|frame| match frame {
                Frame::Floor { rtt_micros, .. } => Some(rtt_micros),
                _ => None,
            });
        floors.next().expect("a floor")
    };
    assert!(told(1) < 1_000);
    assert_eq!(told(2), 4_000);
    assert_eq!(told(8), 64_000);
    assert_eq!(told(100), 320_000);
}

/// Whether a packet has a floor and no question.
fn is_floor(packet: &[u8]) -> bool {
    let frames = frames(packet);
    frames.iter().any(|frame| matches!(frame, Frame::Floor { .. })) && !is_probe(packet)
}

// spec: ack-3
#[test]
fn a_sender_without_answers_tells_its_floor_once() {
    let half = Duration::from_micros(100);
    let mut duo = Duo::met(&Config::default(), &Config::default(), half);
    duo.end(Side::Client).set_sharers(8.try_into().expect("not zero"));
    (0..100).for_each(|_| duo.exchange(half));
    let id = duo.end(Side::Client).open(StreamKind::Ordered).expect("a stream");
    duo.end(Side::Client).write(id, vec![7; 1000].into());
    let mut told = 0;
    for _ in 0..300 {
        let said = duo.take(Side::Client);
        told += said.iter().filter(|packet| is_floor(packet)).count();
        duo.now += Duration::from_millis(1);
    }
    assert!(told <= 2, "{told} floors");
}

// spec: loss-3
#[test]
fn a_packet_after_a_silence_resets_the_probe_timeout() {
    let mut duo = Duo::apart(&Config::default(), &Config::default());
    while duo.end(Side::Server).is_handshaking() {
        duo.exchange(HALF);
    }
    // All packets of the server are lost. The time is too short for an outage (loss-5).
    let silent = duo.now + Duration::from_millis(850);
    let asked = probes(&run_alone(&mut duo, Side::Server, silent));
    assert!(asked.len() < 5, "{asked:?}");
    duo.give(Side::Server, [Words::frames(&[Frame::Padding(9)]).packet(Side::Client, 5000, 0)]);
    let until = duo.now + Duration::from_millis(30);
    assert_eq!(probes(&run_alone(&mut duo, Side::Server, until)).len(), 1);
}

// spec: ack-7
#[test]
fn a_repeated_probe_is_answered_with_more_copies() {
    let mut duo = met();
    let mut answers = |pause: u64, number: u64| {
        duo.now += Duration::from_millis(pause);
        let question = Words::frames(&[Frame::Ping]).packet(Side::Client, 1000 + number, 0);
        duo.give(Side::Server, [question]);
        let said = duo.take(Side::Server);
        said.iter().filter(|packet| matches!(frames(packet)[..], [Frame::Ack(_), ..])).count()
    };
    let said: Vec<_> = (0..6).map(|number| answers(300, number)).collect();
    assert_eq!(said, [1, 2, 3, 4, 4, 4]);
    // Keep-alives are probes as well, but not repetitions of one.
    assert_eq!([answers(2000, 6), answers(2000, 7)], [1, 1]);
}

// spec: ack-7
#[test]
fn a_sender_without_packets_in_flight_sends_no_probes() {
    let mut duo = sending(1000);
    (0..20).for_each(|_| duo.exchange(HALF));
    // The next keep-alive is due later.
    let until = duo.now + Duration::from_secs(6);
    assert_eq!(probes(&run_alone(&mut duo, Side::Client, until)), []);
}

// spec: loss-5
#[test]
fn a_path_that_is_silent_gets_no_data_but_questions_and_ever_fewer() {
    let mut duo = sending(50_000_000);
    (0..30).for_each(|_| duo.exchange(HALF));
    let silent = duo.now;
    let said = run_alone(&mut duo, Side::Client, silent + Duration::from_secs(20));
    // One second, and what was in flight when the last answer arrived.
    let outage = silent + Duration::from_millis(1150);
    let data = said.iter().filter(|(at, packet)| *at > outage && placed(packet).is_some());
    assert_eq!(data.count(), 0);
    let asked = probes(&said);
    let later: Vec<_> = asked.iter().filter(|at| **at > outage).collect();
    let pauses: Vec<_> = later.windows(2).map(|pair| *pair[1] - *pair[0]).collect();
    assert!(pauses.is_sorted() && pauses.len() > 24, "{pauses:?}");
    let millis = [pauses[0], pauses[18], pauses[pauses.len() - 1]].map(|pause| pause.as_millis());
    assert_eq!(millis, [250, 500, 1000]);
    assert_eq!(duo.end(Side::Client).stats().outages, 1);
    // The path works again, and the transfer continues.
    (0..10).for_each(|_| duo.exchange(HALF));
    let packets = duo.take(Side::Client);
    duo.exchange(HALF);
    let again = duo.take(Side::Client);
    assert!(packets.iter().chain(&again).any(|packet| placed(packet).is_some()));
}

// spec: loss-4
#[test]
fn retransmissions_precede_new_data() {
    let mut duo = sending(50_000_000);
    let (mut lost, mut highest) = (None, 0);
    for round in 0..400 {
        let packets = duo.take(Side::Client);
        let data: Vec<_> = packets.iter().filter_map(|packet| placed(packet)).collect();
        if let Some(at) = data.iter().position(|(trailer, _)| Some(trailer.offset) == lost) {
            assert_eq!(at, 0, "behind what is new");
            let news = data.iter().filter(|(trailer, _)| trailer.offset > highest);
            assert!(news.count() > 0, "there was something new");
            return;
        }
        highest = data.iter().map(|(trailer, _)| trailer.offset).fold(highest, u64::max);
        duo.now += HALF;
        for packet in packets {
            let offset = placed(&packet).map(|(trailer, _)| trailer.offset);
            if lost.is_none() && round > 20 && offset.is_some() {
                lost = offset;
                continue;
            }
            duo.give(Side::Server, [packet]);
        }
        while let Some((id, delivery)) = duo.end(Side::Server).poll_delivery() {
            duo.end(Side::Server).consumed(id, delivery.run.len() as u64);
        }
        let answers = duo.take(Side::Server);
        duo.now += HALF;
        duo.give(Side::Client, answers);
    }
    panic!("it was never sent again");
}
