//! Queues, rates and steps of the path are told apart.

use super::*;
use crate::sample::{Limit, Settled, Volume};

const CLOCK_OFFSET: u64 = 77_000_000;

fn arrival(pn: u64, sent_ms: u64, owd_ms: u64) -> Arrival {
    Arrival {
        packet_number: pn,
        sent: Instant::from_millis(sent_ms),
        received_micros: CLOCK_OFFSET + (sent_ms + owd_ms) * 1000,
        delivered: pn * 1000,
        offered: pn * 1000,
    }
}

fn ack(model: &mut PathModel, arrival: Arrival) -> Step {
    let now = arrival.sent + Duration::from_millis(200);
    model.on_ack(&AckEvent {
        now,
        arrivals: &[arrival],
        rtt: Some(Duration::from_millis(200)),
        acked: Volume::default(),
        lost: Volume::default(),
        settled: Settled::default(),
        marked: 0,
        largest: arrival.packet_number,
        next_packet_number: arrival.packet_number + 1,
        in_flight: 0,
        limit: Limit::Controller,
    })
}

#[test]
fn queue_and_rate_of_a_round() {
    let mut model = PathModel::new();
    for i in 0..100 {
        let queue = if i < 5 { 0 } else { 3 };
        assert_eq!(ack(&mut model, arrival(i, i * 10, 100 + queue)), Step::None);
    }
    let round = model.end_round().unwrap();
    assert!((0.0027..=0.003).contains(&round.queue), "all but the first saw it");
    assert!((round.rate.unwrap() - 100_000.0).abs() < 500.0, "1000 B every 10 ms");
    assert_eq!(model.base_rtt(), Some(Duration::from_millis(200)));
}

#[test]
fn beside_others_the_base_is_not_forgotten() {
    for (company, seen) in [(Company::None, 0), (Company::Others, 60)] {
        let mut model = PathModel::new();
        model.remember_base(company);
        for i in 0..600 {
            let queue = (i / 2).min(60);
            ack(&mut model, arrival(i, i * 100, 100 + queue));
        }
        assert_eq!(model.queue(), Duration::from_millis(seen), "{company:?}");
    }
}

#[test]
fn a_longer_path_is_no_queue() {
    let mut model = PathModel::new();
    (0..50).for_each(|i| {
        ack(&mut model, arrival(i, i * 10, 25));
    });
    model.end_round();
    let step = ack(&mut model, arrival(50, 500, 150));
    assert!(matches!(step, Step::Longer(by) if (by - 0.125).abs() < 1e-6), "{step:?}");
    assert_eq!(model.queue(), Duration::ZERO);
}

#[test]
fn a_longer_way_back_is_seen_after_a_round() {
    let mut model = PathModel::new();
    let round = |model: &mut PathModel, from: u64, rtt_ms: u64| {
        (from..from + 10).for_each(|i| {
            let arrival = arrival(i, i * 10, 25);
            let now = arrival.sent + Duration::from_millis(rtt_ms);
            model.on_ack(&AckEvent {
                now,
                arrivals: &[arrival],
                rtt: Some(Duration::from_millis(rtt_ms)),
                acked: Volume::default(),
                lost: Volume::default(),
                settled: Settled::default(),
                marked: 0,
                largest: i,
                next_packet_number: i + 1,
                in_flight: 0,
                limit: Limit::Controller,
            });
        });
        model.end_round().unwrap().step
    };
    assert_eq!(round(&mut model, 0, 50), Step::None);
    assert_eq!(round(&mut model, 10, 55), Step::None, "not clearly longer");
    assert!(matches!(round(&mut model, 20, 300), Step::Longer(by) if (by - 0.25).abs() < 1e-6));
    assert_eq!(model.base_rtt(), Some(Duration::from_millis(300)));
    assert_eq!(round(&mut model, 30, 300), Step::None);
}

#[test]
fn a_clock_that_was_set_makes_no_lasting_queue() {
    let mut model = PathModel::new();
    (0..20).for_each(|i| {
        ack(&mut model, arrival(i, i * 10, 25));
    });
    ack(&mut model, arrival(20, 200, 22));
    model.end_round();
    let queue = |model: &mut PathModel, from: u64| {
        (from..from + 20).for_each(|i| {
            ack(model, arrival(i, i * 10, 25));
        });
        model.end_round().unwrap().queue
    };
    assert_eq!(queue(&mut model, 21), 0.003, "one packet was three milliseconds too early");
    assert_eq!(queue(&mut model, 41), 0.0, "which the round trip did not confirm");
}

#[test]
fn a_busy_host_at_the_end_of_a_round_is_no_rising_queue() {
    // Every second packet is 2 ms late, from the middle of the round on all are 1 ms late.
    let run = |late_from: u64, all: u64| {
        let mut model = PathModel::new();
        for pn in 0..100 {
            let jitter = if pn % 2 == 0 { 2 } else { 0 };
            let rising = if pn >= late_from { all } else { 0 };
            ack(&mut model, arrival(pn, pn, 50 + jitter + rising));
        }
        model.end_round().unwrap().latest
    };
    assert_eq!(run(100, 0), 0.0);
    assert!((run(50, 1) - 0.001).abs() < 1e-6, "{}", run(50, 1));
}

#[test]
fn what_was_sent_before_it_was_given_does_not_take_it_back() {
    let mut model = PathModel::new();
    // A packet of 1000 bytes a millisecond, then half as many.
    let round = |model: &mut PathModel, from: u64, first_ms: u64, every: u64| {
        (0..100).for_each(|i| {
            ack(model, arrival(from + i, first_ms + i * every, 100));
        });
        model.end_round();
        model.known_rate()
    };
    let before = round(&mut model, 0, 0, 1);
    assert!((before - 1e6).abs() < 2e4, "{before}");
    // It is given while a round is under way.
    model.give(Instant::from_millis(250), 0.8e6);
    assert_eq!(round(&mut model, 100, 100, 1), 0.8e6);
    assert_eq!(round(&mut model, 200, 200, 1), 0.8e6);
    // What is had of it later is ours again.
    assert!(round(&mut model, 300, 300, 1) > 0.9e6);
}

#[test]
fn a_receiver_may_tell_any_time() {
    let times = [0, u64::MAX, 1 << 53, (1 << 63) + 7, 5, u64::MAX / 1000, 1 << 62];
    // Every order of three of them, again and again.
    for first in 0..343_usize {
        let mut model = PathModel::new();
        for pn in 0..60 {
            let which = first / [1, 7, 49][pn as usize % 3] % 7;
            let mut lie = arrival(pn, pn * 10, 25);
            lie.received_micros = times[which];
            ack(&mut model, lie);
            if pn % 7 == 0 {
                model.end_round();
            }
        }
    }
}
