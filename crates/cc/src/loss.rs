//! Telling the loss that a path has anyway from the loss that we cause.
//!
//! Loss of its own the path has at every rate; loss by overflow comes when we send more than it
//! carries. The median of the last rounds is taken as the path's own; what stands out of it by more
//! than chance is ours until it has lasted, then it is the path's too.

use crate::filters::Recent;
use crate::sample::Volume;
use libm::sqrt;

/// Rounds of memory. A new level of ambient loss is believed after half of them.
const ROUNDS: usize = 8;
/// Loss above this is no longer taken for the path's own: with nearly half of everything gone, to
/// send more is wrong whatever the cause.
const MAX_AMBIENT: f64 = 0.45;
/// Excess below this is never acted on.
const NEGLIGIBLE: f64 = 0.005;

/// The two kinds of loss on one path.
#[derive(Clone, Debug)]
pub struct LossModel {
    rounds: Recent,
    acked: u64,
    lost: u64,
}

impl LossModel {
    pub(crate) const fn new() -> Self {
        Self { rounds: Recent::new(ROUNDS), acked: 0, lost: 0 }
    }

    pub(crate) const fn on_ack(&mut self, acked: Volume, lost: Volume) {
        self.acked += acked.packets;
        self.lost += lost.packets;
    }

    /// Closes a round of at least `enough` packets; gives the loss in excess of the ambient one.
    pub(crate) fn end_round(&mut self, enough: u64) -> f64 {
        let n = self.acked + self.lost;
        if n < enough.max(1) {
            return 0.0;
        }
        let p = self.lost as f64 / n as f64;
        self.acked = 0;
        self.lost = 0;
        let ambient = self.ambient();
        let known = self.rounds.len() >= 3;
        self.rounds.push(p.min(MAX_AMBIENT));
        if !known {
            return 0.0;
        }
        let chance = 4.0 * sqrt(ambient.max(1.0 / n as f64) / n as f64);
        let excess = p - ambient;
        if excess > chance.max(NEGLIGIBLE) { excess } else { 0.0 }
    }

    /// The path's own loss, 0 to 0.45.
    pub fn ambient(&self) -> f64 {
        self.rounds.median().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests;
