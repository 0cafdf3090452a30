//! The decisions on the number of TCP connections that carry a connection, for a display.

use hikyaku_tuner::{Measured, Phase};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Decisions that wait for the display; older ones are dropped.
const KEPT_MAX: usize = 64;

/// A measurement of the connections, and the phase of the rule in which they were measured.
pub type Decision = (Measured, Phase);

/// The latest decisions. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Decisions(Arc<Mutex<VecDeque<Decision>>>);

impl Decisions {
    /// Those since the last call, the oldest first.
    pub fn take(&self) -> Vec<Decision> {
        self.lock().drain(..).collect()
    }

    pub(super) fn add(&self, decision: Decision) {
        let mut kept = self.lock();
        if kept.len() >= KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(decision);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Decision>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_tuner::Standing;
    use hikyaku_units::DataSize;
    use std::time::Duration;

    #[test]
    fn the_latest_decisions_wait_until_they_are_taken() {
        let decisions = Decisions::default();
        let measured = |asked| Measured {
            connections: 1.0,
            bytes: DataSize::ZERO,
            elapsed: Duration::ZERO,
            queue: None,
            standing: Standing::Unknown,
            added: None,
            asked,
        };
        (0..100).for_each(|asked| decisions.clone().add((measured(asked), Phase::Hold)));
        let taken = decisions.take();
        assert_eq!((taken.len(), taken[0].0.asked, taken[63].0.asked), (64, 36, 99));
        assert!(decisions.take().is_empty());
    }
}
