//! The result of a test with competing flows: shares, fairness and harm.
//!
//! Harm is the fraction of its goodput that a flow loses through the presence of another flow:
//! (alone - together) / alone (Ware, Mukerjee, Seshan, Sherry: "Beyond Jain's Fairness Index:
//! Setting the Bar For The Deployment of Congestion Control Algorithms", HotNets 2019). The paper's
//! criterion is not an equal share: a new algorithm should harm flows of an established one no more
//! than those harm each other. RFC 9743 requires new algorithms to be evaluated against flows of
//! the common ones. Negative harm means that the flow had more goodput together than alone.

use serde::{Deserialize, Serialize};

/// Goodput of each flow in each part, as counted by the receiving end.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub(crate) competitors: Vec<Goodputs>,
    pub(crate) measured: Vec<Goodputs>,
}

/// Goodput of one flow in bits per second: with only its own side running, and with all flows
/// running.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Goodputs {
    pub(crate) alone: f64,
    pub(crate) together: f64,
}

/// The figures derived from the goodputs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Verdict {
    /// Goodput together divided by an equal share: the competing flows, then the measured ones.
    pub(crate) shares: Vec<f64>,
    /// Jain's index over all flows together; `None` if nothing arrived.
    pub(crate) jain: Option<f64>,
    /// Harm to the competing flows as a whole.
    pub(crate) harm: Option<f64>,
    /// Harm to the competing flows if all flows had equal shares of the total.
    pub(crate) harm_of_equal_shares: Option<f64>,
    /// Harm to the measured flows.
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

/// `None` if there was no goodput alone, so nothing to lose.
fn harm(of: Goodputs) -> Option<f64> {
    (of.alone > 0.0).then(|| (of.alone - of.together) / of.alone)
}

/// Jain's fairness index: 1 if all rates are equal, 1/n if one flow has everything (Jain et al.,
/// 1984).
fn jain(rates: &[f64]) -> Option<f64> {
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let sum: f64 = rates.iter().sum();
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}
