//! Refusals, fixed numbers, and the published rule by looks.

use super::*;
use crate::look::Carried;
use crate::paper::PaperOptions;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::DataSize;

/// Looks ten times a second at connections of which each brings 1 MB/s, until `seconds` have passed; `granted` of them at most.
fn numbers(mut controller: Controller, seconds: u64, granted: u32) -> Vec<u32> {
    let (mut each, mut numbers) = (Vec::new(), Vec::new());
    for tick in 0..seconds * 10 {
        let now = Instant::from_millis(100 * tick);
        while controller.n() > granted {
            controller.handle_refusal(granted, now);
        }
        let n = controller.n();
        numbers.push(n);
        each.resize(each.len().max(n as usize), 0_u64);
        each.iter_mut().take(n as usize).for_each(|bytes| *bytes += 100_000);
        let carried = |(id, bytes): (u32, &u64)| Carried {
            id,
            bytes: DataSize::from_bytes(*bytes),
            round_trip: None,
        };
        let connections: Vec<_> = (0..n).zip(&each).map(carried).collect();
        let look = Look {
            now,
            bytes: DataSize::from_bytes(each.iter().sum()),
            held_up: Duration::ZERO,
            round_trip: Duration::from_millis(10),
            left: None,
            connections: &connections,
        };
        controller.handle_look(&look);
    }
    numbers
}

#[test]
fn each_refusal_is_one_connection_less_until_only_those_that_carry_bytes_are_left() {
    let mut controller = Controller::climb(&ClimbOptions::default());
    for expected in [15, 14, 13] {
        controller.handle_refusal(0, Instant::ZERO);
        assert_eq!(controller.n(), expected);
    }
    controller.handle_refusal(13, Instant::ZERO);
    assert_eq!(controller.n(), 13, "all that are left carry bytes");
}

#[test]
fn a_fixed_number_stays_but_for_refusals() {
    assert!(numbers(Controller::fixed(7), 30, 64).iter().all(|n| *n == 7));
    assert!(numbers(Controller::fixed(7), 300, 3).iter().all(|n| *n == 3));
}

#[test]
fn the_published_rule_measures_its_chunks_by_looks() {
    let options = PaperOptions { cap: 32, ..PaperOptions::default() };
    let paper = Paper::new(&options, Duration::from_millis(10));
    let mut numbers = numbers(Controller::paper(paper, 32), 60, 64);
    numbers.dedup();
    assert_eq!(numbers[..4], [4, 8, 16, 32]);
}
