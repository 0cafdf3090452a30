//! What is lost, when it is asked for and when it is sent again.

use super::{HALF, alone, frames, met, placed};
use hikyaku_proto::{Config, Side, StreamKind};
use hikyaku_sim::{Duo, Words};
use hikyaku_units::Instant;
use hikyaku_wire::Frame;
use std::time::Duration;

/// A client with so many bytes to send, over a path of 100 ms.
fn sending(bytes: usize) -> Duo {
    let mut duo = met();
    let id = duo.end(Side::Client).open(StreamKind::Ordered).expect("a stream");
    duo.end(Side::Client).write(id, vec![7; bytes].into());
    duo
}

fn is_question(packet: &[u8]) -> bool {
    frames(packet).contains(&Frame::Ping)
}

/// When the client asks.
fn questions(said: &[(Instant, Vec<u8>)]) -> Vec<Instant> {
    said.iter().filter(|(_, packet)| is_question(packet)).map(|(at, _)| *at).collect()
}

// spec: loss-3
#[test]
fn a_sender_asks_a_reorder_window_after_its_last_packet_and_then_ever_more_seldom() {
    let mut duo = sending(1000);
    let begin = duo.now;
    let until = begin + Duration::from_millis(1000);
    let said = alone(&mut duo, Side::Client, until);
    assert!(said.iter().any(|(at, packet)| *at == begin && placed(packet).is_some()));
    let asked = questions(&said);
    let first = asked[0] - begin;
    // An eighth of 100 ms.
    let expected = Duration::from_micros(12_500)..Duration::from_millis(20);
    assert!(expected.contains(&first), "{first:?}");
    let waits: Vec<_> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.len() >= 2, "{waits:?}");
    assert!(waits[1] >= waits[0] * 3 / 2, "{waits:?}");
}

// spec: loss-3
#[test]
fn what_is_heard_after_a_silence_makes_questions_quick_again() {
    let mut duo = Duo::apart(&Config::default(), &Config::default());
    while duo.end(Side::Server).is_handshaking() {
        duo.exchange(HALF);
    }
    // Nothing that the server says is ever heard of; it is not yet an outage (loss-5).
    let silent = duo.now + Duration::from_millis(850);
    let asked = questions(&alone(&mut duo, Side::Server, silent));
    assert!(asked.len() < 5, "{asked:?}");
    duo.give(Side::Server, [Words::frames(&[Frame::Padding(9)]).packet(Side::Client, 5000, 0)]);
    let until = duo.now + Duration::from_millis(30);
    assert_eq!(questions(&alone(&mut duo, Side::Server, until)).len(), 1);
}

// spec: loss-5
#[test]
fn a_path_that_is_silent_gets_no_data_but_four_questions_a_second() {
    let mut duo = sending(50_000_000);
    (0..30).for_each(|_| duo.exchange(HALF));
    let silent = duo.now;
    let said = alone(&mut duo, Side::Client, silent + Duration::from_secs(10));
    // A second, and what was under way when the last answer came.
    let outage = silent + Duration::from_millis(1150);
    let data = said.iter().filter(|(at, packet)| *at > outage && placed(packet).is_some());
    assert_eq!(data.count(), 0);
    let asked = questions(&said);
    let later: Vec<_> = asked.iter().filter(|at| **at > outage).collect();
    assert!((34..=37).contains(&later.len()), "{} in 8.85 s", later.len());
    assert_eq!(duo.end(Side::Client).stats().outages, 1);
    // It answers, and everything goes on.
    (0..10).for_each(|_| duo.exchange(HALF));
    let packets = duo.take(Side::Client);
    duo.exchange(HALF);
    let again = duo.take(Side::Client);
    assert!(packets.iter().chain(&again).any(|packet| placed(packet).is_some()));
}

// spec: loss-4
#[test]
fn what_is_lost_goes_before_what_is_new() {
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
