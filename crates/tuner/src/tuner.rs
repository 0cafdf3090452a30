//! The rules for a transfer in chunks, whose number changes between two of them only.

use crate::paper::Paper;
use crate::sample::{Decision, Next, Phase, Sample};

/// A rule that decides the number of connections of each chunk. See the crate's documentation for the order of calls.
#[derive(Clone, Debug)]
pub enum Tuner {
    /// The published algorithm.
    Paper(Paper),
    /// The user's number.
    Fixed(Fixed),
}

/// A number that does not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixed {
    n: u32,
}

impl Fixed {
    /// Always `n`; 0 is taken for 1.
    pub fn new(n: u32) -> Self {
        Self { n: n.max(1) }
    }

    pub(crate) const fn n(self) -> u32 {
        self.n
    }

    const fn decision(self) -> Decision {
        Decision { n: self.n, next: Next::Rest, phase: Phase::Fixed }
    }
}

impl Tuner {
    /// The first decision.
    pub const fn start(&self) -> Decision {
        match self {
            Self::Paper(paper) => paper.start(),
            Self::Fixed(fixed) => fixed.decision(),
        }
    }

    /// The chunk of the last decision is done and measured.
    pub fn handle_sample(&mut self, sample: &Sample) -> Decision {
        match self {
            Self::Paper(paper) => paper.handle_sample(sample),
            Self::Fixed(fixed) => fixed.decision(),
        }
    }

    /// The result of the search; `None` before that, and for a fixed number.
    pub const fn found(&self) -> Option<u32> {
        match self {
            Self::Paper(paper) => paper.found(),
            Self::Fixed(_) => None,
        }
    }
}
