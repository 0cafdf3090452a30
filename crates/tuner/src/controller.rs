//! The number of connections of a transfer that may change it at any time.

use crate::cap::Cap;
use crate::chunked::Chunked;
use crate::climb::{Climb, ClimbOptions};
use crate::look::{Held, Look, Measured};
use crate::paper::Paper;
use crate::sample::Phase;
use crate::tuner::Fixed;
use hikyaku_units::Instant;

/// Decides the number of connections of a transfer. The caller opens missing connections and closes surplus connections,
/// the latest first, each time that [`Controller::n`] has changed; it looks at them about ten times a second
/// ([`Controller::handle_look`]), and reports refusals as they come ([`Controller::handle_refusal`]).
#[derive(Clone, Debug)]
pub struct Controller {
    rule: Rule,
    cap: Cap,
}

#[derive(Clone, Debug)]
enum Rule {
    Climb(Climb),
    Paper(Chunked),
    Fixed(Fixed),
}

impl Controller {
    /// The rule that grows while new connections bring as much as the ones before.
    pub fn climb(options: &ClimbOptions) -> Self {
        Self { rule: Rule::Climb(Climb::new(options)), cap: Cap::new(options.cap) }
    }

    /// The rule that grows, for connections that can be opened and given up only in groups of `unit`.
    pub fn climb_in_groups(unit: u32, options: &ClimbOptions) -> Self {
        let climb = Climb::new(options).in_groups(unit);
        Self { rule: Rule::Climb(climb), cap: Cap::new(options.cap).in_groups(unit) }
    }

    /// The published rule, at most `cap` connections.
    pub fn paper(paper: Paper, cap: u32) -> Self {
        Self { rule: Rule::Paper(Chunked::new(paper)), cap: Cap::new(cap) }
    }

    /// The user's number, or what is granted of it.
    pub fn fixed(n: u32) -> Self {
        Self { rule: Rule::Fixed(Fixed::new(n)), cap: Cap::new(n) }
    }

    /// For a server that may turn connections away: further ones are opened as others carry bytes, so that it refuses few. It costs
    /// less than a round trip at the beginning.
    #[must_use]
    pub fn in_waves(self) -> Self {
        Self { cap: self.cap.in_waves(), ..self }
    }

    /// How many connections are to be open now; at least 1.
    pub fn n(&self) -> u32 {
        let n = match &self.rule {
            Rule::Climb(climb) => climb.n(),
            Rule::Paper(chunked) => chunked.n(),
            Rule::Fixed(fixed) => fixed.n(),
        };
        n.min(self.cap.now()).max(1)
    }

    /// The phase of the rule.
    pub fn phase(&self) -> Phase {
        match &self.rule {
            Rule::Climb(climb) => climb.phase(),
            Rule::Paper(chunked) => chunked.phase(),
            Rule::Fixed(_) => Phase::Fixed,
        }
    }

    /// A transfer on the same path has held this number of connections without a queue. It has no effect after the first look.
    pub fn begin_after(&mut self, held: u32) {
        if let Rule::Climb(climb) = &mut self.rule {
            climb.begin_after(held);
        }
    }

    /// The number that was held last for ten seconds, if one was.
    pub const fn held(&self) -> Option<Held> {
        match &self.rule {
            Rule::Climb(climb) => climb.held(),
            Rule::Paper(_) | Rule::Fixed(_) => None,
        }
    }

    /// A look at the connections. Returns the measurement that was complete with it.
    pub fn handle_look(&mut self, look: &Look<'_>) -> Option<Measured> {
        self.cap.look(look.now, u32::try_from(look.connections.len()).unwrap_or(u32::MAX));
        let cap = self.cap.lasting();
        if self.cap.is_lapsed() {
            return None;
        }
        match &mut self.rule {
            Rule::Climb(climb) => {
                let (measured, granted) = climb.handle_look(look, cap);
                if let Some(granted) = granted {
                    self.cap.grant(granted, look.now);
                }
                measured
            }
            Rule::Paper(chunked) => chunked.handle_look(look, cap),
            Rule::Fixed(_) => None,
        }
    }

    /// The far side has refused a connection because it has enough of them, while `flowing` carry bytes. Others that are being
    /// opened may be the ones that it has granted.
    pub fn handle_refusal(&mut self, flowing: u32, now: Instant) {
        let granted = self.n().saturating_sub(1).max(flowing).max(1);
        if granted < self.n() {
            self.cap.refuse(granted, now);
        }
        if let Rule::Climb(climb) = &mut self.rule {
            climb.keep_to(self.cap.lasting());
        }
    }
}

#[cfg(test)]
mod tests;
