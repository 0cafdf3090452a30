//! The tuner of a session.

use crate::args::GucArgs;
use hikyaku_gridftp::Mode;
use hikyaku_tuner::{Decision, Fixed, LimitedBy, Next, Paper, PaperOptions, Phase, Sample, Tuner};
use hikyaku_units::DataSize;
use std::time::Duration;

/// A chunk was limited by the disk if its connections spent more than this share of their time there.
const DISK_SHARE: f64 = 0.5;

/// With a fixed number of connections the first chunk has this many bytes, or as many as all connections are worth opening
/// for: little enough that a slow path keeps it soon. The next ones follow from what it took.
const FIRST_BYTES: u64 = 16 << 20;
/// Each connection has at least this many bytes of a chunk.
const BYTES_OF_EACH: u64 = 1 << 20;

/// The rule that the user wants, and its last decision.
#[derive(Debug)]
pub(crate) struct Tuning {
    tuner: Tuner,
    asked: Decision,
    /// Time that a chunk should take.
    chunk: Duration,
    /// Bytes in a second of the last chunk.
    goodput: Option<f64>,
}

/// What was measured of a chunk, or of its first part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Measured {
    pub(crate) bytes: u64,
    pub(crate) connections: u32,
    pub(crate) elapsed: Duration,
    /// Share of the connections' time that was spent on the disk, 0 to 1.
    pub(crate) local_share: f64,
}

impl Tuning {
    /// `rtt` is the mean time from a command to its reply.
    pub(crate) fn new(args: &GucArgs, mode: Mode, rtt: Duration) -> Self {
        let fixed = match mode {
            Mode::Extended => args.fixed(),
            Mode::Stream => Some(1),
        };
        let tuner = match fixed {
            Some(n) => Tuner::Fixed(Fixed::new(n)),
            None => {
                let default = PaperOptions::default();
                let options = PaperOptions {
                    first: args.apt_n0,
                    alpha: args.apt_alpha,
                    chunk: args.apt_delta,
                    window: args.tcp_bs.unwrap_or(default.window),
                    cap: args.cap(),
                };
                Tuner::Paper(Paper::new(&options, rtt))
            }
        };
        let asked = tuner.start();
        Self { tuner, asked, chunk: args.apt_delta, goodput: None }
    }

    /// The last decision.
    pub(crate) const fn asked(&self) -> Decision {
        self.asked
    }

    /// Bytes that the next chunk has at most.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        match self.asked.next {
            Next::Bytes(size) => size.bytes(),
            // What is complete is kept: also a number that is never changed needs chunks.
            Next::For(_) | Next::Rest => {
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
