//! The grid of round-trip times and loss rates at 1 Gbit/s: the link is filled, and the queue stays
//! short.
//!
//! `cargo test --release -p hikyaku-sim --test sim grid -- --ignored --nocapture` prints the table.
//! `RTT=200` and `LOSS=0.1` select cells, `TRACE=1` prints the sender's state, and `SECONDS=30` sets
//! the duration.

use hikyaku_proto::StreamKind;
use hikyaku_sim::{EFFICIENCY_1500, Load, Scenario, plain_link};
use hikyaku_units::Rate;
use std::time::Duration;

const RATE: f64 = 1e9;

fn number(name: &str) -> Option<f64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn the_link_is_filled_and_the_queue_stays_small() {
    // Each round-trip time and each loss once.
    cells_are_filled(|rtt, loss| [(20.0, 0.1), (200.0, 0.0), (500.0, 0.01)].contains(&(rtt, loss)));
}

#[test]
#[ignore = "takes a minute: cargo xtask nightly"]
fn the_link_is_filled_and_the_queue_stays_small_in_all_cells() {
    let is = |name, value| number(name).is_none_or(|wanted| wanted == value);
    cells_are_filled(|rtt, loss| is("RTT", rtt) && is("LOSS", loss));
}

fn cells_are_filled(chosen: impl Fn(f64, f64) -> bool) {
    let mut faults = Vec::new();
    for (rtt, seconds) in [(20.0, 6.0), (200.0, 12.0), (500.0, 30.0)] {
        for loss in [0.0, 0.01, 0.1] {
            if chosen(rtt, loss) {
                cell(rtt, loss, number("SECONDS").unwrap_or(seconds), &mut faults);
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn cell(rtt: f64, loss: f64, seconds: f64, faults: &mut Vec<String>) {
    let rate = Rate::from_bits_per_sec(RATE as u64);
    let link = plain_link(rate, Duration::from_secs_f64(rtt / 1e3), loss);
    let queue = link.queue.map_or(0.0, |queue| rate.time_for(queue).as_secs_f64());
    let load = Load::For(Duration::from_secs_f64(seconds), StreamKind::Ordered);
    let outcome = Scenario::over(link, load, 1).run().expect("a transfer without faults");
    outcome.trace_if_asked();
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
    // The second half of the run starts earlier than in the benches, so that the test is short. The
    // bound is therefore lower.
    let filled = half >= 0.93;
    let queue_bound = (queue * 1e3 / 2.0).min(10.0);
    let small = waited <= queue_bound && late as f64 <= 0.001 * outcome.up.segments as f64;
    if !(filled && small) {
        faults.push(text);
    }
}
