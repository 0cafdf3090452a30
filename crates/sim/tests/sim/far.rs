//! Paths with a round-trip time of minutes (F08) and outages of hours (F09), in simulated time.

use hikyaku_link::{LinkSpec, Outage};
use hikyaku_proto::StreamKind;
use hikyaku_sim::{Load, Outcome, Scenario, plain_link};
use hikyaku_units::{Instant, Rate};
use std::time::Duration;

const RATE: u64 = 20_000_000;
const BEGIN: Instant = Instant::from_millis(1000);

/// Sets the timeouts of both ends to `wait`.
fn patient(scenario: &mut Scenario, wait: Duration) {
    for config in [&mut scenario.client, &mut scenario.server] {
        (config.idle_timeout, config.connect_timeout) = (wait, wait);
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_transfer_works_with_a_round_trip_of_minutes() {
    // 10 MB take four seconds at this rate, so that round trips dominate the duration.
    for (round_trip, loss) in [
        (Duration::from_millis(1500), 0.0),
        (Duration::from_millis(1500), 0.05),
        (seconds(60), 0.0),
        (seconds(60), 0.05),
        (seconds(2400), 0.0),
        (seconds(2400), 0.05),
    ] {
        let link = plain_link(Rate::from_bits_per_sec(RATE), round_trip, loss);
        let mut scenario = Scenario::over(link, Load::Bytes(10_000_000, StreamKind::Object), 3);
        patient(&mut scenario, 30 * round_trip);
        scenario.limit = 60 * round_trip;
        let outcome = scenario.run().expect("all bytes arrive");
        outcome.trace_if_asked();
        let trips = (outcome.took - seconds(4)).as_secs_f64() / round_trip.as_secs_f64();
        let again = outcome.client.sent.packets as f64 / (10_000_000.0 / 1400.0);
        println!("{round_trip:?}, {loss}: {trips:.1} round trips, {again:.2} times what is needed");
        let most = if loss > 0.0 { 12.0 } else { 6.0 };
        assert!(trips <= most, "{trips}, at most {most}");
        assert!(again <= 1.5, "{again}");
    }
}

#[test]
fn the_rate_recovers_after_the_path_becomes_much_longer_and_shorter() {
    let link = |ms| plain_link(Rate::from_bits_per_sec(RATE), Duration::from_millis(ms), 0.001);
    let load = Load::For(seconds(60), StreamKind::Object);
    for seed in 1..4 {
        let mut scenario = Scenario::over(link(20), load, seed);
        let change = |at, ms| (BEGIN + seconds(at), link(ms), link(ms));
        scenario.changes = vec![change(20, 600), change(40, 20)];
        let outcome = scenario.run().expect("it goes on");
        outcome.trace_if_asked();
        for at in [20, 40, 60] {
            let late = outcome.goodput_between(seconds(at - 8), seconds(at));
            let share = late.bits_per_sec() as f64 / RATE as f64;
            println!("seed {seed}: {:.1} % of the link before {at} s", share * 100.0);
            // The queue is eight packets at 20 ms.
            assert!(share >= 0.75, "{share}");
        }
    }
}

/// A transfer with an outage from the tenth second on, with timeouts longer than the outage.
fn outage(lasts: Duration, up: bool, down: bool) -> Outcome {
    let link = plain_link(Rate::from_bits_per_sec(RATE), Duration::from_millis(100), 0.0);
    let cut = |is_cut: bool| {
        let outage = Outage { from: BEGIN + seconds(10), lasts };
        LinkSpec { outages: is_cut.then_some(outage).into_iter().collect(), ..link.clone() }
    };
    let load = Load::For(seconds(10) + lasts + seconds(20), StreamKind::Object);
    let mut scenario = Scenario::over(link.clone(), load, 5);
    (scenario.up, scenario.down) = (cut(up), cut(down));
    patient(&mut scenario, 2 * lasts + seconds(60));
    scenario.limit = 2 * lasts + seconds(600);
    scenario.run().expect("both ends outlive it")
}

#[test]
fn an_outage_of_hours_costs_only_its_duration() {
    for (lasts, up, down) in [
        (seconds(2), true, true),
        (seconds(60), true, true),
        (seconds(60), true, false),
        (seconds(60), false, true),
        (seconds(3600), true, true),
        (seconds(24 * 3600), true, true),
    ] {
        let outcome = outage(lasts, up, down);
        outcome.trace_if_asked();
        let over = seconds(10) + lasts;
        let rate = |after: u64| {
            let from = over + Duration::from_millis(after);
            outcome.goodput_between(from, from + Duration::from_millis(500)).bits_per_sec()
        };
        let back = (0..100).map(|step| step * 100).find(|after| rate(*after) >= RATE * 8 / 10);
        // The ten seconds before and the twenty after the outage carry 1,800 packets a second. The
        // other packets are probes.
        let questions = outcome.client.sent.packets.saturating_sub(30 * RATE / 8 / 1400);
        let a_second = questions as f64 / lasts.as_secs_f64();
        println!(
            "{lasts:?}, {up}, {down}: back after {back:?} ms, {a_second:.1} questions a second"
        );
        assert!(back.is_some_and(|back| back <= 2000), "{back:?}");
        if lasts >= seconds(3600) {
            assert!(a_second <= 5.0, "{a_second}");
        }
    }
}
