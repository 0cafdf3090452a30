//! The resources that a server grants its clients: concurrent tests, connections, threads and
//! memory.
//!
//! A client takes a place when it has announced its test, and returns it when the test ends. The
//! resources of a test are accounted before they are used. If the budget is exhausted, a test
//! without progress is ended to make room. If there is none, and one host holds more than half of
//! the places, its youngest test is ended in favour of a host that has none.

use crate::args::Rules;
use crate::memory;
use crate::message::RefusalKind;
use crate::plan::{Direction, Handling, Limit, MAX_SECONDS, Plan};
use crate::session::Event;
use hikyaku_net::{AppCode, Connection};
use hikyaku_units::{DataSize, counted};
use rustix::process::{Resource, geteuid, getrlimit};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// Limits for all tests together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Budget {
    pub(super) tests: usize,
    pub(super) connections: usize,
    /// `None` if the system sets no limit.
    pub(super) threads: Option<usize>,
    pub(super) memory: DataSize,
}

/// The resources of one test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Needs {
    pub(super) connections: usize,
    pub(super) threads: usize,
}

/// The client that a place is charged to. For IPv6 it is a /64 prefix, because one subscriber
/// usually controls all addresses of a /64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Host {
    V4(Ipv4Addr),
    V6([u16; 4]),
}

/// All places of a server.
pub(super) struct Places {
    pub(super) budget: Budget,
    held: Mutex<BTreeMap<u64, Held>>,
    /// The next identifier. Identifiers are never reused, because a test that was ended for another
    /// one still holds a `Place` with its own.
    next: AtomicU64,
}

/// A test's place. Dropping it returns the resources.
pub(super) struct Place {
    places: Arc<Places>,
    id: u64,
}

/// The record of a place that is in use.
pub(super) struct Held {
    host: Host,
    needs: Needs,
    pub(super) connections: Vec<Connection>,
    pub(super) moved: Moved,
    pub(super) terms: Option<Terms>,
}

/// Payload bytes that a test has moved, and when it last moved some.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub(super) bytes: u64,
    pub(super) at: Instant,
}

/// Conditions under which a running test is allowed to continue.
pub(super) struct Terms {
    /// Receives one event when the time limit has passed; `None` afterwards.
    pub(super) post: Option<Sender<Event>>,
    /// The time limit.
    pub(super) until: Instant,
    /// How this end passes the data that it sends: copied data take memory.
    pub(super) copies: Handling,
}

/// Connections of all tests together: as many as four tests with the maximal number of streams.
const CONNECTIONS_MAX: usize = 512;
/// Threads reserved for the server itself and the user's other processes.
const RESERVED_THREADS: u64 = 8;
/// Threads of each test besides those of its streams: one that runs the test, one that reads the
/// control stream.
const THREADS_PER_TEST: usize = 2;
/// A test that has not moved any payload loses its place after this time, which is longer than any
/// round trip.
const START_TIMEOUT: Duration = Duration::from_secs(2);
/// A test that has moved payload loses its place after being idle for this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Extra time beyond the planned end of a test: the client's clock starts later than the server's,
/// and the final exchange takes time.
const END_GRACE: Duration = Duration::from_secs(15);
/// Extra time for connecting the competing flows of a test.
const COMPETITORS_GRACE: Duration = Duration::from_secs(60);

impl Budget {
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            tests: rules.tests as usize,
            connections: CONNECTIONS_MAX,
            threads: threads(),
            memory: rules.memory.unwrap_or_else(memory::of_server),
        }
    }

    /// The line that the server prints at its start.
    pub(super) fn line(&self) -> String {
        let threads = self.threads.map(|n| format!(", {}", counted(n, "thread")));
        format!(
            "at most {} at once, {}{}, {} of memory",
            counted(self.tests, "test"),
            counted(self.connections, "connection"),
            threads.unwrap_or_default(),
            self.memory
        )
    }

    /// Why this test can never fit, or `None`.
    fn refusal(&self, needs: Needs) -> Option<String> {
        let over = |what, has: usize, needs: usize| {
            (needs > has).then(|| format!("it has {has} {what} for tests, this one needs {needs}"))
        };
        over("connections", self.connections, needs.connections)
            .or_else(|| over("threads", self.threads?, needs.threads))
    }

    /// Whether a test that needs `more` fits beside `tests` tests that use `taken`.
    fn has_room(&self, tests: usize, taken: Needs, more: Needs) -> bool {
        tests < self.tests
            && taken.connections + more.connections <= self.connections
            && self.threads.is_none_or(|most| taken.threads + more.threads <= most)
    }
}

impl Needs {
    pub(super) fn of(plan: &Plan) -> Self {
        let competitors = plan.compete.as_ref().map_or(0, |compete| compete.all() as usize + 1);
        Self {
            connections: plan.connections() as usize,
            threads: THREADS_PER_TEST + plan.streams as usize + 2 * competitors,
        }
    }
}

impl Host {
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

impl Places {
    pub(super) const fn new(budget: Budget) -> Self {
        Self { budget, held: Mutex::new(BTreeMap::new()), next: AtomicU64::new(0) }
    }

    pub(super) fn held(&self) -> MutexGuard<'_, BTreeMap<u64, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a test of `host`, or returns why there is none and whether to try again.
    pub(super) fn take(
        self: &Arc<Self>,
        host: Host,
        needs: Needs,
        now: Instant,
    ) -> Result<Place, (String, RefusalKind)> {
        if let Some(reason) = self.budget.refusal(needs) {
            return Err((reason, RefusalKind::Always));
        }
        let mut held = self.held();
        while !self.budget.has_room(held.len(), taken(&held), needs) {
            let Some((id, why)) = test_to_end(&held, host, now) else {
                let busy =
                    format!("it is busy with {}; try again later", counted(held.len(), "test"));
                return Err((busy, RefusalKind::ForNow));
            };
            if let Some(test) = held.remove(&id) {
                test.end(why);
            }
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let moved = Moved { bytes: 0, at: now };
        held.insert(id, Held { host, needs, connections: Vec::new(), moved, terms: None });
        Ok(Place { places: self.clone(), id })
    }
}

impl Place {
    /// Adds a connection to the test.
    pub(super) fn add(&self, connection: &Connection) {
        if let Some(held) = self.places.held().get_mut(&self.id) {
            held.connections.push(connection.clone());
        }
    }

    /// Marks the start of the test and sets its time limit.
    pub(super) fn begin(&self, plan: &Plan, rules: &Rules, post: Sender<Event>, now: Instant) {
        let copies =
            if plan.direction == Direction::Download { plan.handling } else { Handling::ZeroCopy };
        let until = now + time_limit(plan, rules);
        if let Some(held) = self.places.held().get_mut(&self.id) {
            held.terms = Some(Terms { post: Some(post), until, copies });
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.held().remove(&self.id);
    }
}

impl Held {
    /// Closes all connections of the test; `why` is sent to the client.
    pub(super) fn end(&self, why: &str) {
        self.connections.iter().for_each(|connection| connection.close(AppCode::FIRST, why));
    }

    fn is_idle(&self, now: Instant) -> bool {
        let patience = if self.moved.bytes == 0 { START_TIMEOUT } else { IDLE_TIMEOUT };
        now.saturating_duration_since(self.moved.at) > patience
    }
}

fn taken(held: &BTreeMap<u64, Held>) -> Needs {
    held.values().fold(Needs::default(), |sum, test| Needs {
        connections: sum.connections + test.needs.connections,
        threads: sum.threads + test.needs.threads,
    })
}

/// The test to end so that `host` can begin one, with the reason for its client.
fn test_to_end(
    held: &BTreeMap<u64, Held>,
    host: Host,
    now: Instant,
) -> Option<(u64, &'static str)> {
    let still = held.iter().filter(|(_, test)| test.is_idle(now));
    if let Some((&id, _)) = still.min_by_key(|(_, test)| test.moved.at) {
        return Some((id, "no data moved in this test, and another test needed its place"));
    }
    let mut tests: BTreeMap<Host, usize> = BTreeMap::new();
    held.values().for_each(|test| *tests.entry(test.host).or_default() += 1);
    let (&greedy, _) = tests.iter().find(|(_, count)| **count * 2 > held.len())?;
    if tests.contains_key(&host) {
        return None;
    }
    let (&id, _) = held.iter().rev().find(|(_, test)| test.host == greedy)?;
    Some((id, "this host held most of the tests, and another host needed a place"))
}

/// Time limit of a test, from its start to the final exchange.
fn time_limit(plan: &Plan, rules: &Rules) -> Duration {
    let most = rules.time.unwrap_or(MAX_SECONDS);
    match (plan.limit, plan.total_seconds()) {
        (Limit::Seconds(part), _) if plan.compete.is_some() => {
            Duration::from_secs_f64(3.0 * part) + COMPETITORS_GRACE
        }
        (_, Some(total)) => Duration::from_secs_f64(total) + END_GRACE,
        (_, None) => Duration::from_secs_f64(most),
    }
}

/// Threads available to tests under the user's process limit; `None` for root, which has no limit.
fn threads() -> Option<usize> {
    if geteuid().is_root() {
        return None;
    }
    let most = getrlimit(Resource::Nproc).current?;
    usize::try_from(most.saturating_sub(RESERVED_THREADS)).ok()
}
