//! What happens to the wire segments of UDP super-packets is what the link says, to the segment.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::{DATAGRAM, blast, lab, lab_with};
use hikyaku_lab::{Corruption, LabSpec};
use std::time::Duration;

const COUNT: u64 = 40_000;
const PAUSE: Duration = Duration::from_micros(600);
const SETTLE: Duration = Duration::from_millis(500);

/// Whether `hits` of `all` are within four standard deviations of `share`.
fn is_likely(hits: u64, all: u64, share: f64) -> bool {
    let expected = all as f64 * share;
    (hits as f64 - expected).abs() < 4.0 * (expected * (1.0 - share)).sqrt()
}

#[test]
fn losses_are_the_links() {
    let Some(lab) = lab(&["rtt 10ms", "loss-up 2%"]) else { return };
    let (seen, damaged) = blast(&lab, COUNT, PAUSE, SETTLE);
    let up = lab.report().unwrap().up;
    assert_eq!((up.segments, damaged), (COUNT, 0));
    assert_eq!(up.bytes, COUNT * (DATAGRAM as u64 + 28));
    assert_eq!(up.delivered, COUNT - up.lost);
    assert_eq!(seen.len() as u64, up.delivered);
    assert!(is_likely(up.lost, COUNT, 0.02), "{} lost", up.lost);
}

#[test]
fn copies_and_stragglers_are_counted() {
    let Some(lab) = lab(&["rtt 10ms", "dup-up 2%", "reorder-up 3%:2ms"]) else { return };
    let (seen, _) = blast(&lab, COUNT, PAUSE, SETTLE);
    let up = lab.report().unwrap().up;
    assert_eq!(seen.len() as u64, COUNT);
    assert_eq!(seen.values().filter(|count| **count == 2).count() as u64, up.duplicated);
    assert!(is_likely(up.duplicated, COUNT, 0.02), "{} twice", up.duplicated);
    assert!(is_likely(up.reordered, COUNT, 0.03), "{} held back", up.reordered);
}

#[test]
fn a_queue_drops_what_does_not_fit() {
    // A batch of 40 meets an empty queue that holds 20 and a half.
    let queue = format!("queue-up {}", (DATAGRAM + 28) * 41 / 2);
    let Some(lab) = lab(&["rate-up 1gbit", &queue]) else { return };
    let (seen, _) = blast(&lab, 4000, Duration::from_millis(2), SETTLE);
    let up = lab.report().unwrap().up;
    assert_eq!(up.overflowed + seen.len() as u64, 4000);
    // Where the sender was interrupted in a batch, more of it fits.
    assert!((1000..=2000).contains(&up.overflowed), "{} overflowed", up.overflowed);
    assert_eq!(up.largest_queue_bytes, (DATAGRAM as u64 + 28) * 20);
}

#[test]
fn damage_on_the_wire_is_noticed() {
    let Some(lab) = lab(&["rtt 2ms", "corrupt-up 5%"]) else { return };
    let (seen, damaged) = blast(&lab, COUNT, PAUSE, SETTLE);
    let up = lab.report().unwrap().up;
    assert!(is_likely(up.corrupted, COUNT, 0.05), "{} corrupted", up.corrupted);
    assert_eq!((seen.len() as u64, damaged), (COUNT - up.corrupted, 0));
}

#[test]
fn damage_before_the_checksum_arrives() {
    let spec = LabSpec { corruption: Corruption::PastChecksum, ..LabSpec::default() };
    let Some(lab) = lab_with(&["rtt 2ms", "corrupt-up 5%"], spec) else { return };
    let (seen, damaged) = blast(&lab, COUNT, PAUSE, SETTLE);
    let up = lab.report().unwrap().up;
    assert_eq!((seen.len() as u64, damaged), (COUNT - up.corrupted, up.corrupted));
}
