//! Acknowledged, missing and unknown packets are kept apart; bytes in flight always add up.

use super::*;
use hikyaku_wire::{Block, Sample};

const STREAM: StreamId = StreamId(0);

fn data(first: u64, count: u32, at_ms: u64) -> Sent {
    let content = Content::Data {
        stream: STREAM,
        offset: first * 1000,
        len: count * 1000,
        chunk: 1000,
        generation: 0,
    };
    Sent::new(first, count, Instant::from_millis(at_ms), 1044, content)
}

fn ack(first: u64, runs: &[u32]) -> Ack {
    let block = Block { first, runs: runs.to_vec() };
    Ack { largest: block.end() - 1, blocks: alloc::vec![block], ..Ack::default() }
}

// spec: loss-1
#[test]
fn only_covered_packets_are_lost() {
    let mut log = SentLog::default();
    log.push(data(0, 64, 10));
    log.push(data(64, 10, 20));
    assert_eq!(log.in_flight(), 74 * 1044);
    let mut out = Outcome::default();
    log.apply(&ack(0, &[10, 2, 20]), 74, &mut out);
    assert_eq!(out.acked, Volume { packets: 30, bytes: 30 * 1044 });
    assert_eq!(log.judge(Instant::from_millis(5), &mut out), Some(Instant::from_millis(10)));
    assert_eq!(out.lost.packets, 0, "sent too lately to be judged");
    assert_eq!(log.judge(Instant::from_millis(500), &mut out), None);
    assert_eq!(out.lost.packets, 2, "packets 32.. are unknown, not lost");
    assert_eq!(
        out.fates.last(),
        Some(&Fate::Lost { stream: STREAM, offset: 10_000, len: 2000, generation: 0 })
    );
    assert_eq!(log.in_flight(), 42 * 1044);
    assert_eq!(log.floor(), 0);
}

#[test]
fn a_late_arrival_is_spurious_loss() {
    let mut log = SentLog::default();
    log.push(data(0, 3, 10));
    let mut out = Outcome::default();
    log.apply(&ack(0, &[1, 1, 1]), 3, &mut out);
    log.judge(Instant::from_millis(100), &mut out);
    assert_eq!((out.lost.packets, log.in_flight()), (1, 0));
    let mut out = Outcome::default();
    log.apply(&ack(0, &[3]), 3, &mut out);
    assert_eq!((out.spurious, out.acked.packets, log.in_flight()), (1, 1, 0));
    log.forget(Instant::from_millis(20), Duration::from_secs(1));
    assert!(log.log.is_empty());
    assert_eq!(log.floor(), 3);
}

// spec: ack-6
#[test]
fn acknowledging_what_was_never_sent_is_forgery() {
    let mut log = SentLog::default();
    log.push(data(0, 3, 10));
    log.skip(3);
    log.push(data(4, 3, 10));
    let mut out = Outcome::default();
    log.apply(&ack(0, &[7]), 7, &mut out);
    assert!(out.forged);
    let mut out = Outcome::default();
    log.apply(&ack(0, &[3, 1, 4]), 7, &mut out);
    assert!(out.forged);
    let mut out = Outcome::default();
    log.apply(&ack(0, &[3, 1, 3]), 7, &mut out);
    assert!(!out.forged);
    let mut out = Outcome::default();
    log.apply(&Ack { largest: 7, ..ack(0, &[3, 1, 3]) }, 7, &mut out);
    assert!(out.forged, "a number said to be the largest, without a block");
}

#[test]
fn samples_find_their_sending_times() {
    let mut log = SentLog::default();
    log.push(data(0, 3, 10));
    log.push(data(5, 3, 30));
    let mut with = ack(0, &[3, 2, 3]);
    with.samples =
        [2, 4, 6].map(|packet_number| Sample { packet_number, micros: 7, bytes: 9 }).to_vec();
    let mut out = Outcome::default();
    log.apply(&with, 8, &mut out);
    let sent: Vec<u64> = out.arrivals.iter().map(|a| a.sent.as_micros()).collect();
    assert_eq!(sent, [10_000, 30_000]);
}

#[test]
fn runs_of_bits() {
    assert!(runs(0b0110_0001).eq([(0, 1), (5, 2)]));
    assert!(runs(u64::MAX).eq([(0, 64)]));
    assert!(runs(0).eq([]));
}
