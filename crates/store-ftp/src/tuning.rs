//! The tuner of a session.

use hikyaku_gridftp::Mode;
use hikyaku_tuner::{
    ClimbOptions, Decision, Fixed, LimitedBy, Next, Paper, PaperOptions, Phase, Sample, Tuner,
};
use hikyaku_units::DataSize;
use std::time::Duration;

/// The disk has limited a chunk if its connections spent more than this share of their time there.
const DISK_SHARE: f64 = 0.5;

/// With a fixed number of connections the first chunk has this many bytes, or the least that all connections are worth opening
/// for. A slow path completes it soon. The sizes of the next ones follow from its goodput.
const FIRST_BYTES: u64 = 16 << 20;
/// Each connection has at least this many bytes of a chunk.
const BYTES_OF_EACH: u64 = 1 << 20;

/// The number of data connections that carry a file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Connections {
    /// This number, which is not tuned.
    Fixed {
        /// The number.
        n: u32,
        /// Time that a chunk takes.
        chunk: Duration,
    },
    /// It grows while new connections bring as much as those before. Copies between two servers, parts of files to a server and
    /// striped servers, whose number can change only from chunk to chunk, follow the published rule.
    Tuned(Limits),
    /// The published rule searches it, chunk by chunk.
    Published(PaperOptions),
}

/// The limits of a number that is tuned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The number of the beginning, and the least one while all connections are of use. Default: that of [`ClimbOptions`], 16.
    pub first: u32,
    /// The largest number. Default: that of [`ClimbOptions`], 64.
    pub most: u32,
}

impl Default for Limits {
    fn default() -> Self {
        let ClimbOptions { first, cap } = ClimbOptions::default();
        Self { first, most: cap }
    }
}

impl Limits {
    /// One number from the beginning to the end.
    pub const fn exactly(n: u32) -> Self {
        Self { first: n, most: n }
    }

    pub(crate) const fn options(self) -> ClimbOptions {
        ClimbOptions { first: self.first, cap: self.most }
    }
}

impl Default for Connections {
    /// Tuned.
    fn default() -> Self {
        Self::Tuned(Limits::default())
    }
}

impl Connections {
    /// The published rule, if the number is tuned.
    fn published(&self) -> Option<PaperOptions> {
        match self {
            Self::Fixed { .. } => None,
            Self::Tuned(limits) => {
                Some(PaperOptions { cap: limits.most, ..PaperOptions::default() })
            }
            Self::Published(options) => Some(*options),
        }
    }
}

/// The rule of a session, and its last decision.
#[derive(Debug)]
pub(crate) struct Tuning {
    tuner: Tuner,
    asked: Decision,
    /// Time that a chunk takes.
    chunk: Duration,
    /// Bytes in a second of the last chunk.
    goodput: Option<f64>,
}

/// A measurement of a chunk, or of its first part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Measured {
    pub(crate) bytes: u64,
    pub(crate) connections: u32,
    pub(crate) elapsed: Duration,
    /// Share of the connections' time that was spent on the disk, 0 to 1.
    pub(crate) local_share: f64,
}

impl Tuning {
    /// Of a session in this mode. `rtt` is the mean time from a command to its reply.
    pub(crate) fn new(connections: &Connections, mode: Mode, rtt: Duration) -> Self {
        let published = connections.published().unwrap_or_default();
        let chunk = match connections {
            Connections::Fixed { chunk, .. } => *chunk,
            _ => published.chunk,
        };
        let tuner = match (connections, mode) {
            (_, Mode::Stream) => Tuner::Fixed(Fixed::new(1)),
            (Connections::Fixed { n, .. }, Mode::Extended) => Tuner::Fixed(Fixed::new(*n)),
            (_, Mode::Extended) => Tuner::Paper(Paper::new(&published, rtt)),
        };
        let asked = tuner.start();
        Self { tuner, asked, chunk, goodput: None }
    }

    /// The last decision.
    pub(crate) const fn asked(&self) -> Decision {
        self.asked
    }

    /// The largest size of the next chunk in bytes.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        match self.asked.next {
            Next::Bytes(size) => size.bytes(),
            // A complete chunk is kept after a failure, so a number that is never changed needs chunks as well.
            Next::Rest => {
                let least = u64::from(self.asked.n) * BYTES_OF_EACH;
                let by_rate = self.goodput.map(|rate| (rate * self.chunk.as_secs_f64()) as u64);
                by_rate.unwrap_or(FIRST_BYTES).max(least)
            }
        }
    }

    /// Whether the number of connections stays, whatever is measured.
    pub(crate) const fn is_final(&self) -> bool {
        matches!(self.asked.phase, Phase::Found | Phase::Fixed)
    }

    pub(crate) fn learn(&mut self, measured: &Measured) {
        let seconds = measured.elapsed.as_secs_f64().max(1e-3);
        self.goodput = Some(measured.bytes as f64 / seconds);
        let is_disk = measured.local_share > DISK_SHARE;
        self.asked = self.tuner.handle_sample(&Sample {
            n: measured.connections,
            bytes: DataSize::from_bytes(measured.bytes),
            elapsed: measured.elapsed,
            limited_by: if is_disk { LimitedBy::Disk } else { LimitedBy::Network },
        });
    }
}
