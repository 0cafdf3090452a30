//! Which packets are declared lost, and when.

use super::*;
use alloc::vec::Vec;
use hikyaku_cc::{ControllerConfig, Policy};
use hikyaku_wire::{Block, Sample};

/// A sender that has measured a round-trip time of this many microseconds.
fn recovery(rtt: u64) -> Recovery {
    let config =
        ControllerConfig { policy: Policy::Fair, datagram: 1200, hint: None, target: None };
    let mut recovery = Recovery::new(Controller::new(config), 1);
    let rtt = Duration::from_micros(rtt);
    recovery.controller.on_handshake(rtt, rtt);
    recovery
}

fn send(recovery: &mut Recovery, at: Instant) {
    let pn = recovery.take_packet_number();
    let content = Content::Data {
        stream: StreamId(0),
        offset: pn * 1000,
        len: 1000,
        chunk: 1000,
        generation: 0,
    };
    recovery.on_sent(Sent::new(pn, 1, at, 1044, content), 1044);
}

/// Applies an ACK of one block from packet 0: alternating runs of received and missing packets.
fn hear(recovery: &mut Recovery, at: Instant, runs: &[u32]) {
    let block = Block { first: 0, runs: runs.to_vec() };
    let largest = block.arrived().map(|(_, end)| end - 1).max().unwrap_or(0);
    let ack = Ack { largest, blocks: alloc::vec![block], ..Ack::default() };
    assert!(!recovery.on_ack(at, &ack, 1000).forged);
}

const fn at(micros: u64) -> Instant {
    Instant::from_micros(1_000_000 + micros)
}

// spec: loss-2
#[test]
fn the_reordering_window_is_a_part_of_the_round_trip_and_doubles() {
    let cases = [(500, 250), (2_000, 500), (5_000, 1_000), (80_000, 10_000), (400_000, 50_000)];
    for (rtt, window) in cases {
        assert_eq!(recovery(rtt).reorder_window(), Duration::from_micros(window), "{rtt} us");
    }
    let mut recovery = recovery(80_000);
    for factor in [2, 4, 8, 8] {
        recovery.on_spurious(1);
        assert_eq!(recovery.reorder_window(), Duration::from_millis(10) * factor);
    }
}

// spec: loss-1, loss-2
#[test]
fn a_missing_packet_is_lost_once_one_sent_a_window_later_has_arrived() {
    let mut recovery = recovery(80_000);
    for sent in [0, 9_000, 10_000] {
        send(&mut recovery, at(sent));
    }
    hear(&mut recovery, at(80_000), &[0, 1, 1]);
    assert_eq!(recovery.totals.lost_packets, 0, "it may have been overtaken");
    hear(&mut recovery, at(80_001), &[0, 1, 2]);
    assert_eq!(recovery.totals.lost_packets, 1);
    // The loss was spurious, so the reordering window doubles.
    hear(&mut recovery, at(80_002), &[3]);
    assert_eq!((recovery.totals.spurious, recovery.reorder_factor), (1, 2));
}

// spec: loss-1
#[test]
fn packets_covered_by_no_block_are_not_declared_lost() {
    let mut recovery = recovery(80_000);
    (0..10).for_each(|n| send(&mut recovery, at(n)));
    let blocks =
        [Block { first: 0, runs: alloc::vec![2] }, Block { first: 8, runs: alloc::vec![2] }];
    for late in 1..100 {
        let ack = Ack { largest: 9, blocks: blocks.to_vec(), ..Ack::default() };
        recovery.on_ack(at(late * 100_000), &ack, 1000);
        recovery.on_timeout(at(late * 100_000 + 50_000), 1000);
    }
    assert_eq!(recovery.totals.lost_packets, 0);
}

// spec: loss-5
#[test]
fn probes_on_a_silent_path_become_less_frequent() {
    for (rtt, pauses) in [(40_000, alloc::vec![250, 500, 1000]), (600_000, alloc::vec![900, 1000])]
    {
        let mut recovery = recovery(rtt);
        send(&mut recovery, at(0));
        let mut now = at(5_000_000);
        recovery.on_timeout(now, 1000);
        assert!(recovery.outage() != Outage::No);
        recovery.on_probe_sent(now);
        let mut asked = Vec::new();
        for _ in 0..40 {
            let next = recovery.probe_at(Next::Unknown).unwrap();
            asked.push((next - now).as_millis());
            now = next;
            recovery.on_probe_sent(now);
        }
        asked.dedup();
        assert_eq!(asked, pauses, "a round trip of {rtt} us");
    }
}

/// A sender that sends one packet each millisecond to a receiver that never reports on some packet
/// numbers.
fn unreported(millis: u64, is_reported: impl Fn(u64) -> bool) -> (Recovery, u64) {
    let mut recovery = recovery(20_000);
    let (mut sent, mut questions) = (Vec::new(), 0);
    for milli in 0..millis {
        let now = at(milli * 1000);
        let first = recovery.next_packet_number();
        send(&mut recovery, now);
        sent.push(recovery.next_packet_number() - 1);
        assert!(recovery.next_packet_number() - first <= 3);
        if recovery.next_timeout().is_some_and(|due| due <= now) {
            recovery.on_timeout(now, 1000);
        }
        if recovery.probe_at(Next::Unknown).is_some_and(|due| due <= now) {
            recovery.on_probe_sent(now);
            questions += 1;
        }
        if milli >= 20 {
            let heard = sent[milli as usize - 20];
            // Only for sent packet numbers: skipped ones must not be acknowledged.
            let reported = if is_reported(heard) { alloc::vec![1] } else { Vec::new() };
            let blocks = alloc::vec![Block { first: heard, runs: reported }];
            assert!(
                !recovery
                    .on_ack(now, &Ack { largest: heard, blocks, ..Ack::default() }, 1000)
                    .forged
            );
        }
    }
    (recovery, questions)
}

// spec: loss-6
#[test]
fn what_is_not_spoken_of_is_asked_for_three_times_and_then_lost() {
    let (reported, none) = unreported(8000, |_| true);
    assert_eq!((none, reported.totals.lost_packets), (0, 0));
    let one = |number| number != 0;
    // Detected after one second, with half a second for the answer to each probe.
    for (millis, questions, lost) in [
        (1400, 0, 0),
        (1600, 1, 0),
        (2100, 2, 0),
        (2600, 3, 0),
        (2900, 3, 0),
        (3100, 3, 1),
        (8000, 3, 1),
    ] {
        let (recovery, asked) = unreported(millis, one);
        assert_eq!((asked, recovery.totals.lost_packets), (questions, lost), "after {millis} ms");
    }
}

// spec: loss-6
#[test]
fn unreported_packets_do_not_keep_later_records_in_memory() {
    // One packet number in seven is never reported on.
    let (recovery, _) = unreported(20_000, |number| number % 7 != 3);
    let (held, _) = recovery.work();
    // The packets of one second and a round trip, and one in seven of five seconds.
    assert!(held <= 1_100 + 5_000 / 7, "{held} records of 20,000");
    assert!(recovery.totals.lost_packets > 1000);
}

// spec: loss-6
#[test]
fn packets_of_an_outage_do_not_count_as_unreported() {
    let mut recovery = recovery(20_000);
    for milli in 0..100 {
        send(&mut recovery, at(milli * 1000));
    }
    for late in 1..300 {
        recovery.on_timeout(at(late * 100_000), 1000);
        recovery.on_probe_sent(at(late * 100_000));
    }
    assert_eq!(recovery.totals.lost_packets, 0);
}

// spec: rate-5
#[test]
fn repeated_samples_of_arrival_times_are_bounded() {
    let mut recovery = recovery(20_000);
    for _ in 0..10_000 {
        send(&mut recovery, at(0));
    }
    let sample = |micros| hikyaku_wire::Sample { packet_number: 0, micros, bytes: 0 };
    for number in 0..2000 {
        let samples = (0..64).map(|more| sample(number * 64 + more)).collect();
        let blocks = alloc::vec![Block { first: 0, runs: alloc::vec![1] }];
        let ack = Ack { samples, blocks, ..Ack::default() };
        assert!(!recovery.on_ack(at(20_000 + number), &ack, 1000).forged);
    }
    let taken = recovery.totals.samples;
    assert!(taken <= SAMPLES_MAX + SAMPLES_PER_PACKET, "{taken} samples of 128,000");
}

#[test]
fn a_round_ends_whatever_number_the_ack_states_as_largest() {
    let mut recovery = recovery(20_000);
    (0..5).for_each(|_| send(&mut recovery, at(0)));
    let blocks = alloc::vec![Block { first: 0, runs: alloc::vec![5] }];
    recovery.on_ack(at(20_000), &Ack { largest: 0, blocks, ..Ack::default() }, 1000);
    assert_eq!(recovery.largest, 4);
}

// spec: loss-3
#[test]
fn probes_wait_for_a_receiver_that_takes_long_for_its_answers() {
    let mut recovery = recovery(1_000);
    let (mut now, mut sent) = (0, Vec::new());
    let mut wait_after = |delay: u64| {
        send(&mut recovery, at(now));
        let largest = recovery.next_packet_number() - 1;
        sent.push(largest);
        now += 1_000 + delay;
        // Some numbers are left out.
        let block = |first| Block { first, runs: alloc::vec![1] };
        let blocks = sent.drain(..).map(block).collect();
        let samples = alloc::vec![Sample { packet_number: largest, micros: now, bytes: now }];
        let ack = Ack { largest, delay_micros: delay, blocks, samples, ..Ack::default() };
        assert!(!recovery.on_ack(at(now), &ack, 1000).forged);
        now += 1_000;
        send(&mut recovery, at(now));
        sent.push(recovery.next_packet_number() - 1);
        recovery.probe_at(Next::Unknown).unwrap() - at(now)
    };
    assert!(wait_after(0).as_micros() < 5_000);
    assert!(wait_after(20_000).as_micros() < 5_000, "a report that is not urgent");
    assert!(wait_after(300_000).as_micros() < 5_000, "the path may have been down");
    assert!(wait_after(300_000).as_micros() > 250_000);
    let waits = [wait_after(3_600_000_000), wait_after(3_600_000_000)];
    assert!(waits[1].as_micros() < 1_500_000, "a receiver may say anything");
    let waits: Vec<_> = (0..60).map(|_| wait_after(0)).collect();
    assert!(waits[59].as_micros() < 5_000, "it is fast again: {waits:?}");
}
