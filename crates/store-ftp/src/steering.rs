//! One number of data connections for all transfers of large files of a store: a rule of `hikyaku-tuner` looks at all of their
//! connections, and each transfer gets an equal share of the number.

use crate::lanes::WIDTH_MAX;
use crate::tuning::Connections;
use hikyaku_gridftp::Gauged;
use hikyaku_tuner::{Carried, Controller, Look, Measured, Phase};
use hikyaku_units::{DataSize, Instant};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as SystemInstant};

/// The time between two looks at the connections.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The connections are not looked at for this time after the end of a transfer: those of files of middle size carry bytes now and
/// then only, and would be taken for all that the server grants.
const REST_AFTER_END: Duration = Duration::from_secs(1);

/// Called after each measurement, with what the rule was doing.
pub type OnEpoch<'e> = dyn Fn(&Measured, Phase) + 'e;

/// The rule, and the transfers under way. Clones have them in common.
#[derive(Clone)]
pub(crate) struct Steering(Arc<Mutex<State>>);

struct State {
    controller: Controller,
    began: SystemInstant,
    looked: Option<Instant>,
    transfers: BTreeMap<u32, Transfer>,
    next: u32,
    /// Of transfers that have ended.
    bytes: u64,
    waited: Duration,
    /// When the last one has.
    ended: Option<Instant>,
}

/// The last report of a transfer.
#[derive(Default)]
struct Transfer {
    connections: Vec<Gauged>,
    /// Bytes of all its connections, closed ones included.
    bytes: u64,
    waited: Duration,
    round_trip: Duration,
    /// Bytes of each connection.
    each: BTreeMap<u32, u64>,
}

/// A report of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report<'r> {
    /// Its connections that carry bytes.
    pub(crate) connections: &'r [Gauged],
    /// Time that connections have waited for this end, summed over them.
    pub(crate) waited: Duration,
    /// The mean time from a command to its reply.
    pub(crate) round_trip: Duration,
}

impl Steering {
    /// The rule for downloads, whose connections come and go in groups; `None` if their number does not change while they run.
    pub(crate) fn of_downloads(connections: &Connections) -> Option<Self> {
        let Connections::Tuned(limits) = connections else { return None };
        let controller = Controller::climb_in_groups(WIDTH_MAX, &limits.options());
        Some(Self::of(controller, SystemInstant::now()))
    }

    /// The rule for uploads, whose connections come and go one by one; `None` if their number does not change while they run.
    pub(crate) fn of_uploads(connections: &Connections) -> Option<Self> {
        let Connections::Tuned(limits) = connections else { return None };
        Some(Self::of(Controller::climb(&limits.options()), SystemInstant::now()))
    }

    fn of(controller: Controller, began: SystemInstant) -> Self {
        Self(Arc::new(Mutex::new(State {
            controller,
            began,
            looked: None,
            transfers: BTreeMap::new(),
            next: 0,
            bytes: 0,
            waited: Duration::ZERO,
            ended: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transfer begins.
    pub(crate) fn join(&self) -> Seat {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.transfers.insert(id, Transfer::default());
        Seat { steering: self.clone(), id }
    }
}

/// The place of a transfer, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    steering: Steering,
    id: u32,
}

impl Seat {
    /// The number of connections that the transfer is to have.
    pub(crate) fn wanted(&self) -> u32 {
        self.steering.state().share()
    }

    /// The rule's phase.
    pub(crate) fn phase(&self) -> Phase {
        self.steering.state().controller.phase()
    }

    /// Reports the transfer's connections. Returns the number that it is to have.
    pub(crate) fn look(&self, report: &Report<'_>, on_epoch: &OnEpoch<'_>) -> u32 {
        let now = SystemInstant::now();
        let mut state = self.steering.state();
        let now = Instant::ZERO + now.saturating_duration_since(state.began);
        if let Some(transfer) = state.transfers.get_mut(&self.id) {
            transfer.add(report);
        }
        let measured = state.look(now);
        let wanted = state.share();
        drop(state);
        if let Some((measured, phase)) = measured {
            on_epoch(&measured, phase);
        }
        wanted
    }

    /// The server refuses further connections.
    pub(crate) fn refused(&self) {
        let mut state = self.steering.state();
        let now = Instant::ZERO + state.began.elapsed();
        let flowing = state.transfers.values().map(|one| one.connections.len()).sum::<usize>();
        let flowing = u32::try_from(flowing).unwrap_or(u32::MAX).max(1);
        while state.controller.n() > flowing {
            state.controller.handle_refusal(flowing, now);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.steering.state();
        if let Some(Transfer { bytes, waited, .. }) = state.transfers.remove(&self.id) {
            state.bytes += bytes;
            state.waited += waited;
        }
        state.ended = Some(Instant::ZERO + state.began.elapsed());
    }
}

impl Transfer {
    fn add(&mut self, report: &Report<'_>) {
        for one in report.connections {
            // It may have carried bytes of an earlier transfer.
            let before = self.each.insert(one.id, one.bytes).unwrap_or(one.bytes);
            self.bytes += one.bytes.saturating_sub(before);
        }
        self.connections = report.connections.to_vec();
        // An attempt that follows a failure begins to count anew.
        self.waited = self.waited.max(report.waited);
        self.round_trip = report.round_trip;
    }
}

impl State {
    /// The share of a transfer in the number of connections; at least 1.
    fn share(&self) -> u32 {
        let transfers = u32::try_from(self.transfers.len()).unwrap_or(u32::MAX);
        self.controller.n().div_ceil(transfers.max(1))
    }

    /// A look at all connections, if it is time. Returns the measurement that was complete with it.
    fn look(&mut self, now: Instant) -> Option<(Measured, Phase)> {
        let is_early = self.looked.is_some_and(|looked| now.since(looked) < LOOK_EVERY);
        let is_change = self.ended.is_some_and(|ended| now.since(ended) < REST_AFTER_END);
        if is_early || is_change {
            return None;
        }
        self.looked = Some(now);
        let transfers = || self.transfers.values();
        let connections: Vec<Carried> = transfers()
            .flat_map(|one| &one.connections)
            .map(|one| Carried {
                id: one.id,
                bytes: DataSize::from_bytes(one.bytes),
                round_trip: one.round_trip,
            })
            .collect();
        let bytes = self.bytes + transfers().map(|one| one.bytes).sum::<u64>();
        let round_trips = transfers().map(|one| one.round_trip);
        let look = Look {
            now,
            bytes: DataSize::from_bytes(bytes),
            held_up: self.waited + transfers().map(|one| one.waited).sum::<Duration>(),
            left: None,
            round_trip: round_trips.filter(|one| !one.is_zero()).min().unwrap_or_default(),
            connections: &connections,
        };
        let phase = self.controller.phase();
        self.controller.handle_look(&look).map(|measured| (measured, phase))
    }
}

impl fmt::Debug for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steering").field("controller", &self.state().controller).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_tuner::ClimbOptions;

    fn steering() -> Steering {
        Steering::of(Controller::climb(&ClimbOptions::default()), SystemInstant::now())
    }

    fn gauged(id: u32, bytes: u64) -> Gauged {
        Gauged { id, bytes, round_trip: None }
    }

    fn report(connections: &[Gauged]) -> Report<'_> {
        let round_trip = Duration::from_millis(10);
        Report { connections, waited: Duration::ZERO, round_trip }
    }

    #[test]
    fn transfers_share_one_number() {
        let steering = steering();
        let one = steering.join();
        assert_eq!(one.wanted(), 16);
        let others = [steering.join(), steering.join(), steering.join()];
        assert_eq!(one.wanted(), 4);
        drop(others);
        assert_eq!(one.wanted(), 16);
    }

    #[test]
    fn bytes_of_closed_connections_and_of_ended_transfers_count_on() {
        let steering = steering();
        let bytes = || {
            let state = steering.state();
            state.bytes + state.transfers.values().map(|one| one.bytes).sum::<u64>()
        };
        let one = steering.join();
        one.look(&report(&[gauged(1, 100), gauged(2, 100)]), &|_, _| ());
        one.look(&report(&[gauged(2, 150), gauged(3, 5)]), &|_, _| ());
        one.look(&report(&[gauged(3, 25)]), &|_, _| ());
        assert_eq!(bytes(), 70);
        drop(one);
        assert_eq!(bytes(), 70);
    }

    #[test]
    fn refused_connections_leave_those_that_carry_bytes() {
        let steering = steering();
        let one = steering.join();
        let three = [gauged(1, 1), gauged(2, 1), gauged(3, 1)];
        one.look(&report(&three), &|_, _| ());
        one.refused();
        assert_eq!(one.wanted(), 3);
    }
}
