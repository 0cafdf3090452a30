//! A connection that has measurements of its path from an earlier one starts at the path's rate.
//!
//! `cargo test --release -p hikyaku-sim --test sim remembered -- --nocapture` prints the bytes
//! delivered in each tenth of a second.

use hikyaku_proto::{PathHint, StreamKind};
use hikyaku_sim::{EFFICIENCY_1500, Load, Scenario, plain_link};
use hikyaku_units::{Instant, Rate};
use std::time::Duration;

const RATE: Rate = Rate::from_bits_per_sec(1_000_000_000);
const ROUND_TRIP: Duration = Duration::from_millis(200);

fn remembering(loss: f64, seed: u64) -> Scenario {
    let link = plain_link(RATE, ROUND_TRIP, loss);
    let load = Load::For(Duration::from_secs(4), StreamKind::Ordered);
    let mut scenario = Scenario::over(link, load, seed);
    scenario.client.hint =
        Some(PathHint { rate: Rate::from_bits_per_sec(945_000_000), base_rtt: ROUND_TRIP });
    scenario
}

/// Seconds from the first packet to the first tenth of a second from which the mean rate of a
/// second is at least nine tenths of the possible rate.
fn start(scenario: Scenario, loss: f64) -> f64 {
    let seed = scenario.seed;
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
fn a_known_path_is_filled_within_a_second() {
    for loss in [0.0, 0.01] {
        let mut starts: Vec<f64> =
            (0..5).map(|seed| start(remembering(loss, seed), loss)).collect();
        starts.sort_by(f64::total_cmp);
        println!("loss {loss}: {starts:?}");
        assert!(starts[2] <= 1.0, "loss {loss}: {starts:?}");
    }
}

#[test]
fn a_delayed_train_does_not_replace_the_known_rate() {
    let mut scenario = remembering(0.0, 1);
    let whole = scenario.up.clone();
    scenario.up.rate = Some(Rate::from_bits_per_sec(650_000_000));
    scenario.changes = vec![(Instant::from_millis(1450), whole, scenario.down.clone())];
    let took = start(scenario, 0.0);
    assert!(took <= 1.5, "{took}");
}

#[test]
fn retransmitted_flights_do_not_distort_the_servers_round_trip_time() {
    let link = plain_link(RATE, ROUND_TRIP, 0.0);
    let scenario = Scenario::over(link, Load::Bytes(1000, StreamKind::Ordered), 1);
    let outcome = scenario.run().expect("right bytes");
    // The client retransmits its first flight after 4, 8, 16 ms, so that the server receives it
    // again at once.
    let (least, most) = (ROUND_TRIP * 9 / 10, ROUND_TRIP * 5 / 4);
    let known = outcome.server.path.srtt;
    assert!(known >= least && known <= most, "{known:?}");
}
