//! Cross traffic takes its share of the link, and shares losses with the measured flow.

use crate::{BackgroundSpec, Link, LinkSpec, Setting, Verdict};
use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Probability, Rate};

fn spec(share: f64) -> LinkSpec {
    LinkSpec {
        rate: Some(Rate::from_bits_per_sec(1_000_000_000)),
        queue: Some(DataSize::from_bytes(100_000)),
        background: Some(BackgroundSpec { share: Probability::new(share) }),
        ..LinkSpec::default()
    }
}

/// Offers packets of 1500 bytes at even intervals for one second, at `rate` times the link's rate.
/// Returns the share that is delivered.
fn pass(link: &mut Link, rate: f64) -> f64 {
    let count = (rate * 1e9 / 12_304.0) as u64;
    let arrives = |n: &u64| {
        let at = Instant::ZERO + Duration::from_secs_f64(*n as f64 / count as f64);
        matches!(link.offer(at, 1500), Verdict::Deliver(_))
    };
    (0..count).filter(arrives).count() as f64 / count as f64
}

#[test]
fn an_idle_link_carries_its_share_of_cross_traffic() {
    for share in [0.1, 0.3, 0.9] {
        let mut link = Link::new(spec(share), 1);
        let counters = *link.counters_at(Instant::from_millis(10_000));
        let bits = counters.background as f64 * 12_304.0;
        assert!((bits / 1e10 / share - 1.0).abs() < 0.01, "{bits} of {share}");
        assert_eq!((counters.segments, counters.delivered), (0, 0), "it is nobody's");
    }
}

#[test]
fn a_flow_within_the_remaining_rate_loses_nothing() {
    let mut link = Link::new(spec(0.3), 1);
    assert!(pass(&mut link, 0.65) > 0.999);
    assert_eq!(link.counters().background_dropped, 0);
    assert!(link.counters().largest_queue > DataSize::from_bytes(3000), "they meet");
}

#[test]
fn a_flow_above_the_remaining_rate_shares_the_losses() {
    let mut link = Link::new(spec(0.5), 1);
    // Both together offer 1.4 times the link's rate. The flow's interval differs from that of
    // departures, so its packets meet the queue at all phases.
    let arrived = pass(&mut link, 0.9);
    let counters = *link.counters();
    let others =
        counters.background as f64 / (counters.background + counters.background_dropped) as f64;
    let all = (counters.background + counters.delivered) as f64 * 12_304.0 / 1e9;
    assert!((all - 1.0).abs() < 0.01, "the link is full: {all}");
    for passed in [arrived, others] {
        assert!((0.5..0.9).contains(&passed), "{arrived} and {others}");
    }
}

#[test]
fn equal_seeds_give_equal_cross_traffic() {
    let run = |seed| {
        let mut link = Link::new(spec(0.4), seed);
        let departs = (0..1000).map(|n| link.offer(Instant::from_micros(50 * n), 1500));
        departs.collect::<alloc::vec::Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn cross_traffic_follows_changes_of_share_and_rate() {
    let mut link = Link::new(spec(0.0), 1);
    let second = |n: u64| Instant::from_millis(1000 * n);
    assert_eq!(link.counters_at(second(1)).background, 0);
    let mut before = 0;
    let mut during = |link: &mut Link, n: u64, spec: LinkSpec| {
        link.set_spec(second(n), spec);
        let now = link.counters_at(second(n + 1)).background;
        let count = now - before;
        before = now;
        count as f64 * 12_304.0 / 1e9
    };
    let full = during(&mut link, 1, spec(0.5));
    assert!((full - 0.5).abs() < 0.02, "{full}");
    let slow = Some(Rate::from_bits_per_sec(100_000_000));
    let slow = during(&mut link, 2, LinkSpec { rate: slow, ..spec(0.5) });
    assert!((slow - 0.05).abs() < 0.005, "{slow}");
    assert!(during(&mut link, 3, LinkSpec { background: None, ..spec(0.0) }) < 0.001);
    assert!(during(&mut link, 4, LinkSpec { rate: None, ..spec(0.5) }) < 0.001);
}

#[test]
fn cross_traffic_is_parsed_as_a_kind_and_a_share() {
    for (text, share) in [("background udp:30%", Some(0.3)), ("background none", None)] {
        let mut path = crate::PathSpec::default();
        text.parse::<Setting>().unwrap().apply(&mut path, Instant::ZERO);
        let found = path.up.background.map(|background| background.share.get());
        assert_eq!(found, share, "{text}");
        assert_eq!(path.down.background, path.up.background);
    }
    for wrong in ["30%", "udp", "udp:", "udp:0.3", "tcp:30%", "udp:130%"] {
        assert!(Setting::parse("background", wrong).is_err(), "{wrong}");
    }
}
