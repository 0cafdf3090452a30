//! One number of connections to a server, which several jobs at once may share.
//!
//! Each job reports its own connections. The rule sees all of them, and each job gets an equal share of its number.

use hikyaku_tuner::{Carried, Controller, Held, Look, Measured, Phase};
use hikyaku_units::{DataSize, Instant as LookAt};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A job that has ended keeps its share for this time: the next file of a row has the same one.
const VACANT_MAX: Duration = Duration::from_secs(1);
/// Numbers of connections that one job may use.
const IDS_OF_ONE: u32 = 1 << 10;

/// The rule for the number of connections to a server. Clones share it.
#[derive(Clone)]
pub struct Tuning(Arc<Mutex<Common>>);

struct Common {
    controller: Controller,
    begin: Instant,
    parts: BTreeMap<u32, Part>,
    /// Jobs that have not begun, if that is known.
    to_come: u32,
}

/// The connections of one job, at its last look. Counters are those of all jobs that have had the place.
#[derive(Default)]
struct Part {
    before: (u64, Duration),
    bytes: u64,
    held_up: Duration,
    round_trip: Duration,
    missing: DataSize,
    connections: Vec<Carried>,
    left: Option<Instant>,
}

/// The connections of a job at one time. Counters begin with the job.
pub(super) struct Seen {
    pub(super) bytes: u64,
    pub(super) held_up: Duration,
    pub(super) round_trip: Duration,
    /// Bytes that are missing.
    pub(super) missing: DataSize,
    pub(super) connections: Vec<Carried>,
}

/// A job's part of the number. It ends when this is dropped.
pub(super) struct Member {
    tuning: Tuning,
    place: u32,
}

impl Tuning {
    /// A rule that has seen nothing.
    pub fn new(controller: Controller) -> Self {
        let (begin, parts) = (Instant::now(), BTreeMap::new());
        Self(Arc::new(Mutex::new(Common { controller, begin, parts, to_come: 0 })))
    }

    /// For this many jobs in all. Some of them are carried out at once and begin within a second: the first one leaves
    /// the others their shares.
    #[must_use]
    pub fn for_jobs(self, (at_once, all): (u32, u32)) -> Self {
        let vacant = |at| (at, Part { left: Some(Instant::now()), ..Part::default() });
        let mut common = self.lock();
        common.parts.extend((0..at_once).map(vacant));
        common.to_come = all;
        drop(common);
        self
    }

    /// One job more has connections to the server.
    pub(super) fn join(&self) -> Member {
        let mut common = self.lock();
        common.to_come = common.to_come.saturating_sub(1);
        let vacant = common.parts.iter().find(|(_, part)| part.left.is_some()).map(|(at, _)| *at);
        let place = vacant
            .unwrap_or_else(|| (0..).find(|at| !common.parts.contains_key(at)).unwrap_or_default());
        let part = common.parts.entry(place).or_default();
        part.before = (part.before.0 + part.bytes, part.before.1 + part.held_up);
        (part.bytes, part.held_up, part.left) = (0, Duration::ZERO, None);
        Member { tuning: self.clone(), place }
    }

    fn lock(&self) -> MutexGuard<'_, Common> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Common {
    fn now(&self) -> LookAt {
        LookAt::ZERO + self.begin.elapsed()
    }

    /// Whether a job has the place, or had it until now.
    fn is_taken(part: &Part) -> bool {
        part.left.is_none_or(|left| left.elapsed() < VACANT_MAX)
    }
}

impl Member {
    /// How many connections the job is to have open; at least 1.
    pub(super) fn n(&self) -> u32 {
        let common = self.tuning.lock();
        let taken = common.parts.iter().filter(|(_, part)| Common::is_taken(part));
        let (mut count, mut before) = (0, 0);
        taken.for_each(|(at, _)| {
            count += 1;
            before += u32::from(*at < self.place);
        });
        let (n, count) = (common.controller.n(), count.max(1));
        (n / count + u32::from(before < n % count)).max(1)
    }

    /// An earlier transfer from the server has held this number without a queue.
    pub(super) fn begin_after(&self, held: u32) {
        self.tuning.lock().controller.begin_after(held);
    }

    /// The number that was held last for some time, if one was.
    pub(super) fn held(&self) -> Option<Held> {
        self.tuning.lock().controller.held()
    }

    pub(super) fn phase(&self) -> Phase {
        self.tuning.lock().controller.phase()
    }

    /// A look at the connections of the job. Returns the measurement of all jobs that was complete with it.
    pub(super) fn look(&self, seen: Seen) -> Option<Measured> {
        let mut common = self.tuning.lock();
        let part = common.parts.get_mut(&self.place)?;
        (part.bytes, part.held_up, part.round_trip) = (seen.bytes, seen.held_up, seen.round_trip);
        (part.missing, part.connections) = (seen.missing, seen.connections);
        let now = common.now();
        let parts = common.parts.iter();
        let connections: Vec<Carried> = parts
            .flat_map(|(at, part)| {
                let id = |one: &Carried| at.wrapping_mul(IDS_OF_ONE).wrapping_add(one.id);
                part.connections.iter().map(move |one| Carried { id: id(one), ..*one })
            })
            .collect();
        let (mut bytes, mut held_up, mut round_trip) = (0, Duration::ZERO, Duration::ZERO);
        for part in common.parts.values() {
            bytes += part.before.0 + part.bytes;
            held_up += part.before.1 + part.held_up;
            let is_known = !part.round_trip.is_zero();
            if is_known && (round_trip.is_zero() || part.round_trip < round_trip) {
                round_trip = part.round_trip;
            }
        }
        let bytes = DataSize::from_bytes(bytes);
        let missing = common.parts.values().map(|part| part.missing.bytes());
        let left = (common.to_come == 0).then(|| DataSize::from_bytes(missing.sum()));
        let look = Look { now, bytes, held_up, round_trip, left, connections: &connections };
        common.controller.handle_look(&look)
    }

    /// The server has refused a connection, while `flowing` of this job carry bytes.
    pub(super) fn refuse(&self, flowing: u32) {
        let mut common = self.tuning.lock();
        let (now, parts) = (common.now(), common.parts.iter());
        let others = parts.filter(|(at, _)| **at != self.place);
        let others = others.map(|(_, part)| part.connections.len()).sum::<usize>();
        let others = u32::try_from(others).unwrap_or(u32::MAX);
        common.controller.handle_refusal(others.saturating_add(flowing), now);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(part) = self.tuning.lock().parts.get_mut(&self.place) {
            part.left = Some(Instant::now());
            part.missing = DataSize::ZERO;
            part.connections.clear();
        }
    }
}

impl fmt::Debug for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuning").field("n", &self.lock().controller.n()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(bytes: u64, connections: u32) -> Seen {
        let each = DataSize::from_bytes(bytes / u64::from(connections.max(1)));
        let carried = |id| Carried { id, bytes: each, round_trip: None };
        let connections = (0..connections).map(carried).collect();
        let (round_trip, missing) = (Duration::from_millis(9), DataSize::ZERO);
        Seen { bytes, held_up: Duration::ZERO, round_trip, missing, connections }
    }

    #[test]
    fn jobs_share_one_number_and_the_next_one_has_the_place_of_the_last() {
        let tuning = Tuning::new(Controller::fixed(16));
        let all: Vec<Member> = (0..3).map(|_| tuning.join()).collect();
        let numbers = |all: &[Member]| all.iter().map(Member::n).collect::<Vec<_>>();
        assert_eq!(numbers(&all), [6, 5, 5]);
        all[0].look(seen(7000, 6));
        drop(tuning.join());
        let [first, second, third] = all.try_into().ok().unwrap();
        drop(second);
        let next = tuning.join();
        assert_eq!((next.place, first.n() + next.n() + third.n()), (1, 12), "the fourth is vacant");
        let shared = Tuning::new(Controller::fixed(16)).for_jobs((2, 9));
        let (first, second) = (shared.join(), shared.join());
        assert_eq!((first.n(), second.n(), second.place), (8, 8, 1));
        let many: Vec<Member> = (0..40).map(|_| tuning.join()).collect();
        assert!(many.iter().all(|one| one.n() == 1));
    }

    #[test]
    fn the_rule_sees_the_connections_of_all_jobs() {
        let tuning = Tuning::new(Controller::fixed(8));
        let (first, second) = (tuning.join(), tuning.join());
        first.look(seen(4000, 3));
        second.look(seen(2000, 2));
        // Seven are left of eight, and five of them carry bytes.
        second.refuse(2);
        assert_eq!(first.n() + second.n(), 7);
        (0..9).for_each(|_| second.refuse(2));
        assert_eq!((first.n(), second.n()), (3, 2));
    }
}
