//! The grid of round trips and loss rates on 1 Gbit/s: the link is filled, the queue stays small.
//!
//! `cargo test --release -p hikyaku-sim --test grid -- --nocapture` prints the table; `RTT=200` and
//! `LOSS=0.1` pick cells, `TRACE=1` prints what the sender knew, `SECONDS=30` runs longer.

use hikyaku_link::{LinkSpec, LossModel};
use hikyaku_proto::StreamKind;
use hikyaku_sim::{EFFICIENCY_1500, Load, Outcome, Scenario};
use hikyaku_units::{DataSize, Probability, Rate};
use std::time::Duration;

const RATE: f64 = 1e9;

fn number(name: &str) -> Option<f64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn the_link_is_filled_and_the_queue_stays_small() {
    let mut faults = Vec::new();
    for (rtt, seconds) in [(20.0, 6.0), (200.0, 12.0), (500.0, 30.0)] {
        for loss in [0.0, 0.01, 0.1] {
            let picked = number("RTT").is_none_or(|wanted| wanted == rtt)
                && number("LOSS").is_none_or(|wanted| wanted == loss);
            if picked {
                cell(rtt, loss, number("SECONDS").unwrap_or(seconds), &mut faults);
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn cell(rtt: f64, loss: f64, seconds: f64, faults: &mut Vec<String>) {
    let queue = (RATE / 8.0 * rtt / 1e3 / 4.0).min(5e6);
    let link = LinkSpec {
        rate: Some(Rate::from_bits_per_sec(RATE as u64)),
        delay: Duration::from_secs_f64(rtt / 2e3),
        queue: Some(DataSize::from_bytes(queue as u64)),
        loss: LossModel::Bernoulli(Probability::new(loss)),
        ..LinkSpec::default()
    };
    let load = Load::For(Duration::from_secs_f64(seconds), StreamKind::Ordered);
    let outcome = Scenario::over(link, load, 1).run().expect("a transfer without faults");
    if number("TRACE").is_some() {
        trace(&outcome);
    }
    let most = RATE * EFFICIENCY_1500 * (1.0 - loss);
    let middle = Duration::from_secs_f64(seconds / 2.0);
    let half = outcome.goodput_between(middle, Duration::from_secs_f64(seconds));
    let half = half.bits_per_sec() as f64 / most;
    let waited = outcome.up.mean_wait_since(&outcome.up_at_half).as_secs_f64() * 1e3;
    let late = outcome.up.overflowed - outcome.up_at_half.overflowed;
    let text = format!(
        "{rtt:>5} ms, loss {:>4.1} %: second half {half:.3} of what is possible, whole {:.3}, \
         queue {waited:.2} ms, overflow {} then {late}",
        loss * 100.0,
        outcome.goodput().bits_per_sec() as f64 / most,
        outcome.up_at_half.overflowed,
    );
    println!("{text}");
    // The half begins earlier than in the benches, so that the test is short: a little less.
    let filled = half >= 0.93;
    let queue_bound = (queue * 8.0 / RATE * 1e3 / 2.0).min(10.0);
    let small = waited <= queue_bound && late as f64 <= 0.001 * outcome.up.segments as f64;
    if !(filled && small) {
        faults.push(text);
    }
}

fn trace(outcome: &Outcome) {
    for (at, stats) in &outcome.samples {
        println!(
            "{:>8.3} {:?} window {} pace {} delivery {} queue {:?} loss {} in flight {} lost {}",
            at.as_secs_f64(),
            stats.path.phase,
            stats.path.window,
            stats.path.pacing_rate,
            stats.path.delivery_rate,
            stats.path.queue,
            stats.path.ambient_loss,
            stats.in_flight,
            stats.lost_packets,
        );
    }
}
