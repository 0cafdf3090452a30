//! What slows down a rate that nothing else does: a circuit breaker (RFC 8084) for policy `fixed`.

use core::time::Duration;
use hikyaku_units::Instant;
use libm::fmin;

/// More than this of what is sent is lost,
const LOSS: f64 = 0.3;
/// or a packet waits for so many seconds in the queue,
const QUEUE: f64 = 0.2;
/// in every round for so long, and the rate is halved: a single storm passes by itself.
const PATIENCE: Duration = Duration::from_secs(3);
/// Without that for so long, more is tried.
const CALM: Duration = Duration::from_secs(10);
/// So much more.
const AGAIN: f64 = 1.25;

/// What is left of a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brake {
    part: f64,
    state: State,
}

/// How the path bears the rate, and since when.
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
    /// A round is over, of which so much was lost, with a queue of so many seconds.
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
