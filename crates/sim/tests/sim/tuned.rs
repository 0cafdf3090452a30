//! The number of parallel TCP connections, packet by packet: the rule against fixed numbers.
//!
//! `cargo test --release -p hikyaku-sim --test sim tuned -- --ignored --nocapture` prints more paths, with all fixed numbers.

use hikyaku_link::{LinkSpec, LossModel};
use hikyaku_sim::{Progress, Several};
use hikyaku_tuner::{Carried, ClimbOptions, Controller, Look};
use hikyaku_units::{DataSize, Instant, Probability, Rate};
use std::time::Duration;

/// A path, and how long it is used.
#[derive(Clone, Copy)]
struct Cell {
    mbit: u64,
    rtt: u64,
    /// In products of rate and round trip.
    queue: f64,
    loss: f64,
    seconds: u64,
}

impl Cell {
    const fn new(mbit: u64, rtt: u64, queue: f64, loss: f64, seconds: u64) -> Self {
        Self { mbit, rtt, queue, loss, seconds }
    }

    /// Mbit/s in all of the time, and the number of connections at the end.
    fn run(self, mut controller: Controller, seed: u64) -> (f64, u32) {
        let rate = Rate::from_bits_per_sec(self.mbit * 1_000_000);
        let rtt = Duration::from_millis(self.rtt);
        let link = LinkSpec {
            rate: Some(rate),
            queue: Some(rate.in_time(rtt.mul_f64(self.queue))),
            delay: rtt / 2,
            loss: LossModel::Bernoulli(Probability::new(self.loss)),
            ..LinkSpec::default()
        };
        // What Linux' buffers of 6 MB hold.
        let several = Several { link, window: 1900, seed };
        let (time, mut gone, mut last) = (Duration::from_secs(self.seconds), 0, Vec::new());
        let bytes = several.run(time + Duration::from_secs(1), &[time], |now, all| {
            gone += closed(&last, all);
            last = all.to_vec();
            let flowing = all.iter().filter(|one| one.bytes > 0);
            let carried: Vec<Carried> = flowing.map(carried).collect();
            let open: u64 = all.iter().map(|one| one.bytes).sum();
            controller.handle_look(&Look {
                now: Instant::ZERO + now,
                bytes: DataSize::from_bytes(gone + open),
                held_up: Duration::ZERO,
                round_trip: rtt,
                connections: &carried,
            });
            controller.n() as usize
        });
        (bytes[0] as f64 * 8e-6 / self.seconds as f64, controller.n())
    }

    fn fixed(self, n: u32) -> f64 {
        self.run(Controller::fixed(n), 1).0
    }
}

/// Bytes of the connections that were closed since the last look.
fn closed(before: &[Progress], now: &[Progress]) -> u64 {
    let is_gone = |one: &&Progress| now.iter().all(|other| other.number != one.number);
    before.iter().filter(is_gone).map(|one| one.bytes).sum()
}

fn carried(one: &Progress) -> Carried {
    let bytes = DataSize::from_bytes(one.bytes);
    Carried { id: one.number as u32, bytes, round_trip: one.round_trip }
}

fn climb() -> Controller {
    Controller::climb(&ClimbOptions::default())
}

/// Compares the rule with fixed numbers. Returns its shares of the best and of sixteen.
fn shares(cell: Cell, fixed: &[u32]) -> (f64, f64) {
    let Cell { mbit, rtt, queue, loss, .. } = cell;
    let (rule, n) = cell.run(climb(), 1);
    let all: Vec<f64> = fixed.iter().map(|n| cell.fixed(*n)).collect();
    let best = all.iter().copied().fold(0.0, f64::max);
    let sixteen = fixed.iter().position(|n| *n == 16).map_or(best, |at| all[at]);
    let all: Vec<String> = all.iter().map(|mbit| format!("{mbit:.0}")).collect();
    println!(
        "{mbit} Mbit/s, {rtt} ms, queue {queue}, {loss}: {rule:.1} ({n}), of {fixed:?} {}",
        all.join(" ")
    );
    (rule / best, rule / sixteen)
}

#[test]
fn the_rule_is_near_the_best_fixed_number_on_lossy_and_on_clean_paths() {
    for cell in [
        Cell::new(100, 50, 0.25, 0.01, 20),
        Cell::new(100, 100, 1.0, 0.005, 20),
        Cell::new(50, 200, 0.5, 0.002, 20),
        Cell::new(100, 30, 0.1, 0.0, 20),
        Cell::new(50, 100, 1.0, 0.0, 20),
    ] {
        let (of_best, of_sixteen) = shares(cell, &[4, 16, 64]);
        assert!(of_best >= 0.85 && of_sixteen >= 0.95, "{of_best:.2}, {of_sixteen:.2}");
    }
}

#[test]
#[ignore = "minutes, in a release build"]
fn more_paths_with_all_fixed_numbers() {
    for (mbit, rtt) in [(100, 30), (100, 200), (300, 100), (1000, 100)] {
        for (queue, loss) in [(0.1, 0.0), (1.0, 0.0), (0.3, 1e-4), (1.0, 1e-3), (0.3, 0.01)] {
            shares(Cell::new(mbit, rtt, queue, loss, 40), &[1, 2, 4, 8, 16, 32, 64]);
        }
    }
}
