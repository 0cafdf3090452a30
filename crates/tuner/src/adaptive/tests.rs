//! Tests of the adaptive rule on models of goodput.

use super::*;
use crate::{LimitedBy, Tuner};
use alloc::vec::Vec;
use hikyaku_units::DataSize;

/// Numbers that the rule asks for on a path with this goodput in bytes a second.
fn asked(epochs: usize, mut goodput: impl FnMut(usize, u32) -> f64) -> Vec<u32> {
    let mut tuner = Tuner::Adaptive(Adaptive::new(&AdaptiveOptions::default()));
    let (mut decision, mut numbers) = (tuner.start(), Vec::new());
    for epoch in 0..epochs {
        numbers.push(decision.n);
        let elapsed = Duration::from_millis(1500);
        let bytes = goodput(epoch, decision.n) * elapsed.as_secs_f64();
        let bytes = DataSize::from_bytes(bytes as u64);
        let limited_by = LimitedBy::Network;
        decision = tuner.handle_sample(&Sample { n: decision.n, bytes, elapsed, limited_by });
    }
    numbers
}

fn path(each: f64, all: f64) -> impl Fn(usize, u32) -> f64 {
    move |_, n| (each * f64::from(n)).min(all)
}

#[test]
fn it_stays_a_little_above_the_bend() {
    let numbers = asked(14, path(6.5e6, 117e6));
    assert_eq!(numbers, [4, 8, 16, 32, 32, 21, 21, 21, 21, 21, 21, 21, 21, 32]);
}

#[test]
fn a_look_that_brings_nothing_is_rarely_repeated() {
    let numbers = asked(200, path(6.5e6, 117e6));
    let looks = numbers.iter().skip(6).filter(|&&n| n != 21).count();
    assert!((1..=5).contains(&looks), "{looks}");
}

#[test]
fn one_connection_may_be_enough() {
    assert_eq!(asked(5, path(200e6, 100e6)), [4, 8, 8, 5, 5]);
}

#[test]
fn it_grows_to_the_cap_where_every_connection_brings_as_much() {
    assert_eq!(asked(7, path(1e6, 1e12)), [4, 8, 16, 32, 64, 64, 64]);
}

#[test]
fn noise_does_not_end_the_growth_far_below_the_bend() {
    for seed in 1..200_u64 {
        let mut state = seed;
        let mut noise = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            0.9 + 0.2 * ((state >> 33) as f64 / f64::from(1_u32 << 31))
        };
        let clean = path(6.5e6, 117e6);
        let numbers = asked(12, |epoch, n| clean(epoch, n) * noise());
        let n = numbers[11];
        assert!((16..=32).contains(&n), "seed {seed}: {numbers:?}");
    }
}

#[test]
fn a_path_that_becomes_wider_is_noticed() {
    let numbers = asked(40, |epoch, n| {
        let all = if epoch < 10 { 26e6 } else { 208e6 };
        (6.5e6 * f64::from(n)).min(all)
    });
    assert!(numbers[9] <= 5 && numbers[39] >= 32, "{numbers:?}");
}

#[test]
fn a_path_that_becomes_worse_is_searched_anew() {
    let numbers = asked(20, |epoch, n| {
        let each = if epoch < 8 { 6.5e6 } else { 1e6 };
        (each * f64::from(n)).min(117e6)
    });
    assert_eq!(numbers[7], 21, "{numbers:?}");
    assert_eq!(numbers[10], 11, "{numbers:?}");
    assert_eq!(numbers[19], 64, "{numbers:?}");
}
