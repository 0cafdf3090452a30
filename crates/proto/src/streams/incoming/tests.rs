//! Whatever the order, overlap and repetition, the application gets each byte once.

use super::*;

fn bytes(from: u64, to: u64) -> Run {
    Run::copied((from..to).map(|i| (i * 7 % 251) as u8).collect())
}

fn shuffled(kind: StreamKind, seed: u64) {
    let size = 5000;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut stream = Incoming::new(StreamId::new(0, kind, false), 1 << 20);
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

// spec: stream-2
#[test]
fn any_order_gives_each_byte_once() {
    for seed in 0..30 {
        shuffled(StreamKind::Ordered, seed);
        shuffled(StreamKind::Object, seed);
    }
}

// spec: flow-1
#[test]
fn limits_and_ends_are_enforced() {
    let mut stream = Incoming::new(StreamId(0), 100);
    assert!(stream.on_data(90, bytes(90, 101)).is_err());
    assert!(stream.on_data(0, bytes(0, 50)).is_ok());
    assert!(stream.on_fin(40).is_err());
    assert!(stream.on_fin(60).is_ok());
    assert!(stream.on_fin(61).is_err());
    assert!(stream.on_data(55, bytes(55, 70)).is_err());
}

#[test]
fn a_discarded_stream_gives_back_every_byte_of_credit() {
    let mut stream = Incoming::new(StreamId(0), 1000);
    let mut received = stream.on_data(0, bytes(0, 100)).unwrap();
    received += stream.on_data(200, bytes(200, 300)).unwrap();
    stream.poll();
    stream.on_consumed(100, 1000);
    let mut given_back = 100 + stream.discard();
    let late = stream.on_data(300, bytes(300, 350)).unwrap();
    (received, given_back) = (received + late, given_back + late);
    assert!(stream.poll().is_none());
    assert!(stream.on_reset(340).is_err(), "below what has arrived");
    let (grown, untaken) = stream.on_reset(400).unwrap();
    assert_eq!((received + grown, given_back + untaken), (400, 400));
}

#[test]
fn a_reset_stream_gives_back_what_was_not_taken() {
    let mut stream = Incoming::new(StreamId(0), 1000);
    stream.on_data(50, bytes(50, 100)).unwrap();
    assert_eq!(stream.on_reset(120).unwrap(), (20, 120));
    assert!(stream.on_reset(2000).is_err(), "beyond the limit");
}

#[test]
fn what_was_handed_out_is_not_given_back_twice() {
    for reset in [false, true] {
        let mut stream = Incoming::new(StreamId(0), 1000);
        let received = stream.on_data(0, bytes(0, 100)).unwrap();
        let handed_out = stream.poll().unwrap().run.len() as u64;
        let given_back = if reset { stream.on_reset(100).unwrap().1 } else { stream.discard() };
        assert_eq!(given_back + handed_out, received);
    }
}

#[test]
fn who_sends_a_byte_a_packet_is_not_cut_off_by_one_loss() {
    let size = MOST_PIECES as u64 + 100;
    for kind in [StreamKind::Ordered, StreamKind::Object] {
        let mut stream = Incoming::new(StreamId::new(0, kind, false), size);
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
fn full_packets_wait_as_they_came() {
    let mut stream = Incoming::new(StreamId(0), 100_000);
    for at in 1..10 {
        stream.on_data(at * 1444, bytes(at * 1444, (at + 1) * 1444)).unwrap();
    }
    assert_eq!(stream.waiting.len(), 9, "nothing was copied together");
}
