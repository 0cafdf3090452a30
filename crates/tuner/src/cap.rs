//! The number of connections that the far side grants.
//!
//! Connections are opened in waves until a few have carried bytes, so that a server that grants few refuses few. A refusal makes the
//! number that is left the cap. One more is tried after a minute, and then after ever longer times, until one is granted.

use alloc::collections::VecDeque;
use core::time::Duration;
use hikyaku_units::Instant;

/// After this time one connection more is tried; the time is doubled each time that is refused.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
const DOUBLINGS_MAX: u32 = 6;
/// A server that refuses a number which it has granted before may not have noticed the end of a closed connection: that number is
/// tried again after this time, which is doubled each time.
const LAPSE: Duration = Duration::from_secs(1);
/// How often that is done without success.
const LAPSES_MAX: u32 = 5;
/// After as many refusals in a minute nothing is tried for a minute.
const REFUSALS_MAX: usize = 6;
/// Connections that are opened beyond the first one, before as many have carried bytes.
const WAVE: u32 = 4;
/// After as many have carried bytes, this many times as many are opened beyond them.
const WAVE_FACTOR: u32 = 2;

/// How many connections may be open. It has no clock: the caller gives the time since any beginning.
#[derive(Clone, Debug)]
pub struct Cap {
    most: u32,
    granted: Option<Granted>,
    opening: Opening,
    /// Connections are added in groups of this number.
    unit: u32,
    /// Connections that have carried bytes at once, at most, since the last refusal.
    carried: u32,
    /// How often one more was refused, and how often in a row the same number.
    tried: u32,
    lapses: u32,
    /// The refusals of the last minute, if their number is limited.
    refusals: Option<VecDeque<Instant>>,
}

/// How connections are opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Opening {
    AtOnce,
    InWaves,
}

#[derive(Clone, Copy, Debug)]
struct Granted {
    n: u32,
    then: Then,
}

/// The next attempt after a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// One group more, at this time.
    More(Instant),
    /// One group more is being tried.
    Tried,
    /// The number that was granted before, at this time.
    TheSame(u32, Instant),
}

impl Cap {
    /// At most this many connections, of which all may be opened at once.
    pub fn new(most: u32) -> Self {
        let (opening, refusals) = (Opening::AtOnce, None);
        let (unit, carried, tried, lapses) = (1, 0, 0, 0);
        Self { most: most.max(1), granted: None, opening, unit, carried, tried, lapses, refusals }
    }

    /// Connections are opened as others are answered.
    #[must_use]
    pub fn in_waves(self) -> Self {
        Self { opening: Opening::InWaves, ..self }
    }

    /// After six refusals in a minute nothing is tried for a minute.
    #[must_use]
    pub fn sparing(self) -> Self {
        Self { refusals: Some(VecDeque::new()), ..self }
    }

    /// Connections are added in groups of `unit`.
    #[must_use]
    pub(crate) fn in_groups(self, unit: u32) -> Self {
        Self { unit: unit.max(1), ..self }
    }

    /// The cap at this time, while this many connections carry bytes.
    pub fn look(&mut self, now: Instant, carrying: u32) -> u32 {
        self.carried = self.carried.max(carrying);
        if carrying == self.carried {
            self.lapses = 0;
        }
        if let Some(Granted { n, then }) = self.granted {
            match then {
                Then::TheSame(n, at) if now >= at => self.wait(n, now),
                Then::More(at) if now >= at => {
                    let n = n.saturating_add(self.unit);
                    self.granted = Some(Granted { n, then: Then::Tried });
                }
                Then::Tried if carrying >= n => (self.granted, self.tried) = (None, 0),
                _ => {}
            }
        }
        self.now()
    }

    /// The number of connections that may be open now.
    pub fn now(&self) -> u32 {
        let granted = self.granted();
        match self.opening {
            Opening::AtOnce => granted,
            Opening::InWaves if self.carried < WAVE => granted.min(1 + WAVE),
            Opening::InWaves => {
                granted.min(WAVE.saturating_add(self.carried.saturating_mul(1 + WAVE_FACTOR)))
            }
        }
    }

    /// The number that the far side grants, or the largest one.
    pub fn granted(&self) -> u32 {
        self.granted.map_or(self.most, |granted| granted.n.min(self.most))
    }

    /// The number that was left by refusals, if there were any.
    pub fn refused_beyond(&self) -> Option<u32> {
        self.granted.map(|granted| match granted.then {
            Then::More(_) => granted.n,
            Then::Tried => granted.n.saturating_sub(self.unit).max(1),
            Then::TheSame(n, _) => n,
        })
    }

    /// The number that a rule may choose.
    pub(crate) fn lasting(&self) -> u32 {
        match self.granted {
            Some(Granted { then: Then::TheSame(n, _), .. }) => n.min(self.most),
            _ => self.granted(),
        }
    }

    /// Whether the same number is about to be tried again.
    pub(crate) fn is_lapsed(&self) -> bool {
        self.granted.is_some_and(|granted| matches!(granted.then, Then::TheSame(..)))
    }

    /// The far side has refused a connection and goes on with this many.
    pub fn refuse(&mut self, n: u32, now: Instant) {
        let n = n.max(1);
        let is_spent = self.is_spent_by_refusal(now);
        if n < self.carried && self.lapses < LAPSES_MAX && !is_spent {
            let at = now + LAPSE * (1 << self.lapses);
            self.lapses += 1;
            self.granted = Some(Granted { n, then: Then::TheSame(self.carried, at) });
        } else {
            self.grant(n, now);
        }
    }

    /// The far side has let this many carry bytes for some time, although more are open; or it did so earlier.
    pub fn grant(&mut self, n: u32, now: Instant) {
        let was_tried = self.granted.is_some_and(|granted| granted.then == Then::Tried);
        self.tried = (self.tried + u32::from(was_tried)).min(DOUBLINGS_MAX);
        self.carried = self.carried.min(n);
        self.wait(n.max(1), now);
    }

    /// Nothing is known of the far side: it refuses all connections for another reason.
    pub fn forget(&mut self) {
        (self.granted, self.lapses) = (None, 0);
    }

    /// Counts a refusal. Returns whether no further one may follow soon.
    fn is_spent_by_refusal(&mut self, now: Instant) -> bool {
        let Some(refusals) = &mut self.refusals else { return false };
        refusals.push_back(now);
        refusals.retain(|at| now - *at < AGAIN_AFTER);
        let is_spent = refusals.len() >= REFUSALS_MAX;
        refusals.drain(..refusals.len().saturating_sub(REFUSALS_MAX));
        is_spent
    }

    fn wait(&mut self, n: u32, now: Instant) {
        let at = now + AGAIN_AFTER * (1 << self.tried);
        self.granted = Some(Granted { n, then: Then::More(at) });
    }
}

#[cfg(test)]
mod tests;
