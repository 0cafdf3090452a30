//! Each byte is delivered once, whatever the order, overlap and repetition of packets.

use super::*;
use crate::streams::Growth;

fn incoming(id: StreamId, limit: u64) -> Incoming {
    Incoming::new(id, Window::new(limit, Growth::Earned))
}

fn bytes(from: u64, to: u64) -> Run {
    Run::copied((from..to).map(|i| (i * 7 % 251) as u8).collect())
}

fn shuffled(kind: StreamKind, seed: u64) {
    let size = 5000;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut stream = incoming(StreamId::new(0, kind, false), 1 << 20);
    let mut got = alloc::vec![None; size as usize];
    let mut in_order = 0;
    stream.on_fin(size).unwrap();
    while !stream.poll_end() {
        let from = rng.u64(0..size);
        let to = (from + rng.u64(1..400)).min(size);
        stream.on_data(from, bytes(from, to)).unwrap();
        while let Some(delivery) = stream.poll() {
            if kind == StreamKind::Ordered {
                assert_eq!(delivery.offset, in_order);
                in_order += delivery.run.len() as u64;
            }
            for (i, byte) in delivery.run.to_vec().into_iter().enumerate() {
                let slot = &mut got[delivery.offset as usize + i];
                assert!(slot.is_none(), "delivered twice");
                *slot = Some(byte);
            }
        }
    }
    let want: Vec<_> = bytes(0, size).to_vec().into_iter().map(Some).collect();
    assert_eq!(got, want);
    assert_eq!(stream.held(), 0);
}

// spec: stream-3
#[test]
fn a_stream_reset_at_its_end_delivers_its_bytes_first() {
    let mut stream = incoming(StreamId(0), 1000);
    stream.on_reset_at(300, 7).unwrap();
    assert!(stream.on_data(200, bytes(200, 301)).is_err(), "nothing is behind its last byte");
    stream.on_data(100, bytes(100, 300)).unwrap();
    assert!(stream.poll().is_none() && !stream.poll_end());
    stream.on_data(0, bytes(0, 100)).unwrap();
    let mut got = 0;
    while let Some(delivery) = stream.poll() {
        assert!(!stream.poll_end() || got + delivery.run.len() == 300);
        got += delivery.run.len();
    }
    assert!(got == 300 && (stream.is_ended() || stream.poll_end()));
    assert_eq!(stream.broken_off(), Some(7));
    assert!(stream.on_reset_at(200, 7).is_err(), "its end does not move");
}

// spec: stream-2
#[test]
fn each_byte_is_delivered_once_in_any_order_of_arrival() {
    for seed in 0..30 {
        shuffled(StreamKind::Ordered, seed);
        shuffled(StreamKind::Object, seed);
    }
}

// spec: flow-1
#[test]
fn limits_and_ends_are_enforced() {
    let mut stream = incoming(StreamId(0), 100);
    assert!(stream.on_data(90, bytes(90, 101)).is_err());
    assert!(stream.on_data(0, bytes(0, 50)).is_ok());
    assert!(stream.on_fin(40).is_err());
    assert!(stream.on_fin(60).is_ok());
    assert!(stream.on_fin(61).is_err());
    assert!(stream.on_data(55, bytes(55, 70)).is_err());
}

#[test]
fn a_discarded_stream_returns_all_flow_control_credit() {
    let mut stream = incoming(StreamId(0), 1000);
    let mut received = stream.on_data(0, bytes(0, 100)).unwrap();
    received += stream.on_data(200, bytes(200, 300)).unwrap();
    stream.poll();
    stream.on_consumed((Instant::ZERO, Duration::ZERO), 100, 1000);
    let mut given_back = 100 + stream.discard();
    let late = stream.on_data(300, bytes(300, 350)).unwrap();
    (received, given_back) = (received + late, given_back + late);
    assert!(stream.poll().is_none());
    assert!(stream.on_reset(340).is_err(), "below what has arrived");
    let (grown, untaken) = stream.on_reset(400).unwrap();
    assert_eq!((received + grown, given_back + untaken), (400, 400));
}

#[test]
fn a_reset_stream_returns_the_credit_of_unread_bytes() {
    let mut stream = incoming(StreamId(0), 1000);
    stream.on_data(50, bytes(50, 100)).unwrap();
    assert_eq!(stream.on_reset(120).unwrap(), (20, 120));
    assert!(stream.on_reset(2000).is_err(), "beyond the limit");
}

#[test]
fn bytes_passed_to_the_application_are_not_credited_twice() {
    for reset in [false, true] {
        let mut stream = incoming(StreamId(0), 1000);
        let received = stream.on_data(0, bytes(0, 100)).unwrap();
        let handed_out = stream.poll().unwrap().run.len() as u64;
        let given_back = if reset { stream.on_reset(100).unwrap().1 } else { stream.discard() };
        assert_eq!(given_back + handed_out, received);
    }
}

#[test]
fn who_sends_a_byte_a_packet_is_not_cut_off_by_one_loss() {
    let size = (1 << 20) + 100;
    for kind in [StreamKind::Ordered, StreamKind::Object] {
        let mut stream = incoming(StreamId::new(0, kind, false), size);
        for at in 1..size {
            stream.on_data(at, bytes(at, at + 1)).unwrap();
        }
        stream.on_data(0, bytes(0, 1)).unwrap();
        let mut got = 0;
        while let Some(delivery) = stream.poll() {
            let want = bytes(delivery.offset, delivery.offset + delivery.run.len() as u64);
            assert_eq!(delivery.run.to_vec(), want.to_vec());
            got += delivery.run.len() as u64;
        }
        assert_eq!((got, stream.held()), (size, 0));
    }
}

#[test]
fn full_packets_wait_without_being_copied() {
    let mut stream = incoming(StreamId(0), 100_000);
    for at in 1..10 {
        stream.on_data(at * 1444, bytes(at * 1444, (at + 1) * 1444)).unwrap();
    }
    assert_eq!(stream.waiting.len(), 9, "nothing was copied together");
}

#[test]
fn a_reader_is_stalled_if_it_reads_nothing_of_what_is_available() {
    let clock = (Instant::from_millis(5), Duration::from_millis(10));
    let mut stream = incoming(StreamId(0), 1000);
    assert_eq!(stream.check_reader(clock.0), ReaderCheck { unread: 0, stalled: None });
    stream.on_data(0, bytes(0, 100)).unwrap();
    // Bytes that wait for missing data do not wait for the reader.
    stream.on_data(200, bytes(200, 300)).unwrap();
    assert_eq!(stream.check_reader(clock.0), ReaderCheck { unread: 100, stalled: None });
    assert_eq!(stream.check_reader(clock.0), ReaderCheck { unread: 100, stalled: Some(clock.0) });
    stream.on_consumed(clock, 30, 1000);
    stream.on_data(100, bytes(100, 200)).unwrap();
    assert_eq!(stream.check_reader(clock.0), ReaderCheck { unread: 270, stalled: None });
    stream.on_consumed(clock, 270, 1000);
    assert_eq!(stream.check_reader(clock.0), ReaderCheck { unread: 0, stalled: None });
}
