//! Pools: servers, such as connections to one machine, of which only a number gets work.
//!
//! A member that rests keeps what it sends within a second, and gives back the rest. If a member is lost or falls silent, one
//! that rests is awake in its place.

use super::end::{Amount, cut};
use super::{News, Spread, server_id};
use crate::ask::Reach;
use crate::command::Command;
use crate::ids::{PoolId, ServerId};
use crate::server::Duty;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::Instant;

/// A member that rests keeps the work of this time: another request for the same bytes would take about as long.
const REST_TIME: Duration = Duration::from_secs(1);

/// Servers of which a number is awake.
#[derive(Debug)]
pub(super) struct Pool {
    members: Vec<usize>,
    awake: usize,
}

impl Spread {
    /// Makes a pool of servers that are in no other pool. All of them rest until [`Spread::wake`]. Ids that the scheduler does
    /// not know are left out.
    pub fn add_pool(&mut self, servers: &[ServerId], now: Instant) -> PoolId {
        let known = servers.iter().map(|server| usize::from(server.0));
        let members: Vec<usize> = known.filter(|&at| at < self.servers.len()).collect();
        for &member in &members {
            self.servers[member].pool = Some(self.pools.len());
            self.set_duty(member, Duty::Resting, now);
        }
        self.pools.push(Pool { members, awake: 0 });
        // Each pool has a member of its own, or is of no use.
        PoolId((self.pools.len() - 1) as u16)
    }

    /// Sets how many members of a pool are awake: as many of those that answer. The ones with work stay awake first, then those
    /// that were added first.
    pub fn wake(&mut self, pool: PoolId, count: usize, now: Instant) {
        if let Some(found) = self.pools.get_mut(usize::from(pool.0)) {
            found.awake = count;
            self.settle_pool(usize::from(pool.0), now);
            // The plan knows nothing of those that were woken.
            self.plan.forget();
        }
    }

    /// The members of a server's pool that are to be awake are.
    pub(super) fn settle_pool_of(&mut self, server: usize, now: Instant) {
        if let Some(pool) = self.servers[server].pool {
            self.settle_pool(pool, now);
        }
    }

    fn settle_pool(&mut self, pool: usize, now: Instant) {
        let Pool { members, awake } = &self.pools[pool];
        let awake = *awake;
        let (mut order, away): (Vec<usize>, Vec<usize>) =
            members.iter().partition(|&&member| self.servers[member].is_up());
        order.sort_by_key(|&member| {
            let found = &self.servers[member];
            match (found.duty, found.asks.is_empty()) {
                (Duty::Awake, false) => 0,
                (Duty::Awake, true) => 1,
                (Duty::Resting, true) => 2,
                // It has given work back, and still sends.
                (Duty::Resting, false) => 3,
            }
        });
        for (at, member) in order.into_iter().enumerate() {
            let duty = if at < awake { Duty::Awake } else { Duty::Resting };
            self.set_duty(member, duty, now);
        }
        for member in away {
            self.servers[member].duty = Duty::Resting;
        }
    }

    fn set_duty(&mut self, server: usize, duty: Duty, now: Instant) {
        let found = &mut self.servers[server];
        if core::mem::replace(&mut found.duty, duty) == duty {
            return;
        }
        self.plan.is_stale = true;
        self.news = News::Some;
        if !found.is_up() {
            return;
        }
        match duty {
            Duty::Awake => self.up.insert(server),
            Duty::Resting => {
                self.up.remove(server);
                found.current = None;
                // Others get its share of the ceiling; awake again, it gets another one.
                found.cap = None;
                let kept = (found.rate(now) * REST_TIME.as_secs_f64()) as u64;
                let amount =
                    Amount { bytes: found.left.saturating_sub(kept), reach: Reach::Untouched, now };
                if found.gives_back() && amount.bytes > 0 {
                    for part in cut(server, found, &mut self.commands, amount, |_| true) {
                        self.stock.give_back(part.file, part.run);
                    }
                }
                self.commands.push_back(Command::Rest { server: server_id(server) });
            }
        }
    }
}
