//! Whether others answer to loss at all, and what one more of those that do not would send.
//!
//! BBR, version 1, overflows a short queue every eight round trips whatever it loses: who answers to every
//! overflow there has nothing in the end. So whoever has next to nothing of what the path has carried, and
//! goes on losing packets, sends as one more BBR flow would
//! (draft-cardwell-iccrg-bbr-congestion-control-00, 4.1 and 4.3.4): what was delivered lately, and a
//! quarter more for one round in eight; but never more than six tenths of what it has carried. So
//! much is taken from those who do answer, if there are so many of them that it looks the same.

use alloc::collections::VecDeque;
use libm::{fmax, fmin};

/// Rounds that are looked at. Flows that answer to loss overflow a queue once in many of them.
const ROUNDS: usize = 24;
/// In so many of them, at least, there was loss.
const LOSSY: usize = 3;
/// Loss of so much and more: with it CUBIC has a window of some twenty packets (RFC 9438, 5.1).
const DEAF: f64 = 0.004;
/// With less than this they answer, or are gone.
const HEARING: f64 = 0.002;
/// Of what the path has carried, this is next to nothing.
const LITTLE: f64 = 0.1;
/// And this is enough: beside one BBR flow at 1 Gbit/s start-up finds a quarter of the path, of which this is
/// more than a quarter of an equal share.
const FAIR_PART: f64 = 0.6;
/// Fewer packets say nothing.
const ENOUGH_PACKETS: u64 = 100;
/// The largest of so many rounds is what can be delivered.
const LATELY: usize = 10;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Products of rate and round trip that may be under way.
const WINDOW: f64 = 2.0;

/// What the last rounds delivered and lost.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    /// Packets, of which lost, and bytes a second that were delivered.
    rounds: VecDeque<(u64, u64, f64)>,
    /// The phase of the cycle, if they are deaf.
    phase: Option<usize>,
    /// The most that the path has carried for us.
    capacity: f64,
}

impl Neighbours {
    pub(super) const fn new() -> Self {
        Self { rounds: VecDeque::new(), phase: None, capacity: 0.0 }
    }

    // spec: rate-6
    /// A round in which `lost` of `packets` were lost, and `rate` of the path's `capacity` arrived.
    pub(super) fn on_round(&mut self, (packets, lost): (u64, u64), rate: f64, capacity: f64) {
        self.capacity = fmax(self.capacity, capacity);
        self.rounds.push_back((packets, lost, rate));
        if self.rounds.len() > ROUNDS {
            self.rounds.pop_front();
        }
        let all: u64 = self.rounds.iter().map(|round| round.0).sum();
        if all < ENOUGH_PACKETS || self.rounds.len() < ROUNDS {
            return;
        }
        let lossy = self.rounds.iter().filter(|round| round.1 > 0).count();
        let share = self.rounds.iter().map(|round| round.1).sum::<u64>() as f64 / all as f64;
        self.phase = match self.phase {
            None => {
                let has_little = self.lately() < LITTLE * self.capacity;
                (has_little && share > DEAF && lossy >= LOSSY).then_some(0)
            }
            Some(phase) => (share > HEARING).then_some((phase + 1) % CYCLE.len()),
        };
    }

    /// Bytes a second to send, and the bytes that may be under way, if they are deaf.
    pub(super) fn pace(&self, round_trip: f64) -> Option<(f64, f64)> {
        let phase = self.phase?;
        let rate = fmin(self.lately(), FAIR_PART * self.capacity);
        Some((CYCLE[phase] * rate, WINDOW * rate * round_trip))
    }

    /// What has been delivered in one of the last rounds, at the most.
    fn lately(&self) -> f64 {
        self.rounds.iter().rev().take(LATELY).map(|round| round.2).fold(0.0, fmax)
    }
}
