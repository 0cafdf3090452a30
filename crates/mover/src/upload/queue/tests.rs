//! Queues of servers with several speeds, and of servers that are lost.

use super::*;

mod model;

/// The next task of a server.
fn take(queue: &mut Queue, server: usize, loads: &[Option<Load>]) -> Option<TaskId> {
    queue.take(ServerId(server), loads).map(|given| given.id)
}

const MB: u64 = 1_000_000;

fn load(backlog: u64, rate: f64) -> Option<Load> {
    Some(Load { backlog, rate: Some(rate), pace: Pace::Settled, full_from: u64::MAX })
}

fn queue(sizes: &[u64]) -> Queue {
    let files = sizes.iter().enumerate().map(|(number, size)| (number, *size, None));
    Queue::new(files.collect(), 2)
}

#[test]
fn the_largest_file_goes_first() {
    let mut queue = queue(&[3 * MB, 9 * MB, 5 * MB]);
    let loads = [load(0, 1e6), load(0, 1e6)];
    let taken: Vec<usize> = (0..3).map(|n| take(&mut queue, n % 2, &loads).unwrap().0).collect();
    assert_eq!(taken, [1, 2, 0]);
    assert!(take(&mut queue, 0, &loads).is_none());
}

#[test]
fn a_slow_server_gets_no_file_that_a_fast_one_is_done_with_sooner() {
    // The fast one has 10 s of work; the slow one would need 100 s for the large file and 1 s for the small one.
    let mut queue = queue(&[100 * MB, MB]);
    let loads = [load(1000 * MB, 100e6), load(0, 1e6)];
    assert_eq!(take(&mut queue, 1, &loads), Some(TaskId(1)));
    assert_eq!(take(&mut queue, 1, &loads), None);
    assert_eq!(take(&mut queue, 0, &loads), Some(TaskId(0)));
}

/// Runs servers with these rates, in bytes a second, until all is sent; returns the seconds that it took.
fn simulate(sizes: &[u64], rates: &[f64]) -> f64 {
    let line = |rate: &f64| model::Line { rate: *rate, round_trip: 0.0, losses: 0.0 };
    let lines: Vec<_> = rates.iter().map(line).collect();
    model::upload(sizes, &lines)
}

#[test]
fn servers_of_unlike_rates_end_together() {
    let sizes: Vec<u64> = (1..=200).map(|n| (n * 37 % 100 + 1) * MB / 4).collect();
    let total: u64 = sizes.iter().sum();
    for rates in [vec![10e6; 3], vec![100e6, 10e6, 1e6], vec![5e6, 300e6]] {
        let best = total as f64 / rates.iter().sum::<f64>();
        let took = simulate(&sizes, &rates);
        assert!(took < best * 1.1 + 0.5, "{rates:?}: {took} s, {best} s would do");
    }
}

#[test]
fn a_large_file_at_a_slow_server_is_taken_over() {
    // Both begin with one file, as no rate is known: the slow one would need 1000 s.
    let took = simulate(&[1000 * MB, 1000 * MB], &[100e6, 1e6]);
    assert!(took < 25.0, "{took}");
}

#[test]
fn what_is_given_back_is_taken_by_another() {
    let mut queue = queue(&[3 * MB, 5 * MB]);
    let loads = [load(0, 1e6), load(0, 1e6)];
    let Given { id, attempt, .. } = queue.take(ServerId(0), &loads).unwrap();
    assert_eq!(queue.at(ServerId(0)), [(id, attempt)]);
    assert_eq!(queue.written(id, attempt, 7 * MB), (5 * MB, 5 * MB));
    assert!(queue.give_back(id, attempt).is_some());
    assert_eq!(queue.turn(id, attempt), Turn::Over);
    let loads = [None, load(0, 1e6)];
    assert_eq!(take(&mut queue, 0, &loads), None, "it is gone");
    assert_eq!(take(&mut queue, 1, &loads), Some(id));
    queue.end(id);
    queue.end(id);
    assert_eq!(queue.open().count(), 1);
    assert_eq!(queue.all(), [TaskId(0)]);
    assert_eq!(take(&mut queue, 1, &loads), None);
}

#[test]
fn a_file_for_one_server_goes_there_only() {
    let mut queue = Queue::new(vec![(0, MB, Some(ServerId(1))), (1, 2 * MB, None)], 2);
    let loads = [load(0, 1e6), load(0, 1e6)];
    assert_eq!(take(&mut queue, 0, &loads), Some(TaskId(1)));
    assert_eq!(take(&mut queue, 0, &loads), None);
    assert_eq!(take(&mut queue, 1, &loads), Some(TaskId(0)));
    queue.give_back(TaskId(0), 1).unwrap();
    assert_eq!(take(&mut queue, 0, &loads), None);
}

#[test]
fn a_full_server_gets_only_what_fits() {
    let mut queue = queue(&[MB, 8 * MB]);
    let full = |from| Some(Load { full_from: from, ..load(0, 1e6).unwrap() });
    assert_eq!(take(&mut queue, 0, &[full(4 * MB), full(2 * MB)]), Some(TaskId(0)));
    assert_eq!(queue.too_large(&[full(4 * MB), load(0, 1e6)]), []);
    assert_eq!(take(&mut queue, 0, &[full(4 * MB), load(0, 1e3)]), None);
    assert_eq!(take(&mut queue, 1, &[full(4 * MB), load(0, 1e3)]), Some(TaskId(1)));
    queue.give_back(TaskId(1), 1).unwrap();
    assert_eq!(queue.too_large(&[full(4 * MB), full(2 * MB)]), [TaskId(1)]);
}

#[test]
fn a_file_whose_name_was_ordered_stays_with_its_server() {
    // The second server would be done much sooner.
    let loads = [load(100 * MB, 1e6), load(0, 100e6)];
    for is_handed in [false, true] {
        let mut queue = queue(&[100 * MB]);
        let given = queue.take(ServerId(0), &[load(0, 1e6), None]).unwrap();
        assert!(!is_handed || queue.hand_over(given.id, given.attempt));
        assert_eq!(take(&mut queue, 1, &loads).is_none(), is_handed);
        assert_eq!(queue.hand_over(given.id, given.attempt), is_handed, "it is another server's");
    }
}
