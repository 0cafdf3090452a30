//! What a test with competitors tells: shares, how even they are, and harm.
//!
//! Harm is what a flow loses by another's presence as a share of what it has without: (alone -
//! together) / alone, for a measure of which more is better (Ware, Mukerjee, Seshan, Sherry: "Beyond
//! Jain's Fairness Index: Setting the Bar For The Deployment of Congestion Control Algorithms", HotNets
//! 2019). The bar that they set is not an equal share: a new algorithm should harm others no more than
//! those harm each other. RFC 9743 asks of new algorithms what they do to flows of the common ones.
//! Below zero is harm to nobody: who competes had more than alone.

use serde::{Deserialize, Serialize};

/// What each flow got, from the receiving end.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub(crate) competitors: Vec<Goodputs>,
    pub(crate) measured: Vec<Goodputs>,
}

/// Bits a second of one flow: beside its own kind alone, and with all others.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Goodputs {
    pub(crate) alone: f64,
    pub(crate) together: f64,
}

/// What follows.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Verdict {
    /// Goodput together over an equal share: the competitors', then the measured.
    pub(crate) shares: Vec<f64>,
    /// Of all flows together; nothing if nothing arrived.
    pub(crate) jain: Option<f64>,
    /// To the competitors as a whole.
    pub(crate) harm: Option<f64>,
    /// What it would be if all had equal shares of what all had together.
    pub(crate) harm_of_equal_shares: Option<f64>,
    /// To the measured flows.
    pub(crate) harm_to_measured: Option<f64>,
}

impl Standing {
    pub(crate) fn verdict(&self) -> Verdict {
        let all: Vec<f64> =
            self.competitors.iter().chain(&self.measured).map(|flow| flow.together).collect();
        let sum: f64 = all.iter().sum();
        let equal = sum / all.len().max(1) as f64;
        let (theirs, ours) = (total(&self.competitors), total(&self.measured));
        let equal_theirs = equal * self.competitors.len() as f64;
        Verdict {
            shares: all.iter().map(|rate| if equal > 0.0 { rate / equal } else { 0.0 }).collect(),
            jain: jain(&all),
            harm: harm(theirs),
            harm_of_equal_shares: harm(Goodputs { together: equal_theirs, ..theirs }),
            harm_to_measured: harm(ours),
        }
    }
}

pub(crate) fn total(of: &[Goodputs]) -> Goodputs {
    Goodputs {
        alone: of.iter().map(|flow| flow.alone).sum(),
        together: of.iter().map(|flow| flow.together).sum(),
    }
}

/// Nothing, where there was nothing to lose.
fn harm(of: Goodputs) -> Option<f64> {
    (of.alone > 0.0).then(|| (of.alone - of.together) / of.alone)
}

/// Jain's index: 1 where all have the same, 1/n where one has all (Jain et al., 1984).
fn jain(rates: &[f64]) -> Option<f64> {
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let sum: f64 = rates.iter().sum();
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}
