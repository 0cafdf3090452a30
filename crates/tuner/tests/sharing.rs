//! Several tuned transfers on one path: does each get its part?
//!
//! The path is a model: connections share the bottleneck evenly, and none gets more than a window a round trip. Each
//! epoch's goodput is off by up to 5 %, and the epochs of the transfers are not aligned.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use hikyaku_tuner::{Adaptive, AdaptiveOptions, Decision, LimitedBy, Sample, Tuner};
use hikyaku_units::DataSize;
use std::time::Duration;

/// Time advances in steps of this many seconds.
const STEP: f64 = 0.1;
/// Seconds between the begins of two transfers.
const APART: f64 = 100.0;

/// A path in bytes a second: all connections together, and each at most.
struct Path {
    all: f64,
    each: f64,
}

struct Transfer {
    tuner: Tuner,
    decision: Decision,
    /// Of the epoch.
    bytes: f64,
    seconds: f64,
    epoch: f64,
    /// Of the time that counts.
    counted: f64,
}

impl Transfer {
    fn new(epoch: f64) -> Self {
        let options =
            AdaptiveOptions { epoch: Duration::from_secs_f64(epoch), ..AdaptiveOptions::default() };
        let tuner = Tuner::Adaptive(Adaptive::new(&options));
        let decision = tuner.start();
        Self { tuner, decision, bytes: 0.0, seconds: 0.0, epoch, counted: 0.0 }
    }
}

/// Bytes of each of `count` transfers in the last 100 s, the last of which begins 100 s before that, and the connections that
/// each has at the end.
fn run(path: &Path, count: usize, seed: u64) -> (Vec<f64>, Vec<u32>) {
    let mut random = seed;
    let mut noise = || {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        0.95 + 0.1 * ((random >> 33) as f64 / f64::from(1_u32 << 31))
    };
    let mut transfers: Vec<Transfer> = Vec::new();
    let end = APART * (count as f64 + 1.0);
    let mut now = 0.0;
    while now < end {
        if now >= APART * transfers.len() as f64 && transfers.len() < count {
            transfers.push(Transfer::new(1.5 + 0.1 * transfers.len() as f64));
        }
        let connections: u32 = transfers.iter().map(|transfer| transfer.decision.n).sum();
        let each = path.each.min(path.all / f64::from(connections));
        for transfer in &mut transfers {
            let moved = each * f64::from(transfer.decision.n) * STEP;
            transfer.bytes += moved;
            transfer.seconds += STEP;
            if now >= end - APART {
                transfer.counted += moved;
            }
            if transfer.seconds + STEP / 2.0 >= transfer.epoch {
                let sample = Sample {
                    n: transfer.decision.n,
                    bytes: DataSize::from_bytes((transfer.bytes * noise()) as u64),
                    elapsed: Duration::from_secs_f64(transfer.seconds),
                    limited_by: LimitedBy::Network,
                };
                transfer.decision = transfer.tuner.handle_sample(&sample);
                (transfer.bytes, transfer.seconds) = (0.0, 0.0);
            }
        }
        now += STEP;
    }
    let counted = transfers.iter().map(|transfer| transfer.counted).collect();
    (counted, transfers.iter().map(|transfer| transfer.decision.n).collect())
}

/// Jain's index: 1 where all have the same, 1/n where one has everything.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|s| s * s).sum::<f64>());
    sum * sum / (shares.len() as f64 * squares)
}

#[test]
fn four_transfers_that_begin_one_after_the_other_share_the_path() {
    // 1 Gbit/s: windows of 64 KiB over 10 ms, and what Debian's buffers allow over 200 ms.
    for (each, name) in [(6.5e6, "64 KiB, 10 ms"), (19e6, "Debian, 200 ms")] {
        let path = Path { all: 117e6, each };
        for seed in 1..=8 {
            let (bytes, connections) = run(&path, 4, seed);
            let index = jain(&bytes);
            println!("{name}, seed {seed}: {index:.3}, connections {connections:?}");
            assert!(index >= 0.9, "{name}, seed {seed}: {index:.3}, {connections:?}");
            let used = bytes.iter().sum::<f64>() / (APART * path.all);
            assert!(used > 0.97, "{name}, seed {seed}: {used:.3}");
        }
    }
}
