//! Limits of the rate: each place that takes one, on each way and in both directions.
//!
//! A limit that is not kept sends the bytes of a test in a fraction of the time that they may take, on loopback. The fast tests
//! look at that only, since a slow machine is no fault of a limit. An ignored test measures how exactly each limit is kept.

mod daemons;
mod far;
mod gateways;
mod here;
mod mounts;
mod places;

use daemons::Daemons;
use far::Far;
use gateways::Gateways;
use here::Here;
use mounts::{Mounts, can_mount};
use places::TABLE;
use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// The limit of every place: 16 Mbit/s.
const LIMIT: &str = "16mbit";
/// The same in KiB a second, as `sync --bwlimit` takes it.
const LIMIT_KIB: &str = "1953";
const LIMIT_BYTES: f64 = 2e6;
/// Bytes of the fast tests, and of 10 s.
const FEW: usize = 3_000_000;
const MANY: usize = 20_000_000;

/// Which way payload goes, as the user sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Down,
    Up,
}

const WAYS: [Way; 2] = [Way::Down, Way::Up];

/// One place, what carries the bytes, and the direction.
struct Cell<'a> {
    place: &'static str,
    by: &'static str,
    way: Way,
    /// Moves so many bytes, and tells how long that took.
    work: Box<dyn Fn(usize) -> Duration + Send + Sync + 'a>,
}

impl Cell<'_> {
    fn name(&self) -> String {
        format!("{}, {}, {:?}", self.place, self.by, self.way)
    }

    /// The time that so many bytes of payload take at the limit.
    fn due(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 / LIMIT_BYTES)
    }
}

/// Moves `bytes` in each of the cells at once. Returns how long each took.
fn run(cells: &[Cell<'_>], bytes: usize) -> Vec<Duration> {
    thread::scope(|scope| {
        let started: Vec<_> =
            cells.iter().map(|cell| scope.spawn(move || (cell.work)(bytes))).collect();
        started.into_iter().map(|cell| cell.join().unwrap()).collect()
    })
}

/// How long a command takes that has to succeed.
fn timed(command: &mut Command) -> Duration {
    said(command).0
}

/// The same, and what it prints.
fn said(command: &mut Command) -> (Duration, Vec<u8>) {
    let begin = Instant::now();
    let output: Output = command.output().unwrap();
    let took = begin.elapsed();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    (took, output.stdout)
}

/// A name for the files of a cell.
fn word(cell: (&str, &str, Way)) -> String {
    let name = format!("{cell:?}");
    name.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Each of the cells moved the bytes no faster than its limit allows.
fn assert_kept(cells: &[Cell<'_>]) {
    assert!(!cells.is_empty());
    let mut wrong = Vec::new();
    for (cell, took) in cells.iter().zip(run(cells, FEW)) {
        println!("{}: {took:.1?}", cell.name());
        if took < cell.due(FEW).mul_f64(0.9) {
            wrong.push(format!("{}: {took:.1?}", cell.name()));
        }
    }
    assert!(wrong.is_empty(), "faster than {LIMIT} allows: {wrong:#?}");
}

#[test]
fn every_place_that_takes_a_rate_has_a_row() {
    let rows: BTreeSet<&str> = TABLE.iter().map(|row| row.place).collect();
    let known = places::of_program();
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    assert_eq!(rows, known, "the rows, and what the program says of itself");
    places::assert_ways_of_copies();
}

#[test]
fn daemons_and_their_clients_keep_every_limit_on_every_way() {
    assert_kept(&Daemons::new("rates-daemons").cells());
}

#[test]
fn mounts_keep_the_limits_of_daemons_and_keys() {
    let mounts = Mounts::new("rates-mounts");
    if can_mount() {
        assert_kept(&mounts.cells());
    }
}

#[test]
fn the_sessions_of_a_key_keep_its_limit_together() {
    let one = Daemons::new("rates-together");
    for way in WAYS {
        // Four copies of which each would take a quarter of the time alone.
        let last = run(&one.of_one_key(way), 1_000_000).into_iter().max().unwrap();
        assert!(last > Duration::from_secs_f64(0.9 * 4e6 / LIMIT_BYTES), "{way:?}: {last:?}");
    }
}

#[test]
fn gateways_keep_every_limit_on_every_way() {
    assert_kept(&Gateways::new("rates-gateways").cells());
}

#[test]
fn copies_sessions_and_trees_through_ssh_keep_every_limit_on_every_way() {
    let far = Far::new("rates-far");
    // The server admits only so many logins at once.
    far.cells().chunks(24).for_each(assert_kept);
}

#[test]
fn tests_and_downloads_from_web_servers_keep_their_limits() {
    assert_kept(&Here::new("rates-here").cells());
}

/// What passes in 10 s differs from the limit by at most a twentieth, on a machine that has time for it. The start and the end
/// of a program, measured by the same with one byte, are left out where that makes it faster, and only there.
#[test]
#[ignore = "measures: needs a quiet machine, and takes five minutes"]
fn limits_are_kept_to_a_twentieth() {
    let (daemons, gateways) = (Daemons::new("exact-daemons"), Gateways::new("exact-gateways"));
    let (far, here) = (Far::new("exact-far"), Here::new("exact-here"));
    let mounts = Mounts::new("exact-mounts");
    let cells = [daemons.cells(), mounts.cells(), gateways.cells(), far.cells(), here.cells()];
    let mut left: BTreeSet<(&str, &str)> = places::all().collect();
    left.retain(|(_, by)| can_mount() || *by != places::MOUNT);
    let (mut wrong, mut all) = (Vec::new(), Vec::new());
    let only = std::env::var("HK_RATES").unwrap_or_default();
    let cells: Vec<Cell<'_>> =
        cells.into_iter().flatten().filter(|cell| cell.name().contains(&only)).collect();
    for batch in cells.chunks(BATCH) {
        let empty = run(batch, 1);
        for ((cell, took), empty) in batch.iter().zip(run(batch, MANY)).zip(empty) {
            left.remove(&(cell.place, cell.by));
            let due = cell.due(MANY).as_secs_f64();
            let least = due / took.as_secs_f64();
            let most = due / took.saturating_sub(empty).as_secs_f64();
            let line = format!("{least:.3} to {most:.3} of the limit: {}", cell.name());
            println!("{line}");
            if least > 1.05 || most < 0.95 {
                wrong.push(line.clone());
            }
            all.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?} of {}", all.len());
    assert!(!only.is_empty() || left.is_empty(), "not measured: {left:?}");
}

/// Cells that are measured at once.
const BATCH: usize = 8;
