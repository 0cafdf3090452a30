//! Making the plan: how much of which group each server is to send, and when everything can be there.

use super::end::{Amount, cut};
use super::{Spread, Target, server_id};
use crate::ask::Reach;
use crate::ceiling::{Demand, divide};
use crate::command::Command;
use crate::flow::Source;
use crate::server::Server;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Rate};

/// The time between two plans.
const PLAN_EVERY: Duration = Duration::from_millis(500);

/// The shortest time between two plans, however much changes.
const PLAN_TIME_MIN: Duration = Duration::from_millis(100);

/// A server whose rate has changed by this share since the last plan makes a new one necessary.
const RATE_CHANGE: f64 = 0.25;

/// A limit that changes by less than this share is not sent.
const CAP_CHANGE: f64 = 0.02;

/// The plan.
#[derive(Debug, Default)]
pub(super) struct Plan {
    made: Option<Instant>,
    /// When all bytes can be there.
    pub(super) end: Instant,
    /// The rates that it was made with, in bytes a second.
    rates: Vec<f64>,
    /// Whether something has happened that it does not know of.
    pub(super) is_stale: bool,
    /// For each server, the groups to take from, the next one last. Only if there are too many groups for a plan.
    pub(super) scarce_first: Option<Vec<Vec<u32>>>,
    /// When the ceiling was last divided.
    divided: Option<Instant>,
}

impl Plan {
    /// The next one is due at once.
    pub(super) const fn forget(&mut self) {
        self.made = None;
    }

    /// When the next one is due.
    pub(super) fn next_at(&self) -> Instant {
        let wait = if self.is_stale { PLAN_TIME_MIN } else { PLAN_EVERY };
        self.made.map_or(Instant::ZERO, |made| made + wait)
    }
}

impl Spread {
    /// Makes the plan if it is due, takes back what servers have too much of, and divides the ceiling.
    pub(super) fn plan_if_due(&mut self, now: Instant) {
        if self.client.target == Target::Ready {
            self.plan.is_stale |= self.rates_have_changed(now) || self.plan.end <= now;
        }
        if now < self.plan.next_at() {
            return;
        }
        self.plan.made = Some(now);
        self.plan.is_stale = false;
        if self.client.target == Target::Ready {
            self.take_back(now);
        }
        if self.client.target == Target::Ready || self.network.groups() == 0 {
            self.make_plan(now);
        }
        self.divide_ceiling(now);
    }

    fn rates_have_changed(&self, now: Instant) -> bool {
        self.servers.iter().enumerate().filter(|(_, server)| server.is_ready()).any(
            |(at, server)| {
                let (new, old) =
                    (server.rate(now), self.plan.rates.get(at).copied().unwrap_or(0.0));
                new < old * (1.0 - RATE_CHANGE) || new > old * (1.0 + RATE_CHANGE)
            },
        )
    }

    /// Makes the plan, whether it is due or not.
    fn make_plan(&mut self, now: Instant) {
        let source = |server: &Server| Source {
            rate: if server.is_ready() { server.rate(now) } else { 0.0 },
            busy: if server.is_ready() { server.left } else { 0 },
        };
        let sources: Vec<Source> = self.servers.iter().map(source).collect();
        self.plan.rates = sources.iter().map(|source| source.rate).collect();
        let busy: u64 = sources.iter().map(|source| source.busy).sum();
        let all = (self.stock.free_bytes() as f64) + busy as f64;
        let rate: f64 = self.plan.rates.iter().sum();
        let link = self.client.capacity.map_or(f64::INFINITY, Rate::bytes_per_sec);
        let ceiling = self.client.ceiling.map_or(f64::INFINITY, Rate::bytes_per_sec);
        let time_min = all / link.min(ceiling).max(1.0);
        let groups = self.stock.groups();
        let time = if groups.len() > self.settings.planned_groups_max {
            self.plan.scarce_first = Some(self.scarce_first());
            time_min.max(all / rate.max(1.0))
        } else {
            for group in &groups[self.network.groups()..] {
                self.network.add_group(group.replicas().iter());
            }
            let sizes: Vec<u64> = groups.iter().map(|group| group.free_bytes()).collect();
            self.plan.scarce_first = None;
            self.network.solve(&sizes, &sources, time_min)
        };
        self.plan.end = now + Duration::try_from_secs_f64(time).unwrap_or(Duration::MAX);
    }

    /// For each server, its groups with free work. Last are those whose living replicas are the slowest together: at
    /// first those that no other server has, then those of which the others send least.
    fn scarce_first(&self) -> Vec<Vec<u32>> {
        let mut lists: Vec<Vec<(u64, u32)>> = self.servers.iter().map(|_| Vec::new()).collect();
        for (index, group) in (0u32..).zip(self.stock.groups()) {
            if group.free_bytes() > 0 {
                let replicas = || group.replicas().iter();
                let rate: f64 = replicas().map(|server| self.plan.rates[server]).sum();
                replicas().for_each(|server| lists[server].push((rate as u64, index)));
            }
        }
        let sorted = |mut list: Vec<(u64, u32)>| {
            list.sort_unstable_by(|a, b| b.cmp(a));
            list.into_iter().map(|(_, index)| index).collect()
        };
        lists.into_iter().map(sorted).collect()
    }

    /// Takes back the unsent work of servers that have too much to do at the rate that they have. Something stays, so
    /// that a server that has fallen silent is not taken for one without work.
    fn take_back(&mut self, now: Instant) {
        for server in 0..self.servers.len() {
            let found = &self.servers[server];
            let rate = found.rate(now);
            if found.is_up() && found.is_timed() && found.left > found.target_max(rate) {
                let bytes = found.left.saturating_sub(found.target(rate).max(1));
                let found = &mut self.servers[server];
                let amount = Amount { bytes, reach: Reach::Untouched, now };
                for part in cut(server, found, &mut self.commands, amount, |_| true) {
                    self.stock.give_back(part.file, part.run);
                }
            }
        }
    }

    fn divide_ceiling(&mut self, now: Instant) {
        let since = self.plan.divided.map_or(PLAN_EVERY, |divided| now - divided);
        let is_due = since >= PLAN_EVERY || self.client.ceiling.is_none();
        let up: Vec<usize> = self.up.iter().collect();
        // A server without a share of the ceiling gets one at once: until then it may send at any rate.
        if !is_due && up.iter().all(|&server| self.servers[server].cap.is_some()) {
            return;
        }
        let demand = |&server: &usize| {
            let Server { arrived, cap, .. } = self.servers[server];
            // Before it is due little is known of what the others use. Each counts as one that uses up its share.
            let used =
                if is_due { Some(Rate::of(DataSize::from_bytes(arrived), since)) } else { cap };
            Demand { used: used.unwrap_or(Rate::ZERO), cap }
        };
        let demands: Vec<Demand> = up.iter().map(demand).collect();
        let limits = self.client.ceiling.map(|ceiling| divide(ceiling, &demands));
        if is_due {
            self.plan.divided = Some(now);
        }
        for (at, &server) in up.iter().enumerate() {
            let found = &mut self.servers[server];
            if is_due {
                found.arrived = 0;
            }
            let new = limits.as_ref().map(|limits| limits[at]);
            if differ(found.cap, new) {
                found.cap = new;
                self.commands.push_back(Command::Cap { server: server_id(server), rate: new });
            }
        }
    }
}

/// Whether a limit has to be sent.
fn differ(old: Option<Rate>, new: Option<Rate>) -> bool {
    match (old, new) {
        (None, None) => false,
        (Some(old), Some(new)) => {
            let by = old.bits_per_sec().abs_diff(new.bits_per_sec());
            by as f64 > CAP_CHANGE * old.bits_per_sec() as f64
        }
        _ => true,
    }
}
