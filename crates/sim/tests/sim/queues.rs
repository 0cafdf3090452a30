//! One flow at bottlenecks with every kind of queue, whose rate is halved and doubled during
//! the run.
//!
//! `cargo test --release -p hikyaku-sim --test sim queues -- --nocapture` prints the table. `RATE=1000`
//! is the link rate of bench `queue-kinds` in Mbit/s (default: three tenths of that, for speed), and `TRACE=1`
//! prints the sender's state.

use hikyaku_link::{CodelSpec, LinkSpec, PoliceSpec, Signal};
use hikyaku_proto::StreamKind;
use hikyaku_sim::{EFFICIENCY_1500, Load, Outcome, Scenario};
use hikyaku_units::{Instant, Rate};
use std::time::Duration;

/// Seconds between changes, and the time in which a flow must reach its rate.
const PHASE_SECONDS: f64 = 20.0;
const SETTLED_AFTER_SECONDS: f64 = 10.0;
const RTT: Duration = Duration::from_millis(50);
/// Mbit/s.
const RATE_MBIT: f64 = 300.0;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn rate(usual: f64) -> Rate {
    let mbit = std::env::var("RATE").ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    Rate::from_bits_per_sec((mbit * 1e6) as u64)
}

/// `share` of the full rate, with a queue of this many milliseconds at the full rate.
fn link(rate: Rate, share: f64, queue_ms: f64) -> LinkSpec {
    let bits = rate.bits_per_sec() as f64 * share;
    LinkSpec {
        rate: Some(Rate::from_bits_per_sec(bits as u64)),
        delay: RTT / 2,
        queue: Some(rate.in_time(seconds(queue_ms / 1e3))),
        ..LinkSpec::default()
    }
}

fn managed(rate: Rate, share: f64, signal: Signal) -> LinkSpec {
    LinkSpec { aqm: Some(CodelSpec::usual(signal)), ..link(rate, share, 100.0) }
}

/// A policer at half of the link's rate, with a burst of what the link carries in 5 ms.
fn policed(rate: Rate, share: f64) -> LinkSpec {
    let half = Rate::from_bits_per_sec((rate.bits_per_sec() as f64 * share / 2.0) as u64);
    let police = PoliceSpec { rate: half, burst: rate.in_time(Duration::from_millis(5)) };
    LinkSpec { police: Some(police), ..link(rate, 1.0, 50.0) }
}

/// The result of the time after one change.
struct Phase {
    /// Seconds until the mean rate of a second is 85 % of what is available.
    took: f64,
    /// The fraction of the available rate from [`SETTLED_AFTER_SECONDS`] on.
    settled: f64,
    /// Sent packets.
    sent: u64,
    lost: u64,
    queue_ms: f64,
}

fn phase(outcome: &Outcome, begins: f64, available: f64) -> Phase {
    let mean = |from: f64, to: f64| {
        let rate = outcome.goodput_between(seconds(from), seconds(to)).bits_per_sec();
        rate as f64 / (available * EFFICIENCY_1500)
    };
    let starts = (0..).map(|i| f64::from(i) * 0.2).take_while(|t| t + 1.0 <= PHASE_SECONDS);
    let took = starts.into_iter().find(|t| mean(begins + t, begins + t + 1.0) >= 0.85);
    let at = |time: f64| outcome.samples.iter().rfind(|(at, _)| *at <= seconds(time));
    let stats = |time: f64| at(time).map(|(_, stats)| stats).expect("a sample a round trip");
    let (first, last) = (stats(begins), stats(begins + PHASE_SECONDS));
    let settled = outcome.samples.iter().filter(|(at, _)| {
        (seconds(begins + SETTLED_AFTER_SECONDS)..seconds(begins + PHASE_SECONDS)).contains(at)
    });
    let queues: Vec<f64> = settled.map(|(_, stats)| stats.path.queue.as_secs_f64() * 1e3).collect();
    Phase {
        took: took.unwrap_or(f64::INFINITY),
        settled: mean(begins + SETTLED_AFTER_SECONDS, begins + PHASE_SECONDS),
        sent: last.sent.packets - first.sent.packets,
        lost: last.lost_packets - first.lost_packets,
        queue_ms: queues.iter().sum::<f64>() / queues.len() as f64,
    }
}

/// Runs at the full rate, half of it, and the full rate again. `available` is the part of the link
/// rate that a flow can use.
fn run(name: &str, rate: Rate, link: impl Fn(f64) -> LinkSpec, available: f64) -> [Phase; 3] {
    let load = Load::For(seconds(3.0 * PHASE_SECONDS), StreamKind::Ordered);
    let mut scenario = Scenario::over(link(1.0), load, 1);
    let change = |number: f64, share: f64| {
        // The simulated clock starts at one second.
        let at = Instant::from_millis(1000) + seconds(number * PHASE_SECONDS);
        (at, link(share), link(1.0))
    };
    scenario.changes = vec![change(1.0, 0.5), change(2.0, 1.0)];
    let outcome = scenario.run().expect("a run without faults");
    outcome.trace_if_asked();
    let up = &outcome.up;
    let dropped = up.overflowed + up.aqm_dropped + up.policed;
    println!(
        "{name}, {rate}: {:.2} % dropped, {} marked",
        100.0 * dropped as f64 / up.segments as f64,
        up.marked
    );
    let whole = rate.bits_per_sec() as f64 * available;
    [(0.0, 1.0), (1.0, 0.5), (2.0, 1.0)].map(|(number, share)| {
        let phase = phase(&outcome, number * PHASE_SECONDS, whole * share);
        println!(
            "  from {:>2.0} s: after {:.1} s, then {:.1} % of what is available, {:.2} % lost, queue {:.2} ms",
            number * PHASE_SECONDS,
            phase.took,
            phase.settled * 100.0,
            phase.lost as f64 / phase.sent as f64 * 100.0,
            phase.queue_ms
        );
        phase
    })
}

#[track_caller]
fn judge(phases: &[Phase]) {
    for phase in phases {
        assert!(phase.took <= SETTLED_AFTER_SECONDS, "{} s", phase.took);
        assert!(phase.settled >= 0.85, "{}", phase.settled);
    }
    let sum = |what: fn(&Phase) -> u64| phases.iter().map(what).sum::<u64>() as f64;
    let lost = sum(|phase| phase.lost) / sum(|phase| phase.sent);
    assert!(lost <= 0.02, "{lost}");
}

#[test]
fn a_queue_of_two_milliseconds_is_filled() {
    let rate = rate(1000.0);
    judge(&run("2 ms", rate, |share| link(rate, share, 2.0), 1.0));
}

#[test]
fn a_queue_of_two_milliseconds_on_a_slower_link_is_filled() {
    let rate = rate(RATE_MBIT);
    judge(&run("2 ms", rate, |share| link(rate, share, 2.0), 1.0));
}

#[test]
fn a_link_with_a_queue_of_two_round_trips_is_filled() {
    let rate = rate(RATE_MBIT);
    judge(&run("2 BDP", rate, |share| link(rate, share, 100.0), 1.0));
}

#[test]
fn a_queue_that_is_managed_stays_below_its_target() {
    let rate = rate(RATE_MBIT);
    for (name, signal) in [("CoDel", Signal::Drop), ("CoDel with marks", Signal::Mark)] {
        let phases = run(name, rate, |share| managed(rate, share, signal), 1.0);
        judge(&phases);
        assert!(phases.iter().all(|phase| phase.queue_ms < 5.0));
    }
}

// spec: rate-2
#[test]
fn the_rate_settles_at_that_of_a_policer() {
    for usual in [RATE_MBIT, 1000.0] {
        let rate = rate(usual);
        judge(&run("policer", rate, |share| policed(rate, share), 0.5));
    }
}

/// The losses at a policer are not attributed to the path, and not compensated by a higher rate,
/// even if the policer is so slow that a round trip carries a few dozen packets.
// spec: rate-2
#[test]
fn losses_at_a_policer_are_not_compensated() {
    for (mbit, most) in [(20.0, 0.1), (50.0, 0.05)] {
        let rate = rate(mbit);
        for phase in run("policer", rate, |share| policed(rate, share), 0.5) {
            assert!(phase.took <= SETTLED_AFTER_SECONDS && phase.settled >= 0.85);
            let lost = phase.lost as f64 / phase.sent as f64;
            assert!(lost <= most, "{lost}");
        }
    }
}
