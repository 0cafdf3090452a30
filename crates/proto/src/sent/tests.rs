//! Acknowledged, missing and unreported packets are distinguished, and the bytes in flight always
//! add up.

use super::record::runs;
use super::*;
use hikyaku_wire::{Block, Frame, Sample, StreamId};

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
fn only_packets_covered_by_a_block_are_lost() {
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
fn an_acknowledgement_of_an_unsent_packet_is_detected_as_forged() {
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
fn samples_are_matched_with_sending_times() {
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
fn runs_yields_each_group_of_set_bits() {
    assert!(runs(0b0110_0001).eq([(0, 1), (5, 2)]));
    assert!(runs(u64::MAX).eq([(0, 64)]));
    assert!(runs(0).eq([]));
}

/// The number of records visited by an acknowledgement of the newest record. `before` records
/// precede it, one packet in ten. The receiver reports nothing about the first one, so all are
/// kept.
fn visits(before: u64) -> u64 {
    let mut log = SentLog::default();
    let mut cost = 0;
    for record in 0..before {
        let first = record * 10;
        log.push(data(first, 10, 10 + record));
        let looked = log.visits();
        let mut out = Outcome::default();
        // The worst case of a malicious peer: it reports all packets but the first, again in every
        // ACK.
        let blocks = [first.max(1), 1].map(|from| {
            let from = from.max(first.saturating_sub(60_000));
            Block { first: from, runs: alloc::vec![(first + 10 - from) as u32] }
        });
        log.apply(
            &Ack { largest: first + 9, blocks: blocks.into(), ..Ack::default() },
            first + 10,
            &mut out,
        );
        log.judge(Instant::from_millis(record), &mut out);
        log.forget(Instant::from_millis(20 + record), Duration::ZERO);
        cost = log.visits() - looked;
    }
    assert_eq!(log.len() as u64, before, "the first is held, and so are all");
    cost
}

// spec: loss-6
#[test]
fn the_cost_of_an_acknowledgement_does_not_grow_with_the_log() {
    let (few, many) = (visits(20), visits(5000));
    assert!(few <= 20 && many <= few, "{few} of 20 records, {many} of 5000");
}

#[test]
fn frames_count_until_they_are_acknowledged_or_forgotten() {
    let mut log = SentLog::default();
    let fin = Frame::Fin { stream: STREAM, size: 7 };
    for pn in 0..3 {
        let content = Content::Control(alloc::vec![fin.clone(), Frame::Ping]);
        log.push(Sent::new(pn, 1, Instant::from_millis(10), 60, content));
    }
    assert_eq!(log.frames(), 9);
    let mut out = Outcome::default();
    log.apply(&ack(0, &[1, 1, 1]), 3, &mut out);
    assert_eq!((log.frames(), out.fates.len()), (3, 2));
    assert_eq!(out.fates[0], Fate::FinArrived(STREAM));
    log.judge(Instant::from_millis(50), &mut out);
    assert_eq!(log.frames(), 3, "a copy is kept for a while");
    log.forget(Instant::from_millis(5000), Duration::from_secs(1));
    assert_eq!((log.frames(), log.len()), (0, 0));
}
