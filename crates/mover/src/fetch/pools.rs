//! Pools of connections to one server: how many of them carry files, from what they bring.
//!
//! A controller of `hikyaku-tuner` looks at them several times a second. A server that grants no further connection keeps those
//! that it has.

use super::asked::server_id;
use super::run::{Run, State};
use super::tuning::{Member, Seen, Tuning};
use crate::census::ServerId;
use hikyaku_spread::{PoolId, Spread};
use hikyaku_store::{FetchError as Trouble, Fetcher};
use hikyaku_tuner::{Carried, ClimbOptions, Controller, Held, Measured, Phase};
use hikyaku_units::{DataSize, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The time between two looks at the connections.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Connections to one server, which are fetchers of a job, and the rule for their number.
pub struct Pool<'a> {
    /// The connections, in the order in which they are used. A fetcher is in one pool at most.
    pub servers: Vec<ServerId>,
    /// The rule, which pools of other jobs may share.
    pub tuning: Tuning,
    /// Called after each measurement.
    pub on_epoch: &'a (dyn Fn(&Epoch) + Sync),
}

impl Pool<'_> {
    /// A pool of all servers of a job. The number in use grows while new connections bring as much as those before.
    pub fn tuned(servers: usize) -> Self {
        let options = ClimbOptions { cap: number(servers), ..ClimbOptions::default() };
        Self::of_all(servers, Controller::climb(&options))
    }

    /// A pool of all servers of a job, which are all in use, except for those that their server refuses.
    pub fn fixed(servers: usize) -> Self {
        Self::of_all(servers, Controller::fixed(number(servers)))
    }

    fn of_all(servers: usize, controller: Controller) -> Self {
        let tuning = Tuning::new(controller.in_waves());
        Self { servers: (0..servers).map(ServerId).collect(), tuning, on_epoch: &|_| () }
    }
}

fn number(connections: usize) -> u32 {
    u32::try_from(connections).unwrap_or(u32::MAX)
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// The bytes, the time and the number of connections.
    pub measured: Measured,
    /// The state of the rule.
    pub phase: Phase,
}

/// A pool whose number of connections is steered.
pub(super) struct Steered<'a> {
    pool: &'a Pool<'a>,
    id: PoolId,
    member: Member,
    /// How many are awake.
    awake: usize,
    /// Time for which connections had nothing to fetch, summed over them.
    idle: Duration,
    /// Those that carry bytes, and those of them that rest after what they still send.
    flowing: BTreeSet<ServerId>,
    resting: BTreeSet<ServerId>,
    /// Bytes that have come, and those of each.
    bytes: u64,
    each: BTreeMap<ServerId, u64>,
    looked: Instant,
    /// A connection has brought its first bytes since then.
    is_news: bool,
    /// The number that the server's connections have noted.
    noted: Option<Held>,
}

impl<'a> Steered<'a> {
    /// Adds the pool to the scheduler. None of it is awake.
    pub(super) fn new(
        pool: &'a Pool<'a>,
        servers: &[Arc<dyn Fetcher>],
        spread: &mut Spread,
    ) -> Self {
        let member = pool.tuning.join();
        let first = pool.servers.first().and_then(|first| servers.get(first.0));
        let held = first.and_then(|first| first.held_before());
        held.into_iter().for_each(|held| member.begin_after(held));
        let members: Vec<_> = pool.servers.iter().map(|server| server_id(*server)).collect();
        Self {
            pool,
            id: spread.add_pool(&members, Instant::ZERO),
            member,
            awake: 0,
            idle: Duration::ZERO,
            flowing: BTreeSet::new(),
            resting: BTreeSet::new(),
            bytes: 0,
            each: BTreeMap::new(),
            looked: Instant::ZERO,
            is_news: false,
            noted: None,
        }
    }

    /// Lets the next transfer know the number that was held for some time.
    fn note_held(&mut self, servers: &[Arc<dyn Fetcher>]) {
        let held = self.member.held();
        let Some(first) = self.pool.servers.first().and_then(|first| servers.get(first.0)) else {
            return;
        };
        if held == self.noted {
            return;
        }
        self.noted = held;
        if let Some(held) = held {
            first.note_held(held.remembered());
        }
    }

    /// How many connections are to be awake.
    fn wanted(&self) -> usize {
        (self.member.n() as usize).min(self.pool.servers.len()).max(1)
    }

    /// The connections at this time. Writing to the store has taken `writes`, and `missing` bytes are to come by them.
    fn seen(&self, servers: &[Arc<dyn Fetcher>], (writes, missing): (Duration, DataSize)) -> Seen {
        let all = self.flowing.iter();
        let carried =
            |server: &ServerId| self.carried(*server, servers[server.0].latest_round_trip());
        let round_trips = self.flowing.iter().map(|server| servers[server.0].round_trip());
        let paused = self.pool.servers.iter().map(|server| servers[server.0].paused());
        Seen {
            bytes: self.bytes,
            held_up: writes + self.idle + paused.sum::<Duration>(),
            round_trip: round_trips.min().unwrap_or_default(),
            missing,
            connections: all.map(carried).collect(),
        }
    }

    fn carried(&self, server: ServerId, round_trip: Option<Duration>) -> Carried {
        let bytes = self.each.get(&server).copied().unwrap_or_default();
        Carried { id: number(server.0), bytes: DataSize::from_bytes(bytes), round_trip }
    }
}

impl<'a> State<'a> {
    fn pool_of(&mut self, server: ServerId) -> Option<&mut Steered<'a>> {
        let pool = *self.pool_of.get(server.0)?;
        self.pools.get_mut(pool?)
    }

    /// Bytes have come from a server. Returns whether they are the first ones: others may follow.
    pub(super) fn flows(&mut self, server: ServerId, bytes: u64) -> bool {
        let Some(pool) = self.pool_of(server).filter(|_| bytes > 0) else { return false };
        let is_first = pool.flowing.insert(server);
        if is_first {
            pool.is_news = true;
        }
        pool.bytes += bytes;
        *pool.each.entry(server).or_default() += bytes;
        is_first
    }

    /// A server carries nothing: its request has failed.
    pub(super) fn stands(&mut self, server: ServerId) {
        if let Some(pool) = self.pool_of(server) {
            pool.flowing.remove(&server);
        }
    }

    /// A server gets requests again.
    pub(super) fn works(&mut self, server: ServerId) {
        if let Some(pool) = self.pool_of(server) {
            pool.resting.remove(&server);
        }
    }

    /// A server gets no requests. One that has some carries bytes until their end.
    pub(super) fn rests(&mut self, server: ServerId) {
        let has_request = self.requests.values().any(|other| other.server == server);
        if let Some(pool) = self.pool_of(server) {
            pool.resting.insert(server);
            if !has_request {
                pool.flowing.remove(&server);
            }
        }
    }

    /// A request of a server is over.
    pub(super) fn ends(&mut self, server: ServerId) {
        if let Some(pool) = self.pool_of(server)
            && pool.resting.contains(&server)
        {
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
        pool.member.refuse(number(pool.flowing.len()));
        pool.awake = pool.wanted();
        let (id, awake) = (pool.id, pool.awake);
        state.spread.wake(id, awake, now);
    }

    /// Looks at the pools, and sets the numbers of their connections in use.
    pub(super) fn steer(&self, state: &mut State<'_>) {
        let (now, writes) = (self.now(), self.time_of_writes());
        let State { pools, servers, spread, requests, .. } = state;
        let missing = spread.missing_bytes().bytes() / pools.len().max(1) as u64;
        let missing = DataSize::from_bytes(missing);
        for pool in pools {
            let since = now.since(pool.looked);
            if since >= LOOK_EVERY || pool.is_news {
                (pool.looked, pool.is_news) = (now, false);
                if spread.is_all_asked() {
                    let asked = requests.values();
                    let busy = asked.filter(|asked| pool.pool.servers.contains(&asked.server));
                    let idle = pool.awake.saturating_sub(busy.count());
                    pool.idle += since * number(idle);
                }
                let seen = pool.seen(servers, (writes, missing));
                let phase = pool.member.phase();
                if let Some(measured) = pool.member.look(seen) {
                    (pool.pool.on_epoch)(&Epoch { measured, phase });
                    pool.note_held(servers);
                }
            }
            let wanted = pool.wanted();
            if wanted != pool.awake {
                pool.awake = wanted;
                spread.wake(pool.id, wanted, now);
            }
        }
    }
}
