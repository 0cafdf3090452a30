//! The bitmap of received packet numbers agrees with a plain set, and replays are detected however
//! late they arrive.

use super::*;
use alloc::collections::BTreeSet;

// spec: pn-2, ack-2
#[test]
fn the_bitmap_agrees_with_a_set() {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut receipts = Receipts::new();
    let mut set = BTreeSet::new();
    let mut top = 0u64;
    for step in 0..300_000u64 {
        top += rng.u64(0..3);
        let pn = top.saturating_sub(rng.u64(0..5000) * u64::from(rng.u8(0..4) == 0));
        match receipts.check(pn) {
            Freshness::New => {
                assert!(set.insert(pn), "{pn} taken twice");
                receipts.insert(Instant::from_micros(step), pn, 100);
            }
            Freshness::Duplicate => assert!(set.contains(&pn)),
            Freshness::TooOld => assert!(pn + 60_000 < top),
        }
    }
    receipts.on_floor(top - 40_000, Duration::from_millis(200));
    let mut covered = BTreeSet::new();
    for _ in 0..40 {
        for block in receipts.ack(Instant::from_millis(400)).blocks {
            covered.extend(block.first..block.end());
            for (from, end) in block.arrived() {
                (from..end).for_each(|pn| assert!(set.contains(&pn)));
            }
            let arrived: u64 = block.arrived().map(|(a, b)| b - a).sum();
            assert_eq!(arrived, set.range(block.first..block.end()).count() as u64);
        }
    }
    assert!(
        (top - 40_000..receipts.expected()).all(|pn| covered.contains(&pn)),
        "rotation covers all"
    );
}

#[test]
fn a_jump_of_packet_numbers_keeps_those_within_the_window() {
    let mut receipts = Receipts::new();
    receipts.insert(Instant::ZERO, 5, 1);
    receipts.insert(Instant::ZERO, 100_000, 1);
    assert_eq!(receipts.check(5), Freshness::Duplicate);
    assert_eq!(receipts.check(6), Freshness::New);
    receipts.insert(Instant::ZERO, 1 << 22, 1);
    assert_eq!(receipts.check(5), Freshness::TooOld);
    assert_eq!(receipts.check((1 << 22) - 1), Freshness::New);
}

// spec: ack-3
#[test]
fn an_ack_is_due_at_once_or_after_the_interval() {
    let mut receipts = Receipts::new();
    let now = Instant::from_millis(5);
    for pn in 0..=PACKETS_ACKED_AT_ONCE {
        receipts.insert(now, pn, 100);
        receipts.on_eliciting(now, Urgency::Later);
        if pn < PACKETS_ACKED_AT_ONCE {
            assert_eq!(receipts.due(), Some(now));
            receipts.ack(now);
        }
    }
    assert_eq!(receipts.due(), Some(now + Duration::from_millis(1)));
    receipts.on_eliciting(now, Urgency::Now);
    assert_eq!(receipts.due(), Some(now));
}

// spec: ack-2
#[test]
fn old_packets_are_reported_again_while_new_ones_keep_arriving() {
    let mut receipts = Receipts::new();
    let mut covered = BTreeSet::new();
    for step in 0..200u64 {
        for pn in step * 500..(step + 1) * 500 {
            receipts.insert(Instant::from_millis(step), pn, 100);
        }
        let ack = receipts.ack(Instant::from_millis(step));
        if step > 40 {
            covered.extend(ack.blocks.iter().flat_map(|b| b.first..b.end()).filter(|&pn| pn < 500));
        }
    }
    assert_eq!(covered.len(), 500, "the oldest packets are told again");
}

// spec: ack-4
#[test]
fn a_probe_is_answered_with_a_full_report() {
    let mut receipts = Receipts::new();
    (0..30_000).for_each(|pn| receipts.insert(Instant::ZERO, pn, 100));
    (0..5).for_each(|_| drop(receipts.ack(Instant::ZERO)));
    receipts.insert(Instant::ZERO, 30_000, 100);
    receipts.on_eliciting(Instant::ZERO, Urgency::Full);
    let mut covered = BTreeSet::new();
    while let Some(due) = receipts.due() {
        covered.extend(receipts.ack(due).blocks.iter().flat_map(|b| b.first..b.end()));
    }
    assert_eq!(covered.len(), 30_001);
}

// spec: ack-4
#[test]
fn who_asks_and_lets_its_floor_lie_draws_no_flood() {
    let mut receipts = Receipts::new();
    (0..2_000_000).for_each(|pn| receipts.insert(Instant::ZERO, pn, 100));
    let second = Instant::ZERO + Duration::from_secs(1);
    (0..5).for_each(|_| drop(receipts.ack(Instant::ZERO)));
    // Ten probes in one interval of a millisecond.
    receipts.set_rtt(Duration::from_millis(16));
    let mut acks = 0;
    for question in 0..10 {
        let now = second + Duration::from_micros(90) * question;
        receipts.on_eliciting(now, Urgency::Full);
        while receipts.due().is_some_and(|at| at <= now) {
            receipts.ack(now);
            acks += 1;
        }
    }
    assert!((10..=16 + 9).contains(&acks), "{acks}");
    // The full report continues without a further probe.
    let due = receipts.due().expect("more is to come");
    assert!(due > second && due <= second + Duration::from_millis(2), "{due:?}");
}

// spec: pn-2
#[test]
fn numbers_that_left_the_window_stay_too_old_when_it_grows() {
    let mut receipts = Receipts::new();
    for pn in 0..REMEMBERED_NUMBERS_MIN + 40_000 {
        receipts.on_floor(pn.saturating_sub(100), Duration::from_millis(1));
        receipts.insert(Instant::from_micros(pn), pn, 100);
    }
    let gone = 20_000;
    assert_eq!(receipts.check(gone), Freshness::TooOld);
    // The floor stays, so that the window has to grow.
    for pn in REMEMBERED_NUMBERS_MIN + 40_000..2 * REMEMBERED_NUMBERS_MIN + 40_000 {
        receipts.insert(Instant::from_micros(pn), pn, 100);
    }
    assert_ne!(receipts.check(gone + 60_000), Freshness::New, "a replay");
    assert_eq!(receipts.check(gone), Freshness::TooOld);
}

// spec: pn-2
#[test]
fn the_last_131072_numbers_are_remembered() {
    let mut receipts = Receipts::new();
    for pn in 0..3 * (1 << 17) + 77 {
        // The sender's floor follows the newest packet, so nothing makes the window grow.
        receipts.on_floor(pn, Duration::from_millis(1));
        receipts.insert(Instant::from_micros(pn), pn, 100);
        let oldest = receipts.expected().saturating_sub(1 << 17);
        assert_eq!(receipts.check(oldest), Freshness::Duplicate, "{oldest} of {pn}");
        assert_ne!(receipts.check(oldest / 2), Freshness::New);
    }
}

// spec: ack-1
#[test]
fn an_ack_carries_up_to_sixteen_samples_of_arrival_time_and_bytes() {
    for (packets, gap) in [(3, 1000), (100, 1000), (100, 100_000), (5000, 10)] {
        let mut receipts = Receipts::new();
        receipts.set_rtt(Duration::from_millis(200));
        for pn in 0..packets {
            let now = Instant::from_micros(pn * gap);
            receipts.insert(now, pn, 100);
            receipts.sample(now);
        }
        let samples = receipts.ack(Instant::from_micros(packets * gap)).samples;
        assert!((3..=16).contains(&samples.len()), "{} of {packets}", samples.len());
        assert!(samples.windows(2).all(|pair| pair[0].packet_number < pair[1].packet_number));
        for sample in &samples {
            assert_eq!(sample.micros, sample.packet_number * gap);
            assert_eq!(sample.bytes, (sample.packet_number + 1) * 100);
        }
        assert_eq!(samples.last().map(|sample| sample.packet_number), Some(packets - 1));
        let again = receipts.ack(Instant::from_micros(packets * gap)).samples;
        assert!(again.len() <= 1, "each is told once");
    }
}

// spec: ack-2
#[test]
fn each_new_packet_is_reported_in_three_acks() {
    let mut receipts = Receipts::new();
    // How far each ACK went. The first three had nothing before them.
    let mut ends = vec![0; 3];
    for step in 1..20u64 {
        (10 * (step - 1)..10 * step)
            .filter(|pn| pn % 7 != 0)
            .for_each(|pn| receipts.insert(Instant::from_millis(step), pn, 100));
        let ack = receipts.ack(Instant::from_millis(step));
        ends.push(receipts.expected());
        let newest = &ack.blocks[0];
        assert_eq!((newest.first, newest.end()), (ends[ends.len() - 4], receipts.expected()));
    }
}

// spec: ack-3
#[test]
fn an_ack_is_due_after_2048_packets() {
    let mut receipts = Receipts::new();
    receipts.set_rtt(Duration::from_millis(320));
    let now = Instant::from_millis(5);
    (0..100).for_each(|pn| receipts.insert(now, pn, 100));
    receipts.ack(now);
    for _ in 1..2048 {
        receipts.on_eliciting(now, Urgency::Later);
        assert_eq!(receipts.due(), Some(now + Duration::from_millis(10)));
    }
    receipts.on_eliciting(now, Urgency::Later);
    assert_eq!(receipts.due(), Some(now));
}
