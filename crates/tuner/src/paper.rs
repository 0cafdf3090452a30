//! The published algorithm: GridFTP with automatic parallelism tuning (Osaka University, 2007).
//!
//! A file is sent in chunks, each with another number of connections. The number is multiplied by alpha until goodput
//! falls. Between the last three numbers a golden section finds the best one, which is kept to the end. The size of a
//! chunk is chosen so that it takes Delta seconds at the goodput that is expected of its number.
//!
//! Points that the paper leaves open are settled here:
//!
//! | open | settled |
//! |---|---|
//! | rounding | half up, at least 1; the rounded number is what the bracket remembers, since it was measured |
//! | end of the search | when the next number was tried already, or the bracket is at most 2 wide |
//! | no limit of the number | a cap (128). Reached while goodput rises, the search goes on just below it |
//! | a fall at the second chunk | the left end is max(1, N0 / alpha), whose goodput is taken for half of the first |
//! | a tie | is no fall and no improvement, as printed |
//! | goodput of the middle number | the value of the chunk that tried it |
//! | a chunk that was cut short | does not count if it has less than half of its bytes |
//!
//! The algorithm keeps its limits: one wrong comparison is never undone, and a path that changes after the search has
//! ended is not noticed.

mod bracket;

use crate::sample::{Decision, Next, Phase, Sample};
use crate::screen::{Point, Screen, Verdict};
use bracket::{Bracket, Grown, Growth};
use core::time::Duration;
use hikyaku_units::DataSize;

#[cfg(test)]
mod tests;

/// A chunk has at least this many bytes: an estimate of nearly zero would otherwise ask for chunks without data.
const CHUNK_BYTES_MIN: f64 = 65_536.0;

/// Options of [`Paper`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PaperOptions {
    /// N0, connections of the first chunk. Default 4, as in the paper's tests.
    pub first: u32,
    /// Factor from chunk to chunk. Default 2, as in the paper's tests. Not above 1 is taken for 2.
    pub alpha: f64,
    /// Delta, seconds that a chunk should take. Default 3 s, as in the paper; too short for paths of more than 80 ms.
    pub chunk: Duration,
    /// W, bytes that one connection has in flight at most: the socket buffer. Default 64 KiB, as in the paper's tests.
    /// Where the kernel tunes buffers there is no such number; a small one only makes the first chunk short.
    pub window: DataSize,
    /// The largest number. Default 128: twice what the paper's paths need.
    pub cap: u32,
}

impl Default for PaperOptions {
    fn default() -> Self {
        Self {
            first: 4,
            alpha: 2.0,
            chunk: Duration::from_secs(3),
            window: DataSize::from_bytes(64 << 10),
            cap: 128,
        }
    }
}

/// The published algorithm. See the module's documentation.
#[derive(Clone, Debug)]
pub struct Paper {
    chunk: Duration,
    screen: Screen,
    state: State,
    asked: Decision,
}

#[derive(Clone, Debug)]
enum State {
    Growing(Growth),
    Searching(Bracket),
    Found,
}

impl Paper {
    /// `rtt` is R, the mean time from a command to its reply: see [`RttMean`](crate::RttMean). Zero is taken for 1 ms.
    pub fn new(options: &PaperOptions, rtt: Duration) -> Self {
        let cap = options.cap.max(1);
        let first = options.first.clamp(1, cap);
        let alpha = if options.alpha > 1.0 { options.alpha } else { 2.0 };
        let rtt = rtt.max(Duration::from_millis(1)).as_secs_f64();
        let expected = f64::from(first) * options.window.bytes() as f64 / rtt;
        let chunk = options.chunk;
        Self {
            chunk,
            screen: Screen::new(),
            state: State::Growing(Growth::new(alpha, f64::from(cap))),
            asked: ask(f64::from(first), expected, chunk, Phase::Bracket),
        }
    }

    pub(crate) const fn start(&self) -> Decision {
        self.asked
    }

    pub(crate) fn handle_sample(&mut self, sample: &Sample) -> Decision {
        self.asked = match self.screen.judge(&self.asked, sample) {
            Verdict::Again => self.asked,
            Verdict::Counts(point) => self.follow(point),
            Verdict::Granted(point) => {
                if let State::Growing(growth) = &mut self.state {
                    growth.cap_at(point.n);
                }
                self.follow(point)
            }
        };
        self.asked
    }

    /// The result of the search.
    pub(crate) const fn found(&self) -> Option<u32> {
        match self.state {
            State::Found => Some(self.asked.n),
            State::Growing(_) | State::Searching(_) => None,
        }
    }

    fn follow(&mut self, tried: Point) -> Decision {
        let bracket = match &mut self.state {
            State::Found => return ask(tried.n, tried.goodput, self.chunk, Phase::Found),
            State::Searching(bracket) => bracket.narrowed(tried),
            State::Growing(growth) => match growth.grow(tried) {
                Grown::Larger { n, expected } => {
                    return ask(n, expected, self.chunk, Phase::Bracket);
                }
                Grown::Bracket(bracket) => bracket,
            },
        };
        let n = rounded(bracket.candidate());
        if bracket.is_over(n) {
            self.state = State::Found;
            return ask(bracket.middle.n, bracket.middle.goodput, self.chunk, Phase::Found);
        }
        let expected = bracket.expected(n);
        self.state = State::Searching(bracket);
        ask(n, expected, self.chunk, Phase::Search)
    }
}

fn ask(n: f64, expected: f64, chunk: Duration, phase: Phase) -> Decision {
    let bytes = libm::fmax(expected * chunk.as_secs_f64(), CHUNK_BYTES_MIN);
    Decision {
        n: rounded(n) as u32,
        next: Next::Bytes(DataSize::from_bytes(libm::round(bytes) as u64)),
        phase,
    }
}

/// Half up, at least 1.
fn rounded(n: f64) -> f64 {
    libm::fmax(libm::floor(n + 0.5), 1.0)
}
