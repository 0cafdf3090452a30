//! Vectors of the rule: paths that give each connection a rate by its age, and all of them no more than a line.

use super::*;
use crate::look::Carried;
use alloc::vec;
use alloc::vec::Vec;
use hikyaku_units::DataSize;

const MBIT: f64 = 1e6 / 8.0;
const RTT: Duration = Duration::from_millis(20);
const TICK: Duration = Duration::from_millis(100);

/// A path with its server and this end.
#[derive(Clone, Copy)]
struct Model {
    /// Bytes a second of a connection of this age in seconds.
    each: fn(f64) -> f64,
    line: f64,
    /// The line from 8 s on.
    later: Option<f64>,
    /// Waiting time of packets while more is offered than the line carries.
    queue: Option<Duration>,
    /// Connections that carry bytes at most, however many are opened.
    granted: usize,
    /// Share of the connections' time in which this end takes nothing.
    held_up: f64,
    /// Looks for which a connection goes on that is given up.
    lingers: usize,
    waits: Waits,
    /// All bytes of the transfer.
    size: Option<f64>,
}

/// When packets wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    InQueue,
    /// The server delays all of them.
    AtServer,
}

const FREE: Model = Model {
    each: |_| 10.0 * MBIT,
    line: 1e12,
    later: None,
    queue: Some(Duration::ZERO),
    granted: usize::MAX,
    held_up: 0.0,
    lingers: 0,
    waits: Waits::InQueue,
    size: None,
};

/// The numbers of some seconds, and what was measured.
fn run(model: Model, options: ClimbOptions, seconds: usize) -> (Vec<u32>, Vec<Measured>) {
    run_in_groups(1, model, options, seconds)
}

/// The numbers of connections that come and go in groups.
fn run_in_groups(
    unit: u32,
    model: Model,
    options: ClimbOptions,
    seconds: usize,
) -> (Vec<u32>, Vec<Measured>) {
    drive(&mut Climb::new(&options).in_groups(unit), model, options.cap, seconds)
}

fn drive(climb: &mut Climb, model: Model, cap: u32, seconds: usize) -> (Vec<u32>, Vec<Measured>) {
    let (mut ages, mut carried) = (vec![0.0_f64; 128], vec![0.0_f64; 128]);
    let (mut numbers, mut measured) = (Vec::new(), Vec::new());
    let (mut held_up, mut cap) = (0.0, cap.max(1));
    for tick in 0..seconds * 10 {
        let recent = numbers.iter().rev().take(model.lingers).copied().max().unwrap_or(0);
        let open = climb.n().max(recent) as usize;
        let flowing = open.min(model.granted);
        let offered: Vec<f64> = ages[..flowing].iter().map(|age| (model.each)(*age)).collect();
        let all: f64 = offered.iter().sum();
        let line = model.later.filter(|_| tick > 80).unwrap_or(model.line);
        let share = (line / all).min(1.0);
        for (slot, rate) in offered.iter().enumerate() {
            carried[slot] += rate * share * TICK.as_secs_f64();
            ages[slot] += TICK.as_secs_f64();
        }
        ages[flowing..].fill(0.0);
        held_up += model.held_up * flowing as f64 * TICK.as_secs_f64();
        let is_waiting = all > line || model.waits == Waits::AtServer;
        let waits = if is_waiting { model.queue } else { model.queue.map(|_| Duration::ZERO) };
        let connections: Vec<Carried> = (0..flowing)
            .map(|slot| Carried {
                id: slot as u32,
                bytes: DataSize::from_bytes(carried[slot] as u64),
                round_trip: waits.map(|waits| RTT + waits),
            })
            .collect();
        let look = Look {
            now: Instant::ZERO + TICK * tick as u32,
            bytes: DataSize::from_bytes(carried.iter().sum::<f64>() as u64),
            held_up: Duration::from_secs_f64(held_up),
            round_trip: RTT,
            left: model.size.map(|size| {
                DataSize::from_bytes((size - carried.iter().sum::<f64>()).max(0.0) as u64)
            }),
            connections: &connections,
        };
        let (window, granted) = climb.handle_look(&look, cap);
        measured.extend(window);
        cap = granted.unwrap_or(cap);
        numbers.push(climb.n());
    }
    (numbers, measured)
}

fn numbers(model: Model, seconds: usize) -> Vec<u32> {
    run(model, ClimbOptions::default(), seconds).0
}

/// The numbers without repetitions.
fn steps(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.dedup();
    numbers
}

#[test]
fn it_doubles_to_the_cap_where_every_connection_brings_as_much() {
    let asked = numbers(FREE, 5);
    assert_eq!(steps(asked), [16, 32, 64]);
    let blind = Model { queue: None, ..FREE };
    assert_eq!(steps(numbers(blind, 5)), [16, 32, 64], "without round-trip times");
}

#[test]
fn it_falls_back_one_by_one_where_new_connections_only_take_from_the_old() {
    // The line is full with 18.
    let model = Model {
        each: |_| 52.0 * MBIT,
        line: 936.0 * MBIT,
        queue: Some(Duration::from_millis(10)),
        ..FREE
    };
    let asked = numbers(model, 60);
    assert_eq!(asked.iter().max(), Some(&32));
    let falls = asked.windows(2).filter(|pair| pair[1] < pair[0]);
    assert!(falls.clone().count() > 10 && falls.clone().all(|pair| pair[0] - pair[1] == 1));
    assert!((16..=24).contains(asked.last().unwrap()), "{asked:?}");
}

#[test]
fn no_queue_no_growth_is_decided_by_what_new_connections_bring() {
    let model = Model { line: 170.0 * MBIT, queue: None, ..FREE };
    let asked = numbers(model, 19);
    assert_eq!(asked.iter().max(), Some(&32), "{asked:?}");
    assert!(asked.last().unwrap() <= &24, "{asked:?}");
}

#[test]
fn it_stays_at_the_beginning_where_a_queue_stands() {
    let queue = Some(Duration::from_millis(10));
    let model = Model { line: 100.0 * MBIT, queue, each: |_| 20.0 * MBIT, ..FREE };
    assert_eq!(steps(numbers(model, 8)), [16]);
}

#[test]
fn waiting_that_stops_no_new_connection_is_not_taken_for_a_queue() {
    // The server paces each connection, so that packets come late from the first one on.
    let queue = Some(RTT * 5);
    let model = Model { each: |_| 2.0 * MBIT, queue, waits: Waits::AtServer, ..FREE };
    assert_eq!(steps(numbers(model, 8)), [16, 24, 48, 64]);
    // They wait for less than a round trip.
    let less = Model { queue: Some(RTT / 2), ..model };
    assert_eq!(steps(numbers(less, 25)), [16, 24, 48, 64]);
    // It paces all together: one try, and back.
    let asked = numbers(Model { line: 30.0 * MBIT, ..model }, 45);
    assert!(asked.iter().max() == Some(&24) && asked.last() == Some(&16), "{asked:?}");
}

#[test]
fn a_spurt_is_not_taken_for_goodput() {
    // Slow start has opened windows that loss takes away again within 5 s.
    let each = |age: f64| (45.0 - age * 39.0 / 5.0).max(6.0) * MBIT;
    let (asked, measured) = run(Model { each, ..FREE }, ClimbOptions::default(), 8);
    assert_eq!(steps(asked), [16, 32, 64]);
    let growth = measured.iter().filter_map(|one| one.added);
    assert!(growth.clone().count() == 2 && growth.clone().all(|added| (0.9..1.1).contains(&added)));
}

#[test]
fn slow_start_is_not_taken_for_room_on_the_path() {
    // The line is full after 1.2 s.
    let each = |age: f64| (0.1 * (8.0 * age).exp2()).min(60.0) * MBIT;
    let queue = Some(Duration::from_millis(10));
    let asked = numbers(Model { each, line: 936.0 * MBIT, queue, ..FREE }, 8);
    assert_eq!(steps(asked), [16]);
}

#[test]
fn connections_that_linger_are_counted() {
    let model = Model { line: 170.0 * MBIT, queue: None, lingers: 10, ..FREE };
    let (_, measured) = run(model, ClimbOptions::default(), 15);
    let most = measured.iter().map(|one| one.goodput() / one.connections).fold(0.0, f64::max);
    assert!(most <= 10.1 * MBIT, "{} Mbit/s each", most / MBIT);
}

#[test]
fn what_this_end_holds_up_is_no_measurement() {
    let (asked, measured) = run(Model { held_up: 0.3, ..FREE }, ClimbOptions::default(), 20);
    assert_eq!((steps(asked), measured.len()), (vec![16], 0));
}

#[test]
fn connections_that_never_carry_bytes_are_not_asked_for_any_more() {
    let asked = numbers(Model { granted: 5, ..FREE }, 30);
    assert_eq!(steps(asked), [16, 5]);
}

#[test]
fn one_of_many_that_is_late_is_not_waited_for() {
    let options = ClimbOptions { cap: 16, ..ClimbOptions::default() };
    let (asked, measured) = run(Model { granted: 15, ..FREE }, options, 3);
    assert_eq!((steps(asked), measured.len()), (vec![16], 4));
}

#[test]
fn half_of_many_are_given_up_from_time_to_time_and_taken_back_if_they_are_needed() {
    let (asked, measured) = run(FREE, ClimbOptions::default(), 80);
    let least = asked[60..].iter().min();
    assert_eq!((least, asked.last()), (Some(&32), Some(&64)), "{asked:?}");
    let few = measured.iter().filter(|one| one.connections < 60.0).count();
    assert!(few <= 5, "{few} of {}", measured.len());
}

#[test]
fn what_is_not_needed_is_not_taken_back() {
    // A queue that this transfer cannot see fills the line.
    let (asked, _) =
        run(Model { later: Some(64.0 * MBIT), queue: None, ..FREE }, ClimbOptions::default(), 80);
    assert_eq!((asked[79], asked.last()), (64, Some(&16)), "{asked:?}");
}

#[test]
fn nothing_is_begun_that_cannot_pay_before_the_end() {
    // 3 s of 16 connections: the second number would be measured at its end.
    let asked = numbers(Model { size: Some(480.0 * MBIT), ..FREE }, 4);
    assert_eq!(steps(asked), [16]);
    // Connections that bring nothing are given up, but not in the last seconds.
    let full = Model { line: 170.0 * MBIT, queue: None, ..FREE };
    let asked = numbers(Model { size: Some(8.0 * 170.0 * MBIT), ..full }, 8);
    assert!(asked.iter().max() == Some(&32), "{asked:?}");
    assert!(asked.last() > numbers(full, 8).last(), "{asked:?}");
}

#[test]
fn the_user_may_lower_both_numbers() {
    let asked = run(FREE, ClimbOptions { first: 2, cap: 5 }, 10).0;
    assert_eq!(steps(asked), [2, 4, 5]);
    let none = run(FREE, ClimbOptions { first: 0, cap: 0 }, 3).0;
    assert_eq!(steps(none), [1]);
}

#[test]
fn goodput_that_falls_gives_nothing_up() {
    let each = |age: f64| if age > 10.0 { 0.5 * MBIT } else { 10.0 * MBIT };
    let asked = numbers(Model { each, ..FREE }, 18);
    assert_eq!(asked.last(), Some(&64), "{asked:?}");
}

/// Connections of 52 Mbit/s each, as windows of 64 KB give them over 10 ms.
const WINDOWS: Model =
    Model { each: |_| 52.0 * MBIT, queue: Some(Duration::from_millis(6)), ..FREE };

/// The share of the numbers from 10 s on that are `n`.
fn share_of(numbers: &[u32], n: u32) -> f64 {
    let late = &numbers[100..];
    late.iter().filter(|&&other| other == n).count() as f64 / late.len() as f64
}

#[test]
fn a_group_that_brings_little_stays_if_goodput_falls_without_it() {
    let options = ClimbOptions::default();
    let (numbers, _) = run_in_groups(16, Model { line: 936.0 * MBIT, ..WINDOWS }, options, 60);
    assert!(numbers.iter().all(|n| [16, 32].contains(n)), "{numbers:?}");
    assert!(share_of(&numbers, 32) > 0.8, "{numbers:?}");
}

#[test]
fn a_group_that_brings_nothing_is_given_up() {
    let options = ClimbOptions::default();
    for line in [300.0, 830.0] {
        let (numbers, _) = run_in_groups(16, Model { line: line * MBIT, ..WINDOWS }, options, 60);
        assert!(numbers.iter().all(|n| [16, 32].contains(n)), "{numbers:?}");
        assert!(share_of(&numbers, 16) > 0.8, "{numbers:?}");
    }
}

#[test]
fn a_group_is_not_given_up_for_a_proof_while_a_queue_comes_and_goes() {
    // The queue is away in some windows only.
    let each = |age: f64| if age % 3.0 < 1.0 { 28.0 * MBIT } else { 52.0 * MBIT };
    let model = Model { each, line: 936.0 * MBIT, ..WINDOWS };
    let (numbers, _) = run_in_groups(16, model, ClimbOptions::default(), 100);
    let late = numbers.iter().skip(200).filter(|n| **n == 16).count();
    assert!(late < 200, "{late}: {numbers:?}");
}

#[test]
fn a_number_that_was_held_without_a_queue_is_known_and_half_of_it_begins_the_next_transfer() {
    let options = ClimbOptions::default();
    let held = |model| {
        let mut climb = Climb::new(&options);
        drive(&mut climb, model, options.cap, 20);
        climb.held()
    };
    assert_eq!(held(FREE), Some(Held::WithoutQueue(64)));
    let queue = Some(Duration::from_millis(10));
    let full = Model { line: 100.0 * MBIT, queue, each: |_| 20.0 * MBIT, ..FREE };
    assert_eq!(held(full), Some(Held::WithQueue));
    assert_eq!(held(Model { queue: None, ..FREE }), None, "without round-trip times");
    let mut climb = Climb::new(&options);
    climb.begin_after(64);
    let (asked, _) = drive(&mut climb, FREE, options.cap, 3);
    assert_eq!(steps(asked), [32, 64]);
    climb.begin_after(16);
    assert_eq!(climb.n(), 64, "it has begun");
    // A wrong number costs one smaller try.
    let mut climb = Climb::new(&options);
    climb.begin_after(64);
    let (asked, _) = drive(&mut climb, full, options.cap, 30);
    assert_eq!((asked[0], asked.last()), (32, Some(&16)), "{asked:?}");
    let first = |held| {
        let mut climb = Climb::new(&options);
        climb.begin_after(held);
        climb.n()
    };
    assert_eq!([1, 20, 60, 1000].map(first), [16, 16, 30, 64]);
}

#[test]
fn groups_grow_to_the_cap_while_they_bring_as_much_as_those_before() {
    let (numbers, _) = run_in_groups(16, FREE, ClimbOptions::default(), 60);
    assert_eq!((numbers[0], numbers[30]), (16, 64));
    assert!(numbers.iter().all(|n| n % 16 == 0), "{numbers:?}");
    // A proof gives half of them up for a moment.
    assert!(numbers.contains(&32) && share_of(&numbers, 64) > 0.9, "{numbers:?}");
}
