//! The number of parallel TCP connections, packet by packet: the rule against fixed numbers.
//!
//! `cargo test --release -p hikyaku-sim --test sim tuned -- --ignored --nocapture` prints more paths, with all fixed numbers.

use hikyaku_link::{LinkSpec, LossModel};
use hikyaku_sim::{Progress, Several, jain};
use hikyaku_tuner::{Carried, ClimbOptions, Controller, Look};
use hikyaku_units::{DataSize, Instant, Probability, Rate};
use std::time::Duration;

/// Time between the beginnings of two transfers.
const APART: Duration = Duration::from_secs(10);

/// A path, and how long it is used.
#[derive(Clone, Copy, Debug)]
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

    fn several(self, transfers: usize, seed: u64) -> Several {
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
        Several { link, window: 1900, transfers, seed }
    }

    /// Mbit/s in all of the time, and the number of connections at the end.
    fn run(self, controller: Controller, seed: u64) -> (f64, u32) {
        let time = Duration::from_secs(self.seconds);
        let mut one = Transfer::new(controller, Duration::from_millis(self.rtt));
        let several = self.several(1, seed);
        let bytes =
            several.run(time + Duration::from_secs(1), &[time], |now, _, all| one.look(now, all));
        (bytes[0][0] as f64 * 8e-6 / self.seconds as f64, one.controller.n())
    }

    /// Jain's index and the share of the line that transfers have together which begin `APART` from each other, from 5 s after
    /// the last one on until the end; and their numbers of connections then. They know the path's round-trip time from earlier
    /// transfers.
    fn shared(self, count: usize) -> (f64, f64, Vec<u32>) {
        let begins = |of: usize| APART * of as u32;
        let end = Duration::from_secs(self.seconds) + begins(count - 1);
        let new = |_| Transfer::new(climb(), Duration::from_millis(self.rtt));
        let mut all: Vec<Transfer> = (0..count).map(new).collect();
        let marks = [begins(count - 1) + Duration::from_secs(5), end];
        let several = self.several(count, 1);
        let bytes = several.run(end + Duration::from_secs(1), &marks, |now, of, open| {
            match now.checked_sub(begins(of)) {
                Some(_) => all[of].look(now, open),
                None => 0,
            }
        });
        let rates = (0..count).map(|of| (bytes[1][of] - bytes[0][of]) as f64);
        let rates: Vec<f64> = rates.map(|b| b * 8e-6 / (self.seconds - 5) as f64).collect();
        let line = rates.iter().sum::<f64>() / (self.mbit as f64 * 1448.0 / 1500.0);
        (jain(&rates), line, all.iter().map(|one| one.controller.n()).collect())
    }

    fn fixed(self, n: u32) -> f64 {
        self.run(Controller::fixed(n), 1).0
    }
}

/// A transfer whose number of connections is tuned.
struct Transfer {
    controller: Controller,
    /// The known round-trip time of the path.
    rtt: Duration,
    /// Bytes of closed connections, and the open ones at the last look.
    gone: u64,
    last: Vec<Progress>,
}

impl Transfer {
    const fn new(controller: Controller, rtt: Duration) -> Self {
        Self { controller, rtt, gone: 0, last: Vec::new() }
    }

    fn look(&mut self, now: Duration, all: &[Progress]) -> usize {
        self.gone += closed(&self.last, all);
        self.last = all.to_vec();
        let flowing = all.iter().filter(|one| one.bytes > 0);
        let carried: Vec<Carried> = flowing.map(carried).collect();
        let open: u64 = all.iter().map(|one| one.bytes).sum();
        self.controller.handle_look(&Look {
            now: Instant::ZERO + now,
            bytes: DataSize::from_bytes(self.gone + open),
            held_up: Duration::ZERO,
            round_trip: self.rtt,
            left: None,
            connections: &carried,
        });
        self.controller.n() as usize
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
fn transfers_beside_each_other_share_a_queue_and_come_back_to_few_connections() {
    for (cell, count) in [
        (Cell::new(100, 30, 0.3, 0.0, 50), 2),
        (Cell::new(100, 30, 1.0, 0.0, 50), 4),
        (Cell::new(50, 100, 0.3, 0.0, 50), 2),
    ] {
        let (jain, line, numbers) = cell.shared(count);
        println!("{cell:?}, {count}: {jain:.2}, {line:.2} of the line, {numbers:?}");
        assert!(jain >= 0.95 && line >= 0.95, "{jain:.2}, {line:.2}");
        assert!(numbers.iter().all(|n| *n <= 24), "{numbers:?}");
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
