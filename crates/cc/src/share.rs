//! The rate of a flow between two common drains, and its fair share.
//!
//! The law moves windows towards equal rates, but the longer the round trip and the smaller the queue, the slower:
//! minutes at 1 Gbit/s and 200 ms. The median of the queue gives the fair share at once, because all flows measure one
//! queue: the fair share is the rate whose target queue it is.

use crate::compete::deaf::Company;
use crate::filters::quantile;
use alloc::vec::Vec;
use libm::{fmax, fmin, sqrt};

/// Part of the difference to the fair share that is corrected at once. All flows correct together, so the sum of rates
/// is nearly constant. With all of it, each error of the median would be an error of the rate.
const PART: f64 = 0.4;
/// Lowest factor of one correction.
const LEAST: f64 = 0.9;
/// Between drains the queue is longer than equal rates would make it, up to twice as long: all flows then reduce their
/// rate by a tenth and take it back. A flow whose fair share is below this part of its rate has far more than the
/// others, as the last arrival has. It reduces by the square root: with 16 flows over 200 ms, five seconds apart, steps of
/// a tenth took more than a minute.
const FAR: f64 = 0.4;
/// Lowest value of the square root, so that at least 0.63 of the rate remains. Queues are long for a short time while
/// flows start, and where round trips are long a reduced rate recovers by at most a tenth a drain.
const FARTHEST: f64 = 0.7;
/// A flow that is alone and has grown too far reduces its rate as well, but gets all of it back. Beside other flows its
/// rate with a standing queue stays below this part of the rate before the reduction.
const TAKEN_UP: f64 = 0.97;
/// Seconds of queue that an increase may cause until the flow measures it, if the other flows do not yield.
const TAKEN: f64 = 0.010;
const MOST: f64 = 1.25;
/// A flow with a small rate increases by a larger factor, so that it adds as many bytes as a flow with an equal share.
/// At most twice as much: where the queue is short, the fair share of every flow is above its rate, and all increase.
const FEW: f64 = 2.0;
/// Fair shares between these, as parts of the rate, cause no correction: they are within the error of measurement. An
/// increase needs a larger difference than a reduction.
const GIVES: f64 = 0.92;
const TAKES: f64 = 1.4;
/// Seconds of measurements that a median needs.
const ENOUGH: f64 = 1.0;

/// Seconds of queue from which on the bottleneck counts as busy.
const BUSY: f64 = 0.001;
/// Seconds over which the queue is averaged, or a round where that is longer.
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
    /// The rate with a standing queue before the last reduction.
    given: Option<f64>,
    /// Whether other flows took the rate that the last reduction released.
    company: Company,
}

#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    seconds: f64,
    queue: f64,
}

/// Measurements between two drains.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Seen {
    /// The median of the queue in seconds. A short overflow has no effect on it.
    pub(crate) queue: f64,
    /// The mean rate, in bytes a second.
    pub(crate) rate: f64,
}

impl Share {
    /// Adds a round: its length and mean queue in seconds, and its rate.
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

    /// Sets the base delay, in nanoseconds from any origin. If it is lower than the previous value, the measured queues
    /// are corrected upwards.
    pub(crate) fn on_base(&mut self, base: Option<i64>) {
        if let (Some(before), Some(base)) = (self.base, base)
            && base < before
        {
            let longer = (before - base) as f64 / 1e9;
            self.queues.iter_mut().for_each(|queue| *queue += longer);
        }
        self.base = base;
    }

    /// The measurements, after at least [`ENOUGH`] seconds.
    pub(crate) fn seen(&mut self) -> Option<Seen> {
        let queue = quantile(&mut self.queues, 0.5)?;
        let is_enough = self.seconds >= ENOUGH && queue > 0.0;
        is_enough.then(|| Seen { queue, rate: self.bytes / self.seconds })
    }

    /// Discards the measurements and begins again.
    pub(crate) fn restart(&mut self) {
        let Self { base, given, company, .. } = *self;
        *self = Self { base, given, company, ..Self::default() };
    }

    /// The fair share of a flow whose own target queue is `target`, from the measured `queue`; all in seconds.
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

/// The fair share of a flow, and the correction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Due {
    /// Factor for its window.
    pub(crate) factor: f64,
    /// Estimate of the fair share, as a part of its rate.
    pub(crate) due: f64,
}

/// The fair share of a flow whose own target queue is `target` while the queue is `queue`, in seconds. Target queues are
/// proportional to the inverse square roots of rates.
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
