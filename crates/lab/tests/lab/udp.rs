//! The link's settings apply exactly to each wire segment of UDP super-packets.

use crate::common::{DATAGRAM_BYTES, blast, lab, lab_with};
use hikyaku_lab::{Corruption, LabSpec};
use std::time::Duration;

const DATAGRAMS: u64 = 40_000;
const BATCH_INTERVAL: Duration = Duration::from_micros(600);
const SETTLE_TIME: Duration = Duration::from_millis(500);

/// Whether `hits` out of `all` are within four standard deviations of the fraction `share`.
fn is_likely(hits: u64, all: u64, share: f64) -> bool {
    let expected = all as f64 * share;
    (hits as f64 - expected).abs() < 4.0 * (expected * (1.0 - share)).sqrt()
}

#[test]
fn the_loss_rate_is_that_of_the_link() {
    let Some(lab) = lab(&["rtt 10ms", "loss-up 2%"]) else { return };
    let (seen, damaged) = blast(&lab, DATAGRAMS, BATCH_INTERVAL, SETTLE_TIME);
    let up = lab.report().unwrap().up;
    assert_eq!((up.segments, damaged), (DATAGRAMS, 0));
    assert_eq!(up.bytes, DATAGRAMS * (DATAGRAM_BYTES as u64 + 28));
    assert_eq!(up.delivered, DATAGRAMS - up.lost);
    assert_eq!(seen.len() as u64, up.delivered);
    assert!(is_likely(up.lost, DATAGRAMS, 0.02), "{} lost", up.lost);
}

#[test]
fn duplicates_and_reordered_segments_are_counted() {
    let Some(lab) = lab(&["rtt 10ms", "dup-up 2%", "reorder-up 3%:2ms"]) else { return };
    let (seen, _) = blast(&lab, DATAGRAMS, BATCH_INTERVAL, SETTLE_TIME);
    let up = lab.report().unwrap().up;
    assert_eq!(seen.len() as u64, DATAGRAMS);
    assert_eq!(seen.values().filter(|count| **count == 2).count() as u64, up.duplicated);
    assert!(is_likely(up.duplicated, DATAGRAMS, 0.02), "{} twice", up.duplicated);
    assert!(is_likely(up.reordered, DATAGRAMS, 0.03), "{} held back", up.reordered);
}

#[test]
fn a_full_queue_drops_segments() {
    // A batch of 40 datagrams meets an empty queue with room for 20.5.
    let queue = format!("queue-up {}", (DATAGRAM_BYTES + 28) * 41 / 2);
    let Some(lab) = lab(&["rate-up 1gbit", &queue]) else { return };
    let (seen, _) = blast(&lab, 4000, Duration::from_millis(2), SETTLE_TIME);
    let up = lab.report().unwrap().up;
    assert_eq!(up.overflowed + seen.len() as u64, 4000);
    // If the sender is interrupted within a batch, more of the batch fits.
    assert!((1000..=2000).contains(&up.overflowed), "{} overflowed", up.overflowed);
    assert_eq!(up.largest_queue_bytes, (DATAGRAM_BYTES as u64 + 28) * 20);
}

#[test]
fn corruption_on_the_wire_is_detected_by_the_checksum() {
    let Some(lab) = lab(&["rtt 2ms", "corrupt-up 5%"]) else { return };
    let (seen, damaged) = blast(&lab, DATAGRAMS, BATCH_INTERVAL, SETTLE_TIME);
    let up = lab.report().unwrap().up;
    assert!(is_likely(up.corrupted, DATAGRAMS, 0.05), "{} corrupted", up.corrupted);
    assert_eq!((seen.len() as u64, damaged), (DATAGRAMS - up.corrupted, 0));
}

#[test]
fn corruption_before_the_checksum_is_delivered() {
    let spec = LabSpec { corruption: Corruption::PastChecksum, ..LabSpec::default() };
    let Some(lab) = lab_with(&["rtt 2ms", "corrupt-up 5%"], spec) else { return };
    let (seen, damaged) = blast(&lab, DATAGRAMS, BATCH_INTERVAL, SETTLE_TIME);
    let up = lab.report().unwrap().up;
    assert_eq!((seen.len() as u64, damaged), (DATAGRAMS - up.corrupted, up.corrupted));
}
