//! What a flow held between two common drains, and what it is due.
//!
//! The law moves windows towards equal rates, but the slower the longer the round trip and the smaller the
//! queue: minutes at 1 Gbit/s and 200 ms. The median of the queue says at once what everybody is due, for all
//! see the same: the rate of which it is the target.

use crate::compete::deaf::Company;
use crate::filters::quantile;
use alloc::vec::Vec;
use libm::{fmax, fmin, sqrt};

/// Share of the way to what is due that is gone at once. All go it together, so the sum stays about what
/// it was; were it all, every error in the median would be one of the rate.
const PART: f64 = 0.4;
/// Nor is more given than leaves this share of a rate.
const LEAST: f64 = 0.9;
/// Between drains more of a queue stands than even rates would make of it, up to twice as much: all are then told to
/// give a tenth, and take it back. Who is due less than this has far more than the others, as who came last has, and
/// gives by the root of it: of sixteen flows over 200 ms, each five seconds after the one before, a tenth at a time
/// took more than a minute.
const FAR: f64 = 0.4;
/// The root is no less than this, so that 0.63 of a rate is left at the least: while flows begin, queues are long, and go
/// again; a rate that went by them comes back by a tenth a drain at the most where round trips are long.
const FARTHEST: f64 = 0.7;
/// Who is alone and has grown too far is told the same, but gets back all that was given: beside others a queue
/// stands with less than this of what a flow had before it gave.
const TAKEN_UP: f64 = 0.97;
/// Nor is more taken than makes a queue of this many seconds until it is heard of, if the others do not give.
const TAKEN: f64 = 0.010;
const MOST: f64 = 1.25;
/// Who has less takes more, in proportion, so that it adds as much as one with an even share; up to twice as much, for
/// where the queue is short all are due more, and the queue they make is as much longer.
const FEW: f64 = 2.0;
/// Rates that differ by less are even enough: they are measured no better. Whoever takes must be surer than
/// who gives.
const GIVES: f64 = 0.92;
const TAKES: f64 = 1.4;
/// Less time than this says little of a median, in seconds.
const ENOUGH: f64 = 1.0;

/// With a queue of so many seconds the bottleneck is busy.
const BUSY: f64 = 0.001;
/// The queue is looked at in pieces of so many seconds, or of a round where that is longer.
const PIECE: f64 = 0.1;

/// Pieces of the time between two common drains.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    queues: Vec<f64>,
    /// Rates of rounds in which a queue stood.
    busy: Vec<f64>,
    piece: Piece,
    seconds: f64,
    bytes: f64,
    base: Option<i64>,
    /// The rate while a queue stood, before some of it was given.
    given: Option<f64>,
    /// Whether others took what was given the last time.
    company: Company,
}

#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    seconds: f64,
    queue: f64,
}

/// What was seen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Seen {
    /// The queue that stood half of the time, in seconds: one that runs over for a moment says nothing of
    /// how it is shared.
    pub(crate) queue: f64,
    /// The mean rate, in bytes a second.
    pub(crate) rate: f64,
}

impl Share {
    /// A round of so many seconds with this queue and rate.
    pub(crate) fn on_round(&mut self, seconds: f64, queue: f64, rate: f64) {
        self.seconds += seconds;
        self.bytes += rate * seconds;
        self.piece.seconds += seconds;
        self.piece.queue += queue * seconds;
        if queue > BUSY {
            self.busy.push(rate);
        }
        if self.piece.seconds >= PIECE {
            self.queues.push(self.piece.queue / self.piece.seconds);
            self.piece = Piece::default();
        }
    }

    /// The base delay, in nanoseconds from any origin. If it is lower than it was taken for, the queue was
    /// longer.
    pub(crate) fn on_base(&mut self, base: Option<i64>) {
        if let (Some(before), Some(base)) = (self.base, base)
            && base < before
        {
            let longer = (before - base) as f64 / 1e9;
            self.queues.iter_mut().for_each(|queue| *queue += longer);
        }
        self.base = base;
    }

    /// What was seen, if it was for some time.
    pub(crate) fn seen(&mut self) -> Option<Seen> {
        let queue = quantile(&mut self.queues, 0.5)?;
        let is_enough = self.seconds >= ENOUGH && queue > 0.0;
        is_enough.then(|| Seen { queue, rate: self.bytes / self.seconds })
    }

    /// Begins anew.
    pub(crate) fn restart(&mut self) {
        let Self { base, given, company, .. } = *self;
        *self = Self { base, given, company, ..Self::default() };
    }

    /// What is due to a flow whose own target queue is `target`, of what was seen; all in seconds.
    pub(crate) fn even(&mut self, target: f64, queue: f64, round_trip: f64) -> Due {
        let busy = quantile(&mut self.busy, 0.5);
        if let (Some(before), Some(now)) = (self.given.take(), busy) {
            let is_less = now < TAKEN_UP * before;
            self.company = if is_less { Company::Others } else { Company::None };
        }
        let due = even(target, queue, round_trip, self.company);
        self.given = busy.filter(|_| due.factor < 1.0);
        due
    }
}

/// What a flow is due.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Due {
    /// What its window is to be multiplied with.
    pub(crate) factor: f64,
    /// What it is due as a share of what it has, as far as that can be told.
    pub(crate) due: f64,
}

/// What a flow is due whose own target queue is `target` while `queue` stands, in seconds. Targets are as the inverse
/// roots of rates.
fn even(target: f64, queue: f64, round_trip: f64, company: Company) -> Due {
    let ratio = target / queue;
    let due = ratio * ratio;
    if (GIVES..=TAKES).contains(&due) {
        return Due { factor: 1.0, due };
    }
    let least = match company {
        Company::None => LEAST,
        Company::Others => LEAST * sqrt(due / FAR).clamp(FARTHEST, 1.0),
    };
    let most = fmin(1.0 + TAKEN / fmax(round_trip, 1e-3) * due.clamp(1.0, FEW), MOST);
    Due { factor: fmin(fmax(1.0 + PART * (due - 1.0), least), most), due }
}

#[cfg(test)]
mod tests;
