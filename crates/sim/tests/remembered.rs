//! A path that is remembered starts at its rate.
//!
//! `cargo test --release -p hikyaku-sim --test remembered -- --nocapture` prints what was delivered in
//! each tenth of a second.

use hikyaku_proto::{PathHint, StreamKind};
use hikyaku_sim::{EFFICIENCY_1500, Load, Scenario, plain_link};
use hikyaku_units::Rate;
use std::time::Duration;

/// Seconds from the first packet to the first tenth from which the mean of a second is at least nine
/// tenths of what is possible.
fn start(loss: f64, seed: u64) -> f64 {
    let rate = Rate::from_bits_per_sec(1_000_000_000);
    let link = plain_link(rate, Duration::from_millis(200), loss);
    let load = Load::For(Duration::from_secs(4), StreamKind::Ordered);
    let mut scenario = Scenario::over(link, load, seed);
    scenario.client.hint = Some(PathHint {
        rate: Rate::from_bits_per_sec(945_000_000),
        base_rtt: Duration::from_millis(200),
    });
    let outcome = scenario.run().expect("right bytes");
    let mean = |from: f64, seconds: f64| {
        let (from, seconds) = (Duration::from_secs_f64(from), Duration::from_secs_f64(seconds));
        outcome.goodput_between(from, from + seconds).bits_per_sec() as f64 / 1e6
    };
    let tenths: Vec<String> =
        (0..25).map(|i| format!("{:.0}", mean(f64::from(i) / 10.0, 0.1))).collect();
    println!("loss {loss}, seed {seed}: {}", tenths.join(" "));
    let wanted = 0.9 * (1.0 - loss) * 1e3 * EFFICIENCY_1500;
    (0..30)
        .map(|i| f64::from(i) / 10.0)
        .find(|&at| mean(at, 1.0) >= wanted)
        .unwrap_or(f64::INFINITY)
}

#[test]
fn a_remembered_path_is_full_within_a_second() {
    for loss in [0.0, 0.01] {
        let mut starts: Vec<f64> = (0..5).map(|seed| start(loss, seed)).collect();
        starts.sort_by(f64::total_cmp);
        println!("loss {loss}: {starts:?}");
        assert!(starts[2] <= 1.0, "loss {loss}: {starts:?}");
    }
}
