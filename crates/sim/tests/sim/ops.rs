//! Random sequences of operations on two connections. Whatever happens, bytes arrive once and
//! unchanged, and all transfers complete.
//!
//! `SEED=17 cargo test -p hikyaku-sim --test sim ops` runs one sequence, `SEEDS=100000` runs more. A
//! failing sequence is shrunk to the shortest one that still fails.

use hikyaku_proto::{Side, StreamKind};
use hikyaku_sim::{Op, Plot, everywhere, play, shrunk};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Sequences in a normal run. A hundred take a second or two.
const SEEDS: u64 = 600;
/// Seeds that have failed in longer runs.
const REGRESSION_SEEDS: [u64; 4] = [8127, 15_629, 18_183, 19_707];
/// Operations of each sequence. A handshake takes many.
const OPS: usize = 250;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The violated invariant or the panic, if any.
fn fault(plot: &Plot) -> Option<String> {
    let result = catch_unwind(AssertUnwindSafe(|| play(plot)));
    match result {
        Ok(result) => result.err(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Some(format!("panic: {}", text.unwrap_or("without words")))
        }
    }
}

/// The kind of a failure, so that shrinking does not end at a different one.
fn kind(fault: &str) -> String {
    let tail = fault.split_once(": ").map_or(fault, |(_, tail)| tail);
    tail.chars().filter(|c| !c.is_ascii_digit()).take(30).collect()
}

// spec: pn-1, flow-1, hs-3
#[test]
fn every_story_ends_well() {
    let seeds: Vec<_> = match number("SEED") {
        Some(seed) => vec![seed],
        None => REGRESSION_SEEDS.into_iter().chain(0..number("SEEDS").unwrap_or(SEEDS)).collect(),
    };
    let stories: Vec<_> = seeds.into_iter().map(|seed| (seed, Plot::random(seed, OPS))).collect();
    let faults = everywhere(&stories, |(_, plot)| fault(plot));
    let found: Vec<_> =
        stories.iter().zip(faults).filter_map(|(story, what)| Some((story, what?))).collect();
    let seeds: Vec<_> = found.iter().map(|((seed, _), _)| seed).collect();
    if let Some(((seed, plot), what)) = found.first() {
        let short =
            shrunk(plot.clone(), |plot| fault(plot).is_some_and(|now| kind(&now) == kind(what)));
        let now = fault(&short).unwrap_or_default();
        panic!(
            "seeds {seeds:?} fail; the first: {what}\nshrunk to {} steps: {short:#?}\n{now}\n\
             SEED={seed} cargo test -p hikyaku-sim --test sim ops",
            short.ops.len()
        );
    }
}

/// The path MTU decreases while packets are sent one by one. Each of them is declared lost by
/// itself, forty times in succession while nothing may be sent.
#[test]
fn packets_declared_lost_one_by_one_are_no_busy_loop() {
    let (by, to) = (Side::Client, Side::Server);
    let ops = vec![
        Op::Flow { rounds: 6 },
        Op::Open { by: to, kind: StreamKind::Ordered },
        Op::Write { by: to, nth: 86, len: 1 },
        Op::Flow { rounds: 8 },
        Op::Wait { seconds: 17 },
        Op::Deliver { to, count: 46 },
        Op::Open { by, kind: StreamKind::Ordered },
        Op::Pass { time: 53_545 },
        Op::Narrow { over: 0 },
        Op::Duplicate { to: by },
        Op::Write { by, nth: 110, len: 17_994 },
        Op::Write { by, nth: 28, len: 38_852 },
        Op::Write { by, nth: 213, len: 37_237 },
        Op::Flow { rounds: 23 },
    ];
    assert_eq!(fault(&Plot { settings: 1_193_074_509, ops }), None);
}

#[test]
fn a_failing_sequence_is_shrunk_to_the_operations_that_matter() {
    let plot = Plot::random(1, 200);
    let reads =
        |plot: &Plot| plot.ops.iter().filter(|op| format!("{op:?}").contains("Read")).count();
    assert!(reads(&plot) > 2);
    let short = shrunk(plot, |plot| reads(plot) >= 2);
    assert_eq!(short.ops.len(), 2, "{short:?}");
    assert!(format!("{short:?}").matches("len: 0").count() == 2, "{short:?}");
}
