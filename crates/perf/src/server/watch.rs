//! Periodic checks of the server while any client is connected: how much memory the clients' data
//! use, whether the tests make progress, and whether a test exceeds its time.

use super::budget::{Held, Places};
use crate::plan::Handling;
use crate::session::Event;
use crate::wait::{Stop, all, wait};
use hikyaku_net::{Connection, Stats};
use std::time::{Duration, Instant};

/// Time between two checks. What can arrive over the loopback interface in this time fits into the
/// reserve of memory.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(25);

/// How long to wait for the statistics of the connections; a connection that has not answered
/// counts as holding nothing.
const STATS_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a test may continue after it was told to end.
const END_GRACE: Duration = Duration::from_secs(20);
/// Memory of an idle connection, in bytes.
const IDLE_CONNECTION_BYTES: u64 = 64 << 10;
/// Estimate of the data that the application has written and the transport has not sent: what is
/// sent in this time, within the two bounds below, in bytes.
const UNSENT_TIME: Duration = Duration::from_millis(20);
const UNSENT_BYTES_MIN: u64 = 1 << 20;
const UNSENT_BYTES_MAX: u64 = 32 << 20;
/// The reason sent to a client that is closed for its use of memory.
pub(super) const MEMORY_EXHAUSTED: &str =
    "the memory of this server was exhausted, and this connection used most of it";

/// Memory of a connection or test in bytes, and the payload that it has moved.
#[derive(Clone, Copy, Default)]
struct ConnectionUse {
    held: u64,
    moved: u64,
}

impl Places {
    /// Limit for unread data, in bytes: three eighths of the memory. The rest is for data that
    /// arrive between two checks, for the program itself, and for free memory that the allocator
    /// keeps.
    fn unread_limit(&self) -> u64 {
        self.budget.memory.bytes() / 8 * 3
    }

    /// Checks all tests, and the connections in `pending`, which have no test yet. Returns the indices
    /// of the pending connections to close.
    pub(super) fn check(&self, now: Instant, pending: &[Connection]) -> Vec<usize> {
        let tests: Vec<(u64, Vec<Connection>, Handling)> = self
            .held()
            .iter_mut()
            .map(|(id, test)| {
                test.enforce_time_limit(now);
                let copies = test.terms.as_ref().map_or(Handling::ZeroCopy, |terms| terms.copies);
                (*id, test.connections.clone(), copies)
            })
            .collect();
        let used_tests: Vec<(u64, ConnectionUse)> = tests
            .iter()
            .map(|(id, connections, copies)| {
                let used = connection_uses(connections, *copies).into_iter();
                let sum = |a: ConnectionUse, b: ConnectionUse| ConnectionUse {
                    held: a.held + b.held,
                    moved: a.moved + b.moved,
                };
                (*id, used.fold(ConnectionUse::default(), sum))
            })
            .collect();
        let used_pending = connection_uses(pending, Handling::ZeroCopy);
        let mut held = self.held();
        for (id, used) in &used_tests {
            if let Some(test) = held.get_mut(id)
                && used.moved > test.moved.bytes
            {
                test.moved.bytes = used.moved;
                test.moved.at = now;
            }
        }
        let tests = used_tests.iter().map(|(_, used)| used.held);
        let pending: Vec<u64> = used_pending.iter().map(|used| used.held).collect();
        let sizes: Vec<u64> = tests.chain(pending).collect();
        let (tests, pending): (Vec<usize>, Vec<usize>) =
            largest_to_close(&sizes, self.unread_limit())
                .into_iter()
                .partition(|at| *at < used_tests.len());
        for at in tests {
            if let Some(test) = held.get(&used_tests[at].0) {
                test.end(MEMORY_EXHAUSTED);
            }
        }
        pending.into_iter().map(|at| at - used_tests.len()).collect()
    }
}

impl Held {
    /// Tells a test to end when its time limit has passed, and closes it if it has not ended after
    /// a grace period.
    fn enforce_time_limit(&mut self, now: Instant) {
        let Some(terms) = &mut self.terms else { return };
        if now > terms.until + END_GRACE {
            self.end("the time of this test is over");
        } else if now > terms.until
            && let Some(post) = terms.post.take()
        {
            // The thread of the test may have ended.
            let _ = post.send(Event::Interrupt);
        }
    }
}

/// Indices of the largest `sizes` to remove so that the sum of the rest is at most `most`.
fn largest_to_close(sizes: &[u64], most: u64) -> Vec<usize> {
    let mut left: u64 = sizes.iter().sum();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(sizes[*at]));
    let mut going = Vec::new();
    for at in order {
        if left <= most {
            break;
        }
        left -= sizes[at];
        going.push(at);
    }
    going
}

/// Statistics of each of these connections.
fn connection_uses(connections: &[Connection], copies: Handling) -> Vec<ConnectionUse> {
    let questions = connections.iter().map(|connection| connection.stats()).collect();
    let until = Some(Instant::now() + STATS_TIMEOUT);
    let answers = wait(all(questions), &Stop::default(), until);
    let answers = answers.unwrap_or_else(|_| vec![None; connections.len()]);
    let used = |(connection, stats): (&Connection, Option<Stats>)| match stats {
        Some(stats) if connection.close_reason().is_none() => used(&stats, copies),
        _ => ConnectionUse::default(),
    };
    connections.iter().zip(answers).map(used).collect()
}

fn used(stats: &Stats, copies: Handling) -> ConnectionUse {
    let unsent = || {
        stats.pacing_rate().in_time(UNSENT_TIME).bytes().clamp(UNSENT_BYTES_MIN, UNSENT_BYTES_MAX)
    };
    let sending = match copies {
        Handling::Copy => stats.in_flight.bytes() + unsent(),
        // All writers send the same block, so unsent data take no memory.
        Handling::ZeroCopy => 0,
    };
    ConnectionUse {
        held: IDLE_CONNECTION_BYTES + stats.unread.bytes() + sending,
        moved: (stats.received_payload + stats.sent_payload).bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_few_of_the_largest_as_possible_are_removed() {
        for (sizes, most, going) in [
            ([5, 1, 9].as_slice(), 15, [].as_slice()),
            (&[5, 1, 9], 14, &[2]),
            (&[5, 1, 9], 6, &[2]),
            (&[5, 1, 9], 5, &[2, 0]),
            (&[5, 1, 9], 0, &[2, 0, 1]),
            (&[], 0, &[]),
        ] {
            assert_eq!(largest_to_close(sizes, most), going, "{sizes:?} {most}");
        }
    }
}
