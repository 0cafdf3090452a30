//! Random worlds: servers that die, freeze, return, corrupt, stop early and have less than was reported; arrivals
//! in any order; cuts that cross the data; suspended clocks; nonsense. Whatever happens, every file is completed if one
//! of its replicas lives, and no segment is asked for while another ask owns it.
//!
//! `HK_SEED=N` runs one seed.

mod checker;
mod world;

use world::{Kind, World};

fn run(kind: Kind, seeds: core::ops::Range<u64>) {
    let one = std::env::var("HK_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let seeds = one.map_or(seeds, |seed| seed..seed + 1);
    for seed in seeds {
        World::new(kind, seed).run();
    }
}

#[test]
fn every_file_is_completed_whatever_happens() {
    run(Kind::Wild, 0..4_000);
}

#[test]
fn without_failures_every_segment_arrives_once() {
    run(Kind::Calm, 0..1_000);
}
