//! A client whose address changes during a transfer, and routers that handle ECN wrongly.

use hikyaku_proto::StreamKind;
use hikyaku_sim::{Load, Marks, Middlebox, NewHost, Outcome, Rebinds, Scenario, plain_link};
use hikyaku_units::Rate;
use std::time::Duration;

const RATE: u64 = 100_000_000;

/// A transfer of `bytes` over 100 Mbit/s and 40 ms, with `middle` on the path.
fn transfer(bytes: u64, middle: Middlebox, loss: f64, seed: u64) -> Outcome {
    let link = plain_link(Rate::from_bits_per_sec(RATE), Duration::from_millis(40), loss);
    let mut scenario = Scenario::over(link, Load::Bytes(bytes, StreamKind::Object), seed);
    scenario.middle = middle;
    scenario.limit = Duration::from_secs(60);
    let outcome = scenario.run().expect("all bytes arrive");
    outcome.trace_if_asked();
    outcome
}

fn rebinding(every: Duration, host: NewHost) -> Middlebox {
    Middlebox { rebinds: Some(Rebinds { every, host }), ..Middlebox::default() }
}

// spec: path-1
#[test]
fn each_address_change_costs_a_few_round_trips() {
    let alone = transfer(30_000_000, Middlebox::default(), 0.0, 1).took;
    for (every, host) in [
        (Duration::from_secs(1), NewHost::No),
        (Duration::from_millis(500), NewHost::No),
        (Duration::from_secs(1), NewHost::Yes),
    ] {
        for seed in 1..4 {
            let outcome = transfer(30_000_000, rebinding(every, host), 0.001, seed);
            let moves = outcome.server.moves;
            let times = (outcome.took.as_secs_f64() / every.as_secs_f64()) as u64;
            println!("{every:?} {host:?}: {:?}, alone {alone:?}, {moves} moves", outcome.took);
            assert!(moves >= times.saturating_sub(1) && moves > 0, "{moves} of {times}");
            // Three round trips for each change of the port. A change of the host also costs a new
            // search for the rate.
            let each = if host == NewHost::No { 3 } else { 12 };
            let most = alone + Duration::from_millis(40) * each * (times as u32 + 1);
            assert!(outcome.took <= most, "{:?}, at most {most:?}", outcome.took);
        }
    }
}

// spec: ecn-1, ecn-2
#[test]
fn routers_that_drop_or_mark_all_packets_cost_little() {
    let alone = transfer(30_000_000, Middlebox::default(), 0.0, 1);
    assert_eq!(alone.client.lost_packets, 0);
    for marks in [Marks::Dropped, Marks::All] {
        let outcome = transfer(30_000_000, Middlebox { marks, ..Middlebox::default() }, 0.0, 1);
        println!("{marks:?}: {:?}, alone {:?}", outcome.took, alone.took);
        let most = alone.took + Duration::from_millis(1000);
        assert!(outcome.took <= most, "{marks:?}: {:?}, at most {most:?}", outcome.took);
    }
}
