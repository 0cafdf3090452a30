//! Flow control of streams, and their end.

use super::{HALF, met, placed};
use hikyaku_proto::{CloseReason, Config, Event, Side, StreamId, StreamKind};
use hikyaku_sim::{Duo, Words};
use hikyaku_units::DataSize;
use hikyaku_wire::Trailer;

/// Two ends. The server's receive window is `bytes`.
fn narrow(bytes: u64) -> Duo {
    let size = DataSize::from_bytes(bytes);
    let server = Config { initial_window: size, receive_window: size, ..Config::default() };
    Duo::met(&Config::default(), &server, HALF)
}

/// The server's events after payload under the client's keys: (stream, offset, bytes) each.
fn events_after_data(mut duo: Duo, parts: &[(u32, u64, usize)]) -> Vec<Event> {
    duo.events(Side::Server);
    for (number, &(stream, offset, len)) in (1000..).zip(parts) {
        let words = Words::Data(Trailer { stream, offset }, vec![1; len]);
        duo.give(Side::Server, [words.packet(Side::Client, number, 0)]);
    }
    duo.events(Side::Server)
}

fn is_refused(events: &[Event], why: &str) -> bool {
    matches!(events, [.., Event::Closed(CloseReason::Violation(text))] if text.contains(why))
}

// spec: flow-1
#[test]
fn exceeding_a_flow_control_limit_ends_the_connection() {
    let all = events_after_data(narrow(100_000), &[(0, 99_000, 1000)]);
    assert!(!is_refused(&all, ""), "{all:?}");
    let one = events_after_data(narrow(100_000), &[(0, 99_001, 1000)]);
    assert!(is_refused(&one, "more stream data than allowed"), "{one:?}");
    let sum =
        events_after_data(narrow(100_000), &[(0, 59_000, 1000), (4, 39_000, 1000), (8, 0, 1)]);
    assert!(is_refused(&sum, "more data than allowed"), "{sum:?}");
}

// spec: flow-1
#[test]
fn a_sender_keeps_each_stream_and_their_sum_below_the_limits() {
    let mut duo = narrow(100_000);
    let kinds = [StreamKind::Ordered, StreamKind::Ordered, StreamKind::Object];
    let ids = kinds.map(|kind| duo.end(Side::Client).open(kind).expect("a stream"));
    for id in ids {
        duo.end(Side::Client).write(id, vec![1; 1_000_000].into());
    }
    let mut ends = std::collections::BTreeMap::new();
    let mut taken = 0;
    for round in 0..60 {
        let packets = duo.take(Side::Client);
        for (trailer, len) in packets.iter().filter_map(|packet| placed(packet)) {
            let end = ends.entry(trailer.stream).or_insert(0);
            *end = (trailer.offset + len).max(*end);
        }
        // The application reads nothing for thirty rounds, then a little.
        assert!(ends.values().sum::<u64>() <= taken + 100_000, "{ends:?}, {taken} taken");
        duo.now += HALF;
        duo.give(Side::Server, packets);
        if round > 30
            && let Some((id, delivery)) = duo.end(Side::Server).poll_delivery()
        {
            taken += delivery.run.len() as u64;
            duo.end(Side::Server).consumed(id, delivery.run.len() as u64);
        }
        let answers = duo.take(Side::Server);
        duo.now += HALF;
        duo.give(Side::Client, answers);
    }
    assert!(ends.values().sum::<u64>() > 100_000, "it goes on when there is room: {ends:?}");
}

// spec: stream-1
#[test]
fn opening_a_stream_opens_all_of_its_kind_below_it() {
    // Bit 0 is set for the server's streams, bit 1 for objects. This is the client's third object.
    let events = events_after_data(met(), &[(0b1010, 0, 10)]);
    let opened: Vec<_> = [0b0010, 0b0110, 0b1010].map(|id| Event::Opened(StreamId(id))).into();
    assert_eq!(events, opened);
    let own = events_after_data(met(), &[(0b0011, 0, 10)]);
    assert!(is_refused(&own, "this side sends"), "{own:?}");
    let unopened = events_after_data(met(), &[(0b0001, 0, 10)]);
    assert!(is_refused(&unopened, "never opened"), "{unopened:?}");
    let mut duo = met();
    let kinds = [StreamKind::Ordered, StreamKind::Object];
    let ids = kinds.map(|kind| duo.end(Side::Server).open(kind).expect("a stream"));
    assert_eq!(ids, [StreamId(0b01), StreamId(0b11)]);
}

// spec: stream-2
#[test]
fn the_end_of_a_stream_is_reported_after_every_byte() {
    for kind in [StreamKind::Ordered, StreamKind::Object] {
        let mut duo = met();
        let id = duo.end(Side::Client).open(kind).expect("a stream");
        duo.end(Side::Client).write(id, vec![1; 60_000].into());
        duo.end(Side::Client).finish(id);
        let (mut got, mut round, mut is_over) = (0, 0, false);
        while !is_over {
            round += 1;
            assert!(round < 300, "it never ends");
            let packets = duo.take(Side::Client);
            duo.now += HALF;
            // The first transmission of everything but the FIN is lost.
            let is_part = |packet: &Vec<u8>| placed(packet).is_some();
            duo.give(
                Side::Server,
                packets.into_iter().filter(|packet| round > 2 || !is_part(packet)),
            );
            while let Some((id, delivery)) = duo.end(Side::Server).poll_delivery() {
                got += delivery.run.len();
                duo.end(Side::Server).consumed(id, delivery.run.len() as u64);
            }
            is_over = duo.events(Side::Server).contains(&Event::Ended(id));
            assert_eq!(is_over, got == 60_000, "{got} bytes");
            let answers = duo.take(Side::Server);
            duo.now += HALF;
            duo.give(Side::Client, answers);
        }
        assert!(round > 2);
    }
}

// spec: stream-2
#[test]
fn closing_a_connection_reports_no_end_of_a_stream() {
    let mut duo = met();
    let id = duo.end(Side::Client).open(StreamKind::Ordered).expect("a stream");
    duo.end(Side::Client).write(id, vec![1; 10_000].into());
    duo.exchange(HALF);
    duo.end(Side::Client).close(0x100, "");
    (0..5).for_each(|_| duo.exchange(HALF));
    while duo.end(Side::Server).poll_delivery().is_some() {}
    let events = duo.events(Side::Server);
    assert!(events.iter().any(|event| matches!(event, Event::Closed(_))), "{events:?}");
    assert!(!events.contains(&Event::Ended(id)));
}

// spec: stream-1
#[test]
fn more_streams_of_a_kind_than_allowed_end_the_connection() {
    let server = Config { max_streams: 3, ..Config::default() };
    let few = || Duo::met(&Config::default(), &server, HALF);
    // Three streams of each kind, however many this end has opened itself.
    let mut duo = few();
    for kind in [StreamKind::Ordered, StreamKind::Object] {
        for _ in 0..5 {
            duo.end(Side::Server).open(kind).expect("a stream");
        }
    }
    let all = events_after_data(duo, &[(0b1000, 0, 1), (0b1010, 0, 1)]);
    assert_eq!(all.len(), 6, "{all:?}");
    let many = events_after_data(few(), &[(0b1100, 0, 1)]);
    assert!(is_refused(&many, "more streams than allowed"), "{many:?}");
    // An ended stream of one kind makes no room for the other kind.
    let mut duo = few();
    let mut opened = 0;
    for _ in 0..10 {
        while let Some(id) = duo.end(Side::Client).open(StreamKind::Object) {
            opened += 1;
            duo.end(Side::Client).finish(id);
        }
        duo.exchange(HALF);
        while duo.end(Side::Server).poll_delivery().is_some() {}
        duo.exchange(HALF);
    }
    assert!(opened >= 9, "{opened} objects, three at a time");
    let ordered = std::iter::from_fn(|| duo.end(Side::Client).open(StreamKind::Ordered));
    assert_eq!(ordered.count(), 3);
}
