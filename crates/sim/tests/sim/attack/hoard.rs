//! Floods: a peer with valid keys that tries to make this end hold more and more.

use hikyaku_proto::{
    CloseReason, Config, Datagrams, Event, Home, Side, StreamId, StreamKind, code,
};
use hikyaku_sim::{Duo, Mark, Words, address};
use hikyaku_units::DataSize;
use hikyaku_wire::{Frame, Trailer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const HALF: Duration = Duration::from_millis(20);
/// A packet number far from those that the client itself has used.
const FIRST: u64 = 5000;

/// Two connected ends. The server's receive window is `window`.
fn met(window: u64) -> Duo {
    let size = DataSize::from_bytes(window);
    let server = Config { initial_window: size, receive_window: size, ..Config::default() };
    let mut duo = Duo::met(&Config::default(), &server, HALF);
    duo.events(Side::Server);
    duo
}

fn ordered(index: u32) -> StreamId {
    StreamId::new(index, StreamKind::Ordered, false)
}

/// Why the server closed the connection, if it has.
fn refusal(events: &[Event]) -> Option<&str> {
    events.iter().find_map(|event| match event {
        Event::Closed(CloseReason::Violation(text)) => Some(text.as_str()),
        _ => None,
    })
}

/// The client sends the given frames again and again and acknowledges nothing. Returns the maximum
/// number of frames that the server held, and why it closed the connection.
fn unacknowledged(words: impl Fn(u64) -> Vec<Frame>) -> (usize, Option<String>) {
    let mut duo = met(1 << 20);
    let mut most = 0;
    for number in 0..300_000 {
        let packet = Words::frames(&words(number)).packet(Side::Client, FIRST + number, 0);
        duo.give(Side::Server, [packet]);
        duo.take(Side::Server);
        most = most.max(duo.end(Side::Server).stats().holdings.frames);
        if let Some(why) = refusal(&duo.events(Side::Server)) {
            return (most, Some(why.to_owned()));
        }
    }
    (most, None)
}

// spec: ack-8
#[test]
fn who_acknowledges_no_answer_is_not_answered_for_ever() {
    let stopped = |number: u64| {
        let ids = (0..50).map(|at| ordered((number * 50 + at) as u32));
        // Both halves of each stream end, so that the next one may be opened.
        ids.flat_map(|stream| {
            [Frame::Stop { stream, code: 0 }, Frame::Reset { stream, code: 0, size: 0 }]
        })
        .collect()
    };
    let challenged = |number: u64| vec![Frame::PathChallenge(number)];
    type Named<'a> = (&'static str, &'a dyn Fn(u64) -> Vec<Frame>);
    let cases: [Named; 2] = [("stops", &stopped), ("challenges", &challenged)];
    for (name, words) in cases {
        let (most, why) = unacknowledged(words);
        println!("{name}: {most} frames");
        assert_eq!(why.as_deref(), Some("acknowledges nothing of what it asks for"), "{name}");
        assert!(most < (1 << 18) + 200, "{name}: {most} frames held");
    }
}

#[test]
fn a_closed_end_queues_no_answers() {
    let mut duo = met(1 << 20);
    duo.end(Side::Server).close(code::DONE, "");
    for number in 0..1000 {
        let stops: Vec<_> = (0..100)
            .map(|at| Frame::Stop { stream: ordered(number * 100 + at), code: 0 })
            .take(if number < 10 { 100 } else { 0 })
            .chain([Frame::PathChallenge(u64::from(number))])
            .collect();
        let packet = Words::frames(&stops).packet(Side::Client, FIRST + u64::from(number), 0);
        duo.give(Side::Server, [packet]);
        assert_eq!(duo.end(Side::Server).stats().holdings.frames, 0, "after {number}");
    }
}

// spec: stream-1
#[test]
fn a_stream_of_which_one_half_is_left_counts() {
    let mut duo = met(1 << 20);
    let mut opened = 0;
    let mut why = None;
    for index in 0..10_000 {
        let reset = Frame::Reset { stream: ordered(index), code: 0, size: 0 };
        let packet = Words::frames(&[reset]).packet(Side::Client, FIRST + u64::from(index), 0);
        duo.give(Side::Server, [packet]);
        duo.take(Side::Server);
        let events = duo.events(Side::Server);
        opened += events.iter().filter(|event| matches!(event, Event::Opened(_))).count();
        why = refusal(&events).map(str::to_owned);
        if why.is_some() {
            break;
        }
    }
    assert_eq!((opened, why.as_deref()), (1024, Some("more streams than allowed")));
    // A client that ends its half may open the next stream.
    let mut duo = met(1 << 20);
    for index in 0..10_000 {
        let reset = Frame::Reset { stream: ordered(index), code: 0, size: 0 };
        let packet = Words::frames(&[reset]).packet(Side::Client, FIRST + u64::from(index), 0);
        duo.give(Side::Server, [packet]);
        duo.end(Side::Server).reset(ordered(index), 0);
        assert_eq!(refusal(&duo.events(Side::Server)), None, "stream {index}");
    }
}

/// The client sends single bytes with a gap before each, on several streams of a kind. Returns the
/// number of pieces that the server held, and why it closed the connection.
fn separated_bytes(kind: StreamKind, streams: u32) -> (usize, Option<String>) {
    let mut duo = met(1 << 20);
    let mut most = 0;
    for number in 0..200_000_u64 {
        let stream = StreamId::new(number as u32 % streams, kind, false);
        let offset = 1 + number / u64::from(streams) * 2;
        let words = Words::Data(Trailer { stream: stream.0, offset }, vec![1]);
        duo.give(Side::Server, [words.packet(Side::Client, FIRST + number, 0)]);
        while let Some((id, delivery)) = duo.end(Side::Server).poll_delivery() {
            duo.end(Side::Server).consumed(id, delivery.run.len() as u64);
        }
        if number % 100 == 0 {
            most = most.max(duo.end(Side::Server).stats().holdings.pieces);
        }
        if let Some(why) = refusal(&duo.events(Side::Server)) {
            return (most, Some(why.to_owned()));
        }
    }
    (most, None)
}

#[test]
fn streams_in_ever_more_pieces_end_the_connection() {
    for kind in [StreamKind::Ordered, StreamKind::Object] {
        for streams in [1, 1000] {
            let (most, why) = separated_bytes(kind, streams);
            println!("{kind:?}, {streams} streams: {most} pieces");
            assert_eq!(why.as_deref(), Some("streams in too many pieces"), "{kind:?}, {streams}");
            assert!(most <= (1 << 16) + (1 << 20) / 512, "{most}");
        }
    }
}

/// Counts the returned buffers.
#[derive(Default)]
struct Returned(AtomicUsize);

impl Home for Returned {
    fn give_back(&self, _: Vec<u8>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// How many of ten full buffers are returned while the application reads nothing. Each buffer has
/// forty packets at the offsets given by `offset`.
fn free(offset: impl Fn(u64, u64) -> u64) -> usize {
    let mut duo = met(64 << 20);
    let home = Arc::new(Returned::default());
    for buffer in 0..10 {
        let packets = (0..40).map(|packet| {
            let offset = offset(buffer, packet);
            let words = Words::Data(Trailer { stream: ordered(0).0, offset }, vec![1; 1400]);
            words.packet(Side::Client, FIRST + buffer * 40 + packet, 0)
        });
        let packets: Vec<_> = packets.collect();
        let (stride, bytes) = (packets[0].len(), packets.concat());
        let batch = Datagrams {
            stride,
            home: Some(home.clone()),
            ..Datagrams::one(address(Side::Client), duo.now, bytes)
        };
        let now = duo.now;
        let unused = duo.end(Side::Server).handle_datagrams(now, batch);
        assert!(unused.is_none(), "there is something new in it");
    }
    home.0.load(Ordering::Relaxed)
}

#[test]
fn a_buffer_full_of_what_has_come_is_not_kept_for_the_rest() {
    let next = |buffer: u64, packet: u64| (buffer * 40 + packet) * 1400;
    assert_eq!(free(next), 0, "each is full of what is new");
    assert_eq!(free(|buffer, _| buffer * 1400), 10, "forty times the same");
    // Each packet has one new byte.
    assert_eq!(free(|buffer, packet| buffer * 40 + packet), 10, "a byte more each");
}

#[test]
fn repeated_frames_do_not_queue_a_stream_again() {
    let mut duo = met(1 << 20);
    for number in 0..20_000_u64 {
        let stream = ordered(number as u32 % 2).0;
        let words = match number % 4 {
            0 | 1 => Words::Data(Trailer { stream, offset: 0 }, vec![1; 10]),
            _ => Words::frames(&[Frame::Fin { stream: StreamId(stream), size: 20 }]),
        };
        duo.give_many(
            Side::Server,
            words.packet(Side::Client, FIRST + number, 0),
            2000,
            Mark::None,
        );
    }
    assert_eq!(duo.end(Side::Server).stats().holdings.turns, 2);
    let mut got = 0;
    while let Some((_, delivery)) = duo.end(Side::Server).poll_delivery() {
        got += delivery.run.len();
    }
    assert_eq!((got, refusal(&duo.events(Side::Server))), (20, None));
}

#[test]
fn packets_before_their_keys_are_stored_up_to_the_size_of_a_train() {
    let mut duo = Duo::apart(&Config::default(), &Config::default());
    for number in 0..1000 {
        let words = Words::Data(Trailer { stream: 0, offset: number * 10 }, vec![1; 10]);
        duo.give(Side::Server, [words.packet(Side::Client, FIRST + number, 0)]);
    }
    duo.meet(HALF);
    let mut got = 0;
    while let Some((_, delivery)) = duo.end(Side::Server).poll_delivery() {
        got += delivery.run.len();
    }
    assert_eq!(got, 640);
}
