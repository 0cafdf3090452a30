//! Queues of servers with several speeds, and of servers that are lost.

use super::*;

/// The next task of a server.
fn take(queue: &mut Queue, server: usize, loads: &[Option<Load>]) -> Option<TaskId> {
    queue.take(ServerId(server), loads).map(|given| given.id)
}

const MB: u64 = 1_000_000;

fn load(backlog: u64, rate: f64) -> Option<Load> {
    Some(Load { backlog, rate: Some(rate), full_from: u64::MAX })
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

/// Runs servers with these rates until all is sent; returns the seconds that it took.
fn simulate(sizes: &[u64], rates: &[f64]) -> f64 {
    let files = sizes.iter().enumerate().map(|(number, size)| (number, *size, None));
    let mut queue = Queue::new(files.collect(), rates.len());
    let mut at: Vec<Option<(TaskId, f64)>> = vec![None; rates.len()];
    let mut known = vec![None; rates.len()];
    let (mut now, step) = (0.0, 0.002);
    while !queue.is_empty() {
        assert!(now < 1e5, "{} are left", queue.open);
        for server in 0..rates.len() {
            let loads: Vec<_> = (0..rates.len())
                .map(|n| {
                    let backlog = at[n].map_or(0, |(_, left)| left as u64);
                    Some(Load { backlog, rate: known[n], full_from: u64::MAX })
                })
                .collect();
            // What was taken over is not sent any more.
            if let Some((id, _)) = at[server]
                && !matches!(queue.task(id).stage, Stage::At { server: s, .. } if s.0 == server)
            {
                at[server] = None;
            }
            if at[server].is_none() {
                at[server] =
                    take(&mut queue, server, &loads).map(|id| (id, queue.task(id).size as f64));
            }
            let Some((id, left)) = &mut at[server] else { continue };
            known[server] = Some(rates[server]);
            *left -= rates[server] * step;
            queue.written(*id, (rates[server] * step) as u64);
            if *left <= 0.0 {
                let id = *id;
                at[server] = None;
                queue.end(id);
            }
        }
        now += step;
    }
    now
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
    let id = take(&mut queue, 0, &loads).unwrap();
    assert_eq!(queue.at(ServerId(0)), [id]);
    assert_eq!(queue.written(id, 7 * MB), 5 * MB);
    let attempt = queue.task(id).attempt;
    queue.give_back(id);
    assert!(queue.task(id).attempt > attempt);
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
    queue.give_back(TaskId(0));
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
    queue.give_back(TaskId(1));
    assert_eq!(queue.too_large(&[full(4 * MB), full(2 * MB)]), [TaskId(1)]);
}
