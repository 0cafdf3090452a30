//! One transfer over a path of its own, and its result.

use crate::meddler::Meddler;
use crate::middlebox::{Middlebox, OnTheWay};
use crate::pair::PairEnd;
use crate::tcp::Congestion;
use crate::world::{Plan, SimError, World};
use hikyaku_link::{Counters, LinkSpec};
use hikyaku_proto::{Config, Stats, StreamKind};
use hikyaku_units::{Instant, Rate};
use std::time::Duration;

/// What the client sends.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// This many bytes on one stream. The run ends when all have arrived.
    Bytes(u64, StreamKind),
    /// As much as possible in this time, on one stream.
    For(Duration, StreamKind),
}

/// One run.
pub struct Scenario {
    /// The link from client to server.
    pub up: LinkSpec,
    /// The link from server to client.
    pub down: LinkSpec,
    /// Changes of the links during the run: (time, up, down).
    pub changes: Vec<(Instant, LinkSpec, LinkSpec)>,
    /// The client's settings.
    pub client: Config,
    /// The server's settings.
    pub server: Config,
    /// Middleboxes that change headers.
    pub middle: Middlebox,
    /// The data to send.
    pub load: Load,
    /// An attacker on the path, or a malicious end.
    pub meddler: Option<Box<dyn Meddler>>,
    /// The seed of all random choices.
    pub seed: u64,
    /// Maximum simulated time.
    pub limit: Duration,
}

/// One flow of a world.
pub(crate) struct FlowSpec {
    /// When it starts, after the first instant.
    pub(crate) begins: Duration,
    /// The one-way delay of its path in addition to that of the links.
    pub(crate) extra: Duration,
    pub(crate) kind: FlowKind,
}

pub(crate) enum FlowKind {
    Ours { client: Box<Config>, server: Box<Config>, load: Load, way: OnTheWay },
    Tcp(Congestion),
}

/// The result of a flow.
pub(crate) enum FlowEnd {
    Ours(Box<PairEnd>),
    /// Bytes that had arrived at each tick.
    Tcp(Vec<u64>),
}

impl Scenario {
    /// A transfer of `load` over a symmetric path.
    pub fn over(link: LinkSpec, load: Load, seed: u64) -> Self {
        Self {
            up: link.clone(),
            down: link,
            changes: Vec::new(),
            middle: Middlebox::default(),
            client: Config::default(),
            server: Config::default(),
            load,
            meddler: None,
            seed,
            limit: Duration::from_secs(600),
        }
    }

    /// Runs the scenario.
    pub fn run(self) -> Result<Outcome, SimError> {
        let (time, mark) = match self.load {
            Load::Bytes(..) => (None, Duration::MAX),
            Load::For(time, _) => (Some(time), time / 2),
        };
        let (client, server) = (Box::new(self.client), Box::new(self.server));
        let way = OnTheWay { middle: self.middle, meddler: self.meddler };
        let kind = FlowKind::Ours { client, server, load: self.load, way };
        let plan = Plan {
            up: self.up,
            down: self.down,
            changes: self.changes,
            flows: vec![FlowSpec { begins: Duration::ZERO, extra: Duration::ZERO, kind }],
            time,
            mark,
            seed: self.seed,
            limit: self.limit,
        };
        let ending = World::new(plan).run()?;
        let Some(FlowEnd::Ours(pair)) = ending.flows.into_iter().next() else {
            unreachable!("a world ends with the flows it began with");
        };
        let PairEnd { delivered, progress, samples, client, server, most_held } = *pair;
        Ok(Outcome {
            took: ending.took,
            delivered,
            progress,
            samples,
            client,
            server,
            up: ending.up,
            up_at_half: ending.up_at_mark,
            most_held,
        })
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The time from the client's first packet to the last delivered byte.
    pub took: Duration,
    /// Bytes delivered to the receiving application.
    pub delivered: u64,
    /// Bytes delivered by the end of each interval of 10 ms.
    pub progress: Vec<u64>,
    /// The sender's statistics every 50 ms.
    pub samples: Vec<(Duration, Stats)>,
    /// The sender's statistics at the end.
    pub client: Stats,
    /// The receiver's statistics at the end.
    pub server: Stats,
    /// Counters of the link from sender to receiver.
    pub up: Counters,
    /// The same counters after the first half of the run.
    pub up_at_half: Counters,
    /// Maximum bytes that the receiver held because earlier ones were missing.
    pub most_held: u64,
}

/// The interval of [`Outcome::progress`].
pub(crate) const TICK: Duration = Duration::from_millis(10);

impl Outcome {
    /// Goodput over the whole run.
    pub fn goodput(&self) -> Rate {
        Rate::from_bytes_per_sec(self.delivered as f64 / self.took.as_secs_f64())
    }

    /// Goodput between two times.
    pub fn goodput_between(&self, from: Duration, to: Duration) -> Rate {
        goodput_between(&self.progress, from, to)
    }
}

/// Goodput between two times since the start, computed from what had arrived at each tick.
pub(crate) fn goodput_between(progress: &[u64], from: Duration, to: Duration) -> Rate {
    let at = |t: Duration| {
        let index = (t.as_nanos() / TICK.as_nanos()) as usize;
        progress.get(index).or_else(|| progress.last()).copied().unwrap_or(0)
    };
    Rate::from_bytes_per_sec((at(to) - at(from)) as f64 / (to - from).as_secs_f64())
}
