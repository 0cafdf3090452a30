//! Shares: transfers that begin one after the other, and one beside plain TCP connections.
//!
//! Each knows the path's own delay from earlier transfers. Without that it takes the least that it has seen itself: one that comes
//! to a full queue sees no queue at all.

use crate::path::Spec;
use crate::transfer::{Sight, Transfer, run};
use hikyaku_tuner::{ClimbOptions, Controller};
use std::fmt::Write as _;

/// Seconds between the beginnings of two transfers.
const APART: f64 = 15.0;

fn paths() -> Vec<(&'static str, Spec)> {
    vec![
        ("1 Gbit/s, 10 ms, 64 KB", Spec { window: 45.0, ..Spec::new(1000.0, 0.01, 1.0, 0.0) }),
        ("1 Gbit/s, 30 ms", Spec::new(1000.0, 0.03, 1.0, 0.0)),
        ("1 Gbit/s, 200 ms, queue 0.3", Spec::new(1000.0, 0.2, 0.3, 0.0)),
        ("1 Gbit/s, 200 ms, queue 0.1", Spec::new(1000.0, 0.2, 0.1, 0.0)),
        ("100 Mbit/s, 30 ms", Spec::new(100.0, 0.03, 1.0, 0.0)),
        ("1 Gbit/s, 100 ms, 0.1 %", Spec::new(1000.0, 0.1, 0.3, 1e-3)),
    ]
}

fn climb(begins: f64) -> Transfer {
    Transfer::new(Controller::climb(&ClimbOptions::default()), Sight::RoundTrips, begins)
}

/// Whether transfers know the delay of the path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Knows {
    Path,
    Nothing,
}

/// 1 where all have the same, 1/n where one has everything.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|s| s * s).sum::<f64>());
    sum * sum / (shares.len() as f64 * squares)
}

/// Jain's index of `count` transfers from 5 s to 75 s after the last has begun, the least of some seeds; the share of the path
/// that all have together; and the numbers of connections at the end.
fn shared(spec: Spec, count: usize, knows: Knows) -> (f64, f64, Vec<usize>) {
    let last = APART * (count - 1) as f64;
    let (mut least, mut used, mut numbers) = (1.0_f64, 0.0, Vec::new());
    for seed in 1..=2 {
        let new = |number: usize| {
            let one = climb(APART * number as f64);
            if knows == Knows::Path { one.knowing(spec.rtt) } else { one }
        };
        let mut all: Vec<_> = (0..count).map(new).collect();
        let bytes = run(spec, &mut all, (last + 75.1, &[last + 5.0, last + 75.0]), seed);
        let shares: Vec<f64> = bytes[1].iter().zip(&bytes[0]).map(|(to, from)| to - from).collect();
        least = least.min(jain(&shares));
        used = shares.iter().sum::<f64>() * 8e-6 / 70.0 / spec.rate;
        numbers = all.iter().map(Transfer::n).collect();
    }
    (least, used, numbers)
}

/// Rate of each of `plain` connections beside a transfer from 20 s to 60 s, in Mbit/s.
fn beside(spec: Spec, plain: usize, controller: Controller) -> f64 {
    let spec = Spec { cross: plain, ..spec };
    let mut one = [Transfer::new(controller, Sight::RoundTrips, 0.0)];
    let bytes = run(spec, &mut one, (60.1, &[20.0, 60.0]), 5);
    let own = (bytes[1][0] - bytes[0][0]) * 8e-6 / 40.0;
    (spec.rate * 0.965 - own) / plain as f64
}

/// Both tables of shares.
pub(crate) fn table() -> String {
    let mut text = String::from(
        "Jain's index (share of the path; connections) of 2 and 4 transfers, and of 4 that do not know the path\n",
    );
    for (name, spec) in paths() {
        write!(text, "{name:28}").unwrap();
        for (count, knows) in [(2, Knows::Path), (4, Knows::Path), (4, Knows::Nothing)] {
            let (index, used, numbers) = shared(spec, count, knows);
            write!(text, "  {index:.2} ({used:.2}; {numbers:?})").unwrap();
            assert!(index >= if knows == Knows::Path { 0.85 } else { 0.7 }, "{text}");
            assert!(used >= 0.95 || spec.loss > 0.0, "{text}");
        }
        text.push('\n');
    }
    text.push_str("\nMbit/s of each of 1 and 4 plain connections beside the rule (beside 16)\n");
    for (name, spec) in paths().into_iter().filter(|(_, spec)| spec.loss == 0.0) {
        write!(text, "{name:28}").unwrap();
        for plain in [1, 4] {
            let rule = beside(spec, plain, Controller::climb(&ClimbOptions::default()));
            let sixteen = beside(spec, plain, Controller::fixed(16));
            write!(text, "  {rule:.1} ({sixteen:.1})").unwrap();
        }
        text.push('\n');
    }
    text
}
