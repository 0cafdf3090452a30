//! Which samples count.
//!
//! A sample is dropped, and the same work asked for again, if
//!
//! - a disk limited it: more connections cannot help, and fewer would seem to do no harm;
//! - it has less than half of the bytes or of the time that was asked for, such as the last chunk of a file;
//! - fewer connections were at work than were asked for. If that happens [`MISSES_MAX`] times in a row, the far side
//!   (or a box between) does not grant more: what it granted is the cap from then on.

use crate::sample::{Decision, LimitedBy, Next, Sample};

#[cfg(test)]
mod tests;

/// Samples in a row with connections missing, before what was there is taken for all that will ever be there. One may
/// be a lost SYN, whose first retransmission takes a second.
const MISSES_MAX: u32 = 3;

/// A number that was tried, and what came of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    /// Connections. Real numbers, because means of several samples are points as well.
    pub(crate) n: f64,
    /// Bytes a second.
    pub(crate) goodput: f64,
}

/// The use of a sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Verdict {
    /// It is measured.
    Counts(Point),
    /// The decision before is repeated.
    Again,
    /// The far side grants no more than this.
    Granted(Point),
}

/// Looks at samples before the rule does.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    misses: u32,
}

impl Screen {
    pub(crate) const fn new() -> Self {
        Self { misses: 0 }
    }

    pub(crate) fn judge(&mut self, asked: &Decision, sample: &Sample) -> Verdict {
        let is_disk = sample.limited_by != LimitedBy::Network;
        if is_disk || is_short(asked.next, sample) {
            return Verdict::Again;
        }
        let point = Point {
            n: f64::from(sample.n),
            goodput: sample.bytes.bytes() as f64 / sample.elapsed.as_secs_f64(),
        };
        if sample.n >= asked.n {
            self.misses = 0;
            return Verdict::Counts(Point { n: f64::from(asked.n), ..point });
        }
        self.misses += 1;
        if self.misses < MISSES_MAX || sample.n == 0 {
            return Verdict::Again;
        }
        self.misses = 0;
        Verdict::Granted(point)
    }
}

fn is_short(asked: Next, sample: &Sample) -> bool {
    let is_less = match asked {
        Next::Bytes(size) => sample.bytes.bytes() < size.bytes() / 2,
        Next::Rest => false,
    };
    sample.elapsed.is_zero() || is_less
}
