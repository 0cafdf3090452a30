//! Pools of connections to one server: how many of them carry files, from what they bring.
//!
//! An epoch begins when as many connections carry bytes as were asked for, or after [`SETTLE`] with as many as carry any:
//! what slow start costs belongs to no number. It ends after the time or the bytes that the tuner asks for. A server that
//! grants no further connection keeps those that it has, and the number does not grow beyond them.

use super::asked::server_id;
use super::run::{Run, State};
use crate::census::ServerId;
use hikyaku_spread::{PoolId, Spread};
use hikyaku_store::FetchError as Trouble;
use hikyaku_tuner::{
    Adaptive, AdaptiveOptions, Decision, Fixed, LimitedBy, Next, Phase, Sample, Tuner,
};
use hikyaku_units::{DataSize, Instant as SpreadInstant};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Time that connections have to come up.
const SETTLE: Duration = Duration::from_secs(5);
/// Round trips between the last connection's first byte and the beginning of an epoch.
const SETTLE_ROUND_TRIPS: u32 = 4;
/// The number of round trips that an epoch has at least.
const EPOCH_ROUND_TRIPS: u32 = 6;
/// Connections spend more than this share of their time in writing: the target limits.
const WRITING_SHARE: f64 = 0.5;

/// Connections to one server, which are fetchers of a job, and the rule for their number.
pub struct Pool<'a> {
    /// The connections, in the order in which they are used. A fetcher is in one pool at most.
    pub servers: Vec<ServerId>,
    /// The rule, which has measured nothing.
    pub tuner: Tuner,
    /// Called after each epoch.
    pub on_epoch: &'a (dyn Fn(&Epoch) + Sync),
}

impl Pool<'_> {
    /// A pool of all servers of a job. The number in use grows while goodput grows.
    pub fn tuned(servers: usize) -> Self {
        let cap = u32::try_from(servers).unwrap_or(u32::MAX);
        let options = AdaptiveOptions { cap, ..AdaptiveOptions::default() };
        Self::of_all(servers, Tuner::Adaptive(Adaptive::new(&options)))
    }

    /// A pool of all servers of a job, which are all in use, except for those that their server refuses.
    pub fn fixed(servers: usize) -> Self {
        let count = u32::try_from(servers).unwrap_or(u32::MAX);
        Self::of_all(servers, Tuner::Fixed(Fixed::new(count)))
    }

    fn of_all(servers: usize, tuner: Tuner) -> Self {
        Self { servers: (0..servers).map(ServerId).collect(), tuner, on_epoch: &|_| () }
    }
}

/// The measurement of one epoch.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// The bytes, the time and the number of connections.
    pub sample: Sample,
    /// The phase of the tuner that asked for it.
    pub phase: Phase,
}

/// A pool whose number of connections is steered.
pub(super) struct Steered<'a> {
    pool: &'a Pool<'a>,
    id: PoolId,
    tuner: Tuner,
    asked: Decision,
    asked_at: Instant,
    /// As many as the server grants.
    granted: usize,
    /// How many are awake.
    awake: usize,
    /// Connections that carry bytes.
    flowing: BTreeSet<ServerId>,
    /// Bytes that have come.
    bytes: u64,
    measured: Option<Measured>,
    full_since: Option<Instant>,
}

/// The measured values at the beginning of an epoch.
struct Measured {
    since: Instant,
    bytes: u64,
    writing: Duration,
    n: usize,
}

impl<'a> Steered<'a> {
    /// Adds the pool to the scheduler. None of it is awake.
    pub(super) fn new(pool: &'a Pool<'a>, spread: &mut Spread) -> Self {
        let members: Vec<_> = pool.servers.iter().map(|server| server_id(*server)).collect();
        let (tuner, asked_at) = (pool.tuner.clone(), Instant::now());
        Self {
            pool,
            id: spread.add_pool(&members, SpreadInstant::ZERO),
            asked: tuner.start(),
            tuner,
            asked_at,
            granted: members.len(),
            awake: 0,
            flowing: BTreeSet::new(),
            bytes: 0,
            measured: None,
            full_since: None,
        }
    }

    /// How many connections are to be awake.
    fn wanted(&self) -> usize {
        (self.asked.n as usize).min(self.granted).max(1)
    }

    /// Looks at what has come. Returns the epoch that is over.
    fn look(&mut self, round_trip: Duration, writing: Duration) -> Option<Epoch> {
        let (now, flowing) = (Instant::now(), self.flowing.len());
        match &self.measured {
            None => {
                let is_full = flowing >= self.wanted();
                self.full_since = if is_full { self.full_since.or(Some(now)) } else { None };
                let settle = round_trip * SETTLE_ROUND_TRIPS;
                let is_settled = self.full_since.is_some_and(|at| now - at >= settle);
                let is_late = now - self.asked_at >= SETTLE && flowing > 0;
                if is_settled || is_late {
                    let bytes = self.bytes;
                    self.measured = Some(Measured { since: now, bytes, writing, n: flowing });
                }
                None
            }
            Some(begin) if self.is_over(begin, now, round_trip) => {
                let epoch = self.epoch(begin, now, writing);
                self.asked = self.tuner.handle_sample(&epoch.sample);
                (self.measured, self.full_since, self.asked_at) = (None, None, now);
                Some(epoch)
            }
            Some(_) => None,
        }
    }

    fn is_over(&self, begin: &Measured, now: Instant, round_trip: Duration) -> bool {
        let elapsed = now - begin.since;
        match self.asked.next {
            Next::Bytes(size) => self.bytes - begin.bytes >= size.bytes(),
            Next::For(time) => elapsed >= time.max(round_trip * EPOCH_ROUND_TRIPS),
            Next::Rest => false,
        }
    }

    fn epoch(&self, begin: &Measured, now: Instant, writing: Duration) -> Epoch {
        let elapsed = now - begin.since;
        let n = begin.n.min(self.flowing.len());
        let of_all = elapsed.as_secs_f64() * n.max(1) as f64;
        let is_disk = (writing - begin.writing).as_secs_f64() > WRITING_SHARE * of_all;
        let sample = Sample {
            n: u32::try_from(n).unwrap_or(u32::MAX),
            bytes: DataSize::from_bytes(self.bytes - begin.bytes),
            elapsed,
            limited_by: if is_disk { LimitedBy::Disk } else { LimitedBy::Network },
        };
        Epoch { sample, phase: self.asked.phase }
    }
}

impl<'a> State<'a> {
    fn pool_of(&mut self, server: ServerId) -> Option<&mut Steered<'a>> {
        let pool = *self.pool_of.get(server.0)?;
        self.pools.get_mut(pool?)
    }

    /// Bytes have come from a server.
    pub(super) fn flows(&mut self, server: ServerId, bytes: u64) {
        if let Some(pool) = self.pool_of(server).filter(|_| bytes > 0) {
            pool.flowing.insert(server);
            pool.bytes += bytes;
        }
    }

    /// A server carries nothing: its request has failed, or it rests.
    pub(super) fn stands(&mut self, server: ServerId) {
        if let Some(pool) = self.pool_of(server) {
            pool.flowing.remove(&server);
        }
    }
}

impl Run<'_> {
    /// A connection was refused because the server has enough of them. Its pool has one less, and it is asked for nothing before
    /// its next retry: the others of the pool may be the ones that the server has granted.
    pub(super) fn is_full(&self, state: &mut State<'_>, server: ServerId) {
        if state.pool_of(server).is_none() {
            return self.lose(state, server, Trouble::Full.to_string());
        }
        state.stands(server);
        state.servers[server.0].rest();
        let now = self.now();
        state.spread.handle_lost(server_id(server), now);
        let Some(pool) = state.pool_of(server) else { return };
        pool.granted = pool.granted.min(pool.awake.saturating_sub(1)).max(1);
        pool.awake = pool.wanted();
        let (id, awake) = (pool.id, pool.awake);
        state.spread.wake(id, awake, now);
    }

    /// Measures the pools, and sets the numbers of their connections in use.
    pub(super) fn steer(&self, state: &mut State<'_>) {
        let (now, writing) = (self.now(), self.time_of_writes());
        let State { pools, servers, spread, .. } = state;
        for pool in pools {
            let wanted = pool.wanted();
            if wanted != pool.awake {
                pool.awake = wanted;
                spread.wake(pool.id, wanted, now);
            }
            let carrying = pool.flowing.iter().filter_map(|server| servers.get(server.0));
            let round_trip = carrying.map(|server| server.round_trip()).min().unwrap_or_default();
            if let Some(epoch) = pool.look(round_trip, writing) {
                (pool.pool.on_epoch)(&epoch);
            }
        }
    }
}
