//! Faults of the path during a transfer, and the time until the rate has recovered. Times are
//! simulated, so that the bounds depend on the link and not on this machine.
//!
//! `cargo test --release -p hikyaku-sim --test sim events -- --nocapture` prints the time of each
//! recovery, and `TRACE=1` the sender's state.

use hikyaku_link::{LinkSpec, LossModel, Outage, Reorder};
use hikyaku_proto::StreamKind;
use hikyaku_sim::{EFFICIENCY_1500, Load, Outcome, Scenario, plain_link};
use hikyaku_units::{Instant, Probability, Rate};
use std::time::Duration;

const FAULT_AT_SECONDS: f64 = 8.0;
const RUN_SECONDS: f64 = 30.0;

fn link(mbit: u64, rtt_ms: u64) -> LinkSpec {
    plain_link(Rate::from_bits_per_sec(mbit * 1_000_000), Duration::from_millis(rtt_ms), 0.0)
}

/// The simulated clock starts at one second.
fn at(seconds: f64) -> Instant {
    Instant::from_millis(1000) + Duration::from_secs_f64(seconds)
}

/// A transfer over `before`, which is replaced by `links` at their times in seconds.
fn run(before: LinkSpec, links: &[(f64, LinkSpec)]) -> Outcome {
    run_with(1, before, links)
}

fn run_with(seed: u64, before: LinkSpec, links: &[(f64, LinkSpec)]) -> Outcome {
    let load = Load::For(Duration::from_secs_f64(RUN_SECONDS), StreamKind::Ordered);
    let mut scenario = Scenario::over(before, load, seed);
    scenario.changes =
        links.iter().map(|(when, link)| (at(*when), link.clone(), link.clone())).collect();
    let outcome = scenario.run().expect("right bytes and no closed connection");
    outcome.trace_if_asked();
    outcome
}

/// Seconds from `end` to the first interval of 0.2 s from which the mean rate of a second is at
/// least `wanted`.
fn back(outcome: &Outcome, end: f64, wanted: f64) -> f64 {
    let mean = |from: f64| {
        let rate = outcome
            .goodput_between(Duration::from_secs_f64(from), Duration::from_secs_f64(from + 1.0));
        rate.bits_per_sec() as f64
    };
    let starts = (0..).map(|i| f64::from(i) * 0.2).take_while(|t| end + t + 1.0 < RUN_SECONDS);
    let mut starts = starts.filter(|t| mean(end + t) >= wanted);
    starts.next().unwrap_or(f64::INFINITY)
}

fn before(outcome: &Outcome) -> f64 {
    let rate = outcome.goodput_between(
        Duration::from_secs_f64(FAULT_AT_SECONDS - 3.0),
        Duration::from_secs_f64(FAULT_AT_SECONDS),
    );
    rate.bits_per_sec() as f64
}

#[track_caller]
fn within(name: &str, took: f64, most: f64) {
    println!("{name}: back after {took:.1} s, at most {most:.1} s");
    assert!(took <= most, "{name}: back after {took:.1} s, more than {most:.1} s");
}

#[test]
fn the_rate_recovers_after_an_outage_of_ten_seconds() {
    let mut path = link(1000, 200);
    path.outages = vec![Outage { from: at(FAULT_AT_SECONDS), lasts: Duration::from_secs(10) }];
    let outcome = run(path, &[]);
    within("outage", back(&outcome, FAULT_AT_SECONDS + 10.0, 0.8 * before(&outcome)), 2.4);
}

#[test]
fn the_rate_recovers_after_the_path_becomes_longer_and_shorter() {
    let (short, long) = (link(1000, 50), link(1000, 300));
    let second = FAULT_AT_SECONDS + 10.0;
    let outcome = run(short.clone(), &[(FAULT_AT_SECONDS, long), (second, short)]);
    let wanted = 0.8 * before(&outcome);
    within("50 -> 300 ms", back(&outcome, FAULT_AT_SECONDS, wanted), 2.6);
    within("300 -> 50 ms", back(&outcome, second, wanted), 2.1);
}

#[test]
fn the_rate_recovers_from_an_mtu_black_hole() {
    let (path, mut hole) = (link(1000, 200), link(1000, 200));
    hole.mtu = Some(1280);
    let outcome = run(path, &[(FAULT_AT_SECONDS, hole)]);
    within("MTU 1500 -> 1280", back(&outcome, FAULT_AT_SECONDS, 0.8 * before(&outcome)), 2.0);
}

#[test]
fn corrupted_packets_cost_little() {
    let (path, mut noisy) = (link(1000, 200), link(1000, 200));
    noisy.corrupt = Probability::new(0.02);
    let outcome = run(path, &[(FAULT_AT_SECONDS, noisy)]);
    within("2 % corruption", back(&outcome, FAULT_AT_SECONDS, 0.8 * before(&outcome)), 2.4);
}

#[test]
fn packets_reordered_by_twenty_milliseconds_cost_little() {
    let (path, mut unruly) = (link(1000, 200), link(1000, 200));
    unruly.reorder =
        Reorder { probability: Probability::new(0.01), extra: Duration::from_millis(20) };
    let outcome = run(path, &[(FAULT_AT_SECONDS, unruly)]);
    within("reordering", back(&outcome, FAULT_AT_SECONDS, 0.8 * before(&outcome)), 2.4);
}

#[test]
fn the_rate_follows_half_and_double_the_capacity() {
    let (whole, half) = (link(1000, 50), link(500, 50));
    let second = FAULT_AT_SECONDS + 10.0;
    let outcome = run(whole.clone(), &[(FAULT_AT_SECONDS, half), (second, whole)]);
    within("half the rate", back(&outcome, FAULT_AT_SECONDS, 0.425 * before(&outcome)), 5.0);
    within("the whole rate", back(&outcome, second, 0.85 * before(&outcome)), 5.0);
}

#[test]
fn the_link_is_filled_at_nearly_a_third_of_loss() {
    let mut path = link(1000, 200);
    path.loss = LossModel::Bernoulli(Probability::new(0.3));
    // Seeds 3 and 7 have loss patterns that resemble those of a policer.
    for seed in [1, 3, 7] {
        let outcome = run_with(seed, path.clone(), &[]);
        let half = Duration::from_secs_f64(RUN_SECONDS / 2.0);
        let goodput = outcome.goodput_between(half, Duration::from_secs_f64(RUN_SECONDS));
        let share = goodput.bits_per_sec() as f64 / (1e9 * EFFICIENCY_1500 * 0.7);
        println!("30 % loss: {share:.3} of what is possible");
        assert!(share >= 0.8, "{share}");
    }
}
