//! Servers of unlike rates in virtual time: how long an upload takes, and how long it has to take.

use super::super::*;
use super::MB;

/// A server of the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Bytes a second.
    pub(super) rate: f64,
    /// Seconds.
    pub(super) round_trip: f64,
}

/// What a server sends.
struct Run {
    id: TaskId,
    attempt: u32,
    left: f64,
}

/// A rate is known, and settled, after a connection was busy for so long.
const KNOWN_SECONDS: f64 = 0.5;
const SETTLED_SECONDS: f64 = 1.0;
const STEP_SECONDS: f64 = 0.01;

/// Uploads files of these sizes to servers; returns the seconds that it took.
pub(super) fn upload(sizes: &[u64], lines: &[Line]) -> f64 {
    let files = sizes.iter().enumerate().map(|(number, size)| (number, *size, None));
    let mut queue = Queue::new(files.collect(), lines.len());
    let mut runs: Vec<Option<Run>> = lines.iter().map(|_| None).collect();
    // How long each connection was busy.
    let mut busy = vec![0.0; lines.len()];
    // When the server's first answer after a time without work arrives; files behind each other are sent without a pause.
    let mut answers_from = vec![None; lines.len()];
    let mut now = 0.0;
    while !queue.is_empty() {
        assert!(now < 1e5, "{} are left", queue.open);
        for server in 0..lines.len() {
            let loads = loads(&runs, lines, &busy);
            if runs[server]
                .as_ref()
                .is_some_and(|run| queue.turn(run.id, run.attempt) == Turn::Over)
            {
                runs[server] = None;
            }
            if runs[server].is_none()
                && let Some(given) = queue.take(ServerId(server), &loads)
            {
                let left = queue.task(given.id).size as f64;
                runs[server] = Some(Run { id: given.id, attempt: given.attempt, left });
            }
            let line = lines[server];
            let Some(run) = &mut runs[server] else {
                answers_from[server] = None;
                continue;
            };
            busy[server] += STEP_SECONDS;
            let from = *answers_from[server].get_or_insert(now + line.round_trip);
            if now < from || queue.turn(run.id, run.attempt) != Turn::GoOn {
                continue;
            }
            let bytes = line.rate * STEP_SECONDS;
            run.left -= bytes;
            queue.written(run.id, run.attempt, bytes as u64);
            if run.left <= 0.0 {
                queue.end(run.id);
                runs[server] = None;
            }
        }
        queue.judge(&loads(&runs, lines, &busy));
        now += STEP_SECONDS;
    }
    now
}

fn loads(runs: &[Option<Run>], lines: &[Line], busy: &[f64]) -> Vec<Option<Load>> {
    let load = |number: usize| {
        let backlog = runs[number].as_ref().map_or(0, |run| run.left.max(0.0) as u64);
        let rate = (busy[number] > KNOWN_SECONDS).then_some(lines[number].rate);
        let pace = if busy[number] > SETTLED_SECONDS { Pace::Settled } else { Pace::Rising };
        Some(Load { backlog, rate, pace, full_from: u64::MAX })
    };
    (0..lines.len()).map(load).collect()
}

/// The least time for a few large files of one size and many small ones, if every rate is known at the begin.
pub(super) fn least(large: u64, count: u64, small_bytes: u64, lines: &[Line]) -> f64 {
    let total =
        (large * count + small_bytes) as f64 / lines.iter().map(|line| line.rate).sum::<f64>();
    // Each large file goes to the server that is done with it first.
    let mut given = vec![0u64; lines.len()];
    let mut end: f64 = 0.0;
    for _ in 0..count {
        let time = |server: usize| (given[server] + large) as f64 / lines[server].rate;
        let best = (0..lines.len()).min_by(|one, other| time(*one).total_cmp(&time(*other)));
        let best = best.unwrap();
        end = end.max(time(best));
        given[best] += large;
    }
    total.max(end)
}

#[test]
fn a_few_large_files_reach_the_fastest_of_unlike_servers() {
    let mut worst: Vec<(f64, usize, u64)> = Vec::new();
    for servers in 1..=13 {
        for seed in 0..20 {
            let mut rng = fastrand::Rng::with_seed(seed * 100 + servers as u64);
            let lines: Vec<Line> = (0..servers)
                .map(|_| Line {
                    rate: f64::from(rng.u32(40..=400)) * 125_000.0,
                    round_trip: f64::from(rng.u32(45..=200)) / 1000.0,
                })
                .collect();
            let mut sizes = vec![1000 * MB; 4];
            sizes.extend(vec![MB; 100]);
            let ratio = upload(&sizes, &lines) / least(1000 * MB, 4, 100 * MB, &lines);
            worst.push((ratio, servers, seed));
        }
    }
    worst.sort_by(|one, other| other.0.total_cmp(&one.0));
    let over = worst.iter().filter(|one| one.0 > 1.2).count();
    assert_eq!(over, 0, "of {}, the worst: {:?}", worst.len(), &worst[..12]);
}
