//! What is simulated, and what came of it.

use crate::world::{SimError, World};
use hikyaku_link::{Counters, LinkSpec};
use hikyaku_proto::{Config, Stats, StreamKind};
use hikyaku_units::{Instant, Rate};
use std::time::Duration;

/// What the client sends.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// This many bytes on one stream; the run ends when all have arrived.
    Bytes(u64, StreamKind),
    /// As much as goes in this time, on one stream.
    For(Duration, StreamKind),
}

/// May change, drop (`None`) or add to what is on the wire: the man in the middle.
pub type Tamper = Box<dyn FnMut(Instant, &[u8]) -> Vec<Vec<u8>>>;

/// One run.
pub struct Scenario {
    /// From client to server.
    pub up: LinkSpec,
    /// From server to client.
    pub down: LinkSpec,
    /// Changes of the links while it runs: (when, up, down).
    pub changes: Vec<(Instant, LinkSpec, LinkSpec)>,
    /// The client's settings.
    pub client: Config,
    /// The server's settings.
    pub server: Config,
    /// What is sent.
    pub load: Load,
    /// Everything random follows from it.
    pub seed: u64,
    /// The longest simulated time.
    pub limit: Duration,
}

impl Scenario {
    /// A transfer of `load` over a symmetric path.
    pub fn over(link: LinkSpec, load: Load, seed: u64) -> Self {
        Self {
            up: link.clone(),
            down: link,
            changes: Vec::new(),
            client: Config::default(),
            server: Config::default(),
            load,
            seed,
            limit: Duration::from_secs(600),
        }
    }

    /// Runs it.
    pub fn run(self) -> Result<Outcome, SimError> {
        World::new(self).run()
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// From the client's first packet to the last byte delivered.
    pub took: Duration,
    /// Bytes delivered to the receiving application.
    pub delivered: u64,
    /// Bytes delivered by the end of each 10 ms.
    pub progress: Vec<u64>,
    /// The sender's statistics every 50 ms.
    pub samples: Vec<(Duration, Stats)>,
    /// The sender's statistics.
    pub client: Stats,
    /// The receiver's.
    pub server: Stats,
    /// The link from sender to receiver.
    pub up: Counters,
    /// Its counters when the first half of the run was over.
    pub up_at_half: Counters,
    /// Most bytes the receiver held for order.
    pub most_held: u64,
}

/// Width of one entry of [`Outcome::progress`].
pub(crate) const TICK: Duration = Duration::from_millis(10);

impl Outcome {
    /// Goodput over the whole run.
    pub fn goodput(&self) -> Rate {
        Rate::from_bytes_per_sec(self.delivered as f64 / self.took.as_secs_f64())
    }

    /// Goodput between two times.
    pub fn goodput_between(&self, from: Duration, to: Duration) -> Rate {
        let at = |t: Duration| {
            let index = (t.as_nanos() / TICK.as_nanos()) as usize;
            self.progress.get(index).or_else(|| self.progress.last()).copied().unwrap_or(0)
        };
        Rate::from_bytes_per_sec((at(to) - at(from)) as f64 / (to - from).as_secs_f64())
    }
}
