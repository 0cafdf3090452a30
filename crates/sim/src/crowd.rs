//! Many flows at one bottleneck, and the goodput of each.

use crate::middlebox::OnTheWay;
use crate::scenario::{FlowEnd, FlowKind, FlowSpec, Load, goodput_between};
use crate::tcp::Congestion;
use crate::trace::{self, Trace};
use crate::world::{Plan, SimError, World};
use hikyaku_link::{Counters, LinkSpec};
use hikyaku_proto::{Config, Policy, Stats, StreamKind};
use hikyaku_units::Rate;
use std::time::Duration;

/// Flows that share a link in both directions.
pub struct Crowd {
    link: LinkSpec,
    members: Vec<Member>,
    seed: u64,
}

/// One flow of a crowd.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The kind of its sender.
    pub who: Who,
    /// When it starts, after the first instant.
    pub begins: Duration,
    /// Its round-trip time without queues, at least that of the link.
    pub rtt: Duration,
}

/// The sender of a flow.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    /// This project's transport with this policy.
    Ours(Policy),
    /// A model of TCP.
    Tcp(Congestion),
}

/// The result of a crowd.
#[derive(Clone, Debug)]
pub struct Shares {
    /// The goodput of each member in the measured interval.
    pub goodput: Vec<Rate>,
    /// The mean queueing delay in that interval.
    pub queue: Duration,
    /// The fraction of segments that the full queue dropped in that interval.
    pub overflow: f64,
    /// The statistics over time of each member with this project's transport, since its start.
    /// Empty for the others.
    pub samples: Vec<Vec<(Duration, Stats)>>,
}

impl Crowd {
    /// A crowd at `link`. The link's `delay` is replaced by that of each member.
    pub const fn new(link: LinkSpec, seed: u64) -> Self {
        Self { link, members: Vec::new(), seed }
    }

    /// Adds `members`.
    #[must_use]
    pub fn with(mut self, members: impl IntoIterator<Item = Member>) -> Self {
        self.members.extend(members);
        self
    }

    /// Runs the crowd for `time`. The result covers the interval from `from` on.
    pub fn run(mut self, from: Duration, time: Duration) -> Result<Shares, SimError> {
        let least = self.members.iter().map(|member| member.rtt).min().unwrap_or_default();
        self.link.delay = least / 2;
        let begins: Vec<_> = self.members.iter().map(|member| member.begins).collect();
        let flows = self.members.iter().map(|member| FlowSpec {
            begins: member.begins,
            extra: (member.rtt - least) / 2,
            kind: member.who.kind(time),
        });
        let plan = Plan {
            flows: flows.collect(),
            up: self.link.clone(),
            down: self.link,
            changes: Vec::new(),
            time: Some(time),
            mark: from,
            seed: self.seed,
            limit: Duration::MAX,
        };
        let ending = World::new(plan).run()?;
        if trace::is_asked() {
            for (flow, number) in ending.flows.iter().zip(1..) {
                if let FlowEnd::Ours(pair) = flow {
                    println!("flow {number}\n{}", Trace(&pair.samples));
                }
            }
        }
        let judged = ending.flows.iter().zip(begins).map(|(flow, begins)| {
            let progress = match flow {
                FlowEnd::Ours(pair) => &pair.progress,
                FlowEnd::Tcp(progress) => progress,
            };
            goodput_between(progress, from - begins, time - begins)
        });
        let goodput = judged.collect();
        Ok(Shares {
            goodput,
            queue: ending.up.mean_wait_since(&ending.up_at_mark),
            overflow: overflow(&ending.up, &ending.up_at_mark),
            samples: ending.flows.into_iter().map(samples).collect(),
        })
    }
}

fn samples(flow: FlowEnd) -> Vec<(Duration, Stats)> {
    match flow {
        FlowEnd::Ours(pair) => pair.samples,
        FlowEnd::Tcp(_) => Vec::new(),
    }
}

fn overflow(end: &Counters, mark: &Counters) -> f64 {
    let segments = end.segments - mark.segments;
    (end.overflowed - mark.overflowed) as f64 / segments.max(1) as f64
}

impl Who {
    fn kind(self, time: Duration) -> FlowKind {
        match self {
            Self::Tcp(congestion) => FlowKind::Tcp(congestion),
            Self::Ours(policy) => {
                let client = Box::new(Config { policy, ..Config::default() });
                let load = Load::For(time, StreamKind::Ordered);
                FlowKind::Ours { client, server: Box::default(), load, way: OnTheWay::default() }
            }
        }
    }
}

impl Shares {
    /// The goodput of all members together.
    pub fn sum(&self) -> Rate {
        Rate::from_bytes_per_sec(self.goodput.iter().map(|rate| rate.bytes_per_sec()).sum())
    }

    /// How evenly the members share; see [`jain`].
    pub fn jain(&self) -> f64 {
        jain(&self.goodput.iter().map(|rate| rate.bytes_per_sec()).collect::<Vec<_>>())
    }
}

/// Jain's fairness index: 1 if all have the same, 1/n if one has all (Jain et al., 1984).
pub fn jain(rates: &[f64]) -> f64 {
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    rates.iter().sum::<f64>().powi(2) / (rates.len() as f64 * squares)
}
