//! The only limit on a fixed rate: a circuit breaker (RFC 8084) for policy `fixed`.

use core::time::Duration;
use hikyaku_units::Instant;
use libm::fmin;

/// Loss rate above which a round is bad.
const LOSS: f64 = 0.3;
/// Seconds of queue above which a round is bad.
const QUEUE: f64 = 0.2;
/// Time of bad rounds after which the rate is halved. A single burst of loss is shorter.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time without bad rounds after which the rate is raised.
const CALM: Duration = Duration::from_secs(10);
/// Factor of a raise.
const AGAIN: f64 = 1.25;

/// The part of a fixed rate that may be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brake {
    part: f64,
    state: State,
}

/// Whether the path carries the rate, and since when.
#[derive(Clone, Copy, Debug)]
enum State {
    Unknown,
    Bears(Instant),
    Suffers(Instant),
}

impl Brake {
    pub(crate) const fn new() -> Self {
        Self { part: 1.0, state: State::Unknown }
    }

    /// The part of the rate that may be sent.
    pub(crate) const fn part(&self) -> f64 {
        self.part
    }

    // spec: rate-7
    /// Adjusts the rate after a round with this loss rate and this queue in seconds.
    pub(crate) fn on_round(&mut self, now: Instant, loss: f64, queue: f64) {
        let suffers = loss > LOSS || queue > QUEUE;
        self.state = match (self.state, suffers) {
            (State::Suffers(since), true) if now - since >= PATIENCE => {
                self.part /= 2.0;
                State::Suffers(now)
            }
            (State::Bears(since), false) if now - since >= CALM => {
                self.part = fmin(AGAIN * self.part, 1.0);
                State::Bears(now)
            }
            (State::Suffers(_), true) | (State::Bears(_), false) => self.state,
            (_, true) => State::Suffers(now),
            (_, false) => State::Bears(now),
        };
    }
}

#[cfg(test)]
mod tests;
