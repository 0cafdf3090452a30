//! Tests of the comparison: deviations are found, and chance is not reported as a deviation.

use super::super::flow::Received;
use super::*;
use crate::relay::PathState;
use crate::report::directions;
use hikyaku_link::{Counters, PathSpec, Setting};
use hikyaku_units::Instant;

const PAYLOAD: usize = 1472;

/// Reports of a link with `settings`: one with all counters zero, and one with `counters`.
fn reports(settings: &[&str], counters: Counters) -> [DirectionReport; 2] {
    let mut path = PathSpec::default();
    for text in settings {
        text.parse::<Setting>().unwrap().apply(&mut path, Instant::ZERO);
    }
    [Counters::default(), counters]
        .map(|up| directions(&PathState { path: path.clone(), up, down: Counters::default() }).0)
}

/// A flow of single datagrams, and a flood of which 10,000 datagrams arrived at `rate`, ten in each
/// message.
fn flow(rate: f64, delay_ms: f64) -> Flow {
    let nanos = |message: u64| (message as f64 * 10.0 * 12_304.0 / rate * 1e9) as u64;
    let messages = (0..1000).map(|message| (nanos(message), 10)).collect();
    let delay = Duration::from_secs_f64(delay_ms / 1e3);
    Flow {
        delays: vec![delay; 40],
        payload: PAYLOAD,
        sent: 10_040,
        received: Received { datagrams: 10_000, messages, dropped_by_host: 0 },
    }
}

fn counters() -> Counters {
    Counters { segments: 10_040, delivered: 10_040, ..Counters::default() }
}

fn faults(settings: &[&str], flow: &Flow, counters: Counters) -> String {
    let [before, after] = reports(settings, counters);
    let names = ["a1", "b1"].map(str::to_owned);
    WayCheck::new(names, flow, &before, &after).faults.join("; ")
}

const LINK: [&str; 2] = ["rate 100mbit", "delay 10ms"];

#[test]
fn a_link_that_behaves_as_set_has_no_faults() {
    // A datagram of 100 bytes takes 13 us at this rate.
    assert_eq!(faults(&LINK, &flow(1e8, 10.05), counters()), "");
    assert_eq!(faults(&LINK, &flow(1.004e8, 9.9), counters()), "");
}

#[test]
fn deviations_of_delay_and_rate_are_reported() {
    for delay in [9.7, 10.3] {
        assert!(faults(&LINK, &flow(1e8, delay), counters()).contains("delay is off"));
    }
    for rate in [0.99e8, 1.01e8] {
        assert!(faults(&LINK, &flow(rate, 10.0), counters()).contains("rate is off"));
    }
    let silent = Flow { delays: Vec::new(), ..flow(1e8, 10.0) };
    assert!(faults(&LINK, &silent, counters()).contains("no single datagram"));
}

#[test]
fn a_pause_of_the_sender_does_not_change_the_rate() {
    let mut paused = flow(1e8, 10.0);
    paused.received.messages[700..].iter_mut().for_each(|(at, _)| *at += 50_000_000);
    assert_eq!(faults(&LINK, &paused, counters()), "");
}

#[test]
fn only_loss_beyond_chance_is_reported() {
    let link = ["rate 100mbit", "delay 10ms", "loss 1%"];
    for (lost, is_off) in [(100, false), (130, false), (50, true), (160, true)] {
        let counters = Counters { segments: 10_040 + lost, lost, ..counters() };
        let received = flow(0.99e8, 10.0);
        let flow = Flow { sent: received.sent + lost, ..received };
        let faults = faults(&link, &flow, counters);
        assert_eq!(faults.contains("loss"), is_off, "{lost}: {faults}");
    }
}

#[test]
fn unexplained_losses_are_reported() {
    let short = || {
        let mut flow = flow(1e8, 10.0);
        flow.received.datagrams -= 3;
        flow
    };
    assert!(faults(&LINK, &short(), counters()).contains("3 datagrams are unaccounted"));
    let overflowed = Counters { delivered: 10_037, overflowed: 3, ..counters() };
    assert_eq!(faults(&LINK, &short(), overflowed), "");
    let doubled = Counters { duplicated: 3, ..counters() };
    assert!(faults(&LINK, &flow(1e8, 10.0), doubled).contains("unaccounted"));
    let busy = Counters { segments: 10_041, delivered: 10_041, ..counters() };
    assert!(faults(&LINK, &flow(1e8, 10.0), busy).contains("other traffic"));
}

#[test]
fn cross_traffic_lowers_the_rate_by_at_most_its_share() {
    let link = ["rate 100mbit", "delay 10ms", "background udp:30%"];
    for (rate, is_off) in [(0.71e8, false), (0.99e8, false), (0.68e8, true), (1.02e8, true)] {
        assert_eq!(faults(&link, &flow(rate, 10.0), counters()).contains("rate"), is_off, "{rate}");
    }
}
