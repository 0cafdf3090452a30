//! A rate limit of the user is kept, and start-up ends below it.

use hikyaku_proto::{Policy, StreamKind};
use hikyaku_sim::{Load, Scenario, plain_link};
use hikyaku_units::Rate;
use std::time::Duration;

fn scenario() -> Scenario {
    let rate = Rate::from_bits_per_sec(1_000_000_000);
    let link = plain_link(rate, Duration::from_millis(200), 0.01);
    Scenario::over(link, Load::For(Duration::from_secs(10), StreamKind::Object), 3)
}

#[test]
fn the_goodput_equals_a_payload_limit() {
    let mut scenario = scenario();
    scenario.client.payload_rate = Some(Rate::from_bits_per_sec(300_000_000));
    let outcome = scenario.run().unwrap();
    let goodput = outcome.goodput_between(Duration::from_secs(4), Duration::from_secs(10));
    let share = goodput.bits_per_sec() as f64 / 300e6;
    assert!((0.98..1.02).contains(&share), "{goodput}");
}

#[test]
fn a_wire_limit_is_never_exceeded() {
    let mut scenario = scenario();
    scenario.client.wire_rate = Some(Rate::from_bits_per_sec(300_000_000));
    let outcome = scenario.run().unwrap();
    let wire = outcome.up.bytes as f64 * 8.0 / outcome.took.as_secs_f64();
    assert!((0.85 * 300e6..=1.005 * 300e6).contains(&wire), "{wire}");
}

/// A fixed rate is not reduced by loss: the sender sends more to compensate for the loss of the
/// path, up to a limit (rate-7).
#[test]
fn the_goodput_equals_a_fixed_rate_at_any_loss() {
    for loss in [0.0, 0.05, 0.25] {
        let rate = Rate::from_bits_per_sec(1_000_000_000);
        let link = plain_link(rate, Duration::from_millis(50), loss);
        let load = Load::For(Duration::from_secs(20), StreamKind::Object);
        let mut scenario = Scenario::over(link, load, 3);
        scenario.client.policy = Policy::Fixed(Rate::from_bits_per_sec(100_000_000));
        let outcome = scenario.run().unwrap();
        outcome.trace_if_asked();
        let goodput = outcome.goodput_between(Duration::from_secs(2), Duration::from_secs(20));
        let share = goodput.bits_per_sec() as f64 / 100e6;
        println!("loss {loss}: {share:.3} of the rate");
        assert!((0.9..1.02).contains(&share), "loss {loss}: {goodput}");
    }
}

// spec: rate-7
/// A fixed rate above the capacity of the path does not flood the path for the whole run.
#[test]
fn a_fixed_rate_that_a_path_does_not_bear_is_slowed() {
    let link = plain_link(Rate::from_bits_per_sec(20_000_000), Duration::from_millis(50), 0.0);
    let load = Load::For(Duration::from_secs(60), StreamKind::Object);
    let mut scenario = Scenario::over(link, load, 3);
    scenario.client.policy = Policy::Fixed(Rate::from_bits_per_sec(50_000_000));
    let outcome = scenario.run().unwrap();
    outcome.trace_if_asked();
    let sent = outcome.up.bytes as f64 * 8.0 / outcome.took.as_secs_f64();
    println!("{:.1} Mbit/s sent", sent / 1e6);
    assert!(sent < 30e6, "{sent}");
    let goodput = outcome.goodput_between(Duration::from_secs(20), Duration::from_secs(60));
    assert!(goodput > Rate::from_bits_per_sec(8_000_000), "{goodput}");
}

/// On a local network the round-trip time is shorter than the interval of acknowledgements. A
/// window of one round trip at the limit would be only one or two packets.
#[test]
fn the_goodput_equals_a_limit_on_a_short_path() {
    for (cap, micros) in [(20e6, 20), (100e6, 20), (100e6, 100), (100e6, 400), (1e9, 60)] {
        let rate = Rate::from_bits_per_sec(10_000_000_000);
        let link = plain_link(rate, Duration::from_micros(micros), 0.0);
        let load = Load::For(Duration::from_secs(2), StreamKind::Ordered);
        let mut scenario = Scenario::over(link, load, 3);
        scenario.client.payload_rate = Some(Rate::from_bits_per_sec(cap as u64));
        let outcome = scenario.run().unwrap();
        outcome.trace_if_asked();
        let goodput = outcome.goodput_between(Duration::from_secs(1), Duration::from_secs(2));
        let share = goodput.bits_per_sec() as f64 / cap;
        println!("{cap} bit/s, {micros} us: {share:.3}");
        assert!((0.98..1.02).contains(&share), "{goodput} of {cap} at {micros} us");
    }
}
