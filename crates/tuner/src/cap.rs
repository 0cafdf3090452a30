//! The number of connections that the far side grants.

use core::time::Duration;
use hikyaku_units::Instant;

/// After this time without a refusal, twice as many are tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// How often that is done in a transfer.
const AGAIN_MAX: u32 = 3;
/// A server that refuses a number which it has granted before may not have noticed the end of a closed connection: that number is
/// tried again after this time, which is doubled each time.
const LAPSE: Duration = Duration::from_secs(1);
/// How often that is done in a transfer.
const LAPSES_MAX: u32 = 5;
/// Connections that are opened beyond those that have carried bytes: a server that grants few refuses no more than these.
const WAVE: u32 = 4;
/// After as many have carried bytes, this many times as many are opened beyond them.
const WAVE_FACTOR: u32 = 2;

/// How many connections may be asked for.
#[derive(Clone, Debug)]
pub(crate) struct Cap {
    most: u32,
    granted: Option<Granted>,
    opening: Opening,
    /// Connections that have carried bytes at once, at most, since the last refusal.
    carried: u32,
    /// How often more were tried after a refusal, and how often the same number.
    tried: u32,
    lapses: u32,
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
    until: Instant,
    then: Then,
}

/// The next attempt after a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// Twice as many.
    More,
    /// The number that was granted before.
    TheSame(u32),
}

impl Cap {
    pub(crate) fn new(most: u32) -> Self {
        let opening = Opening::AtOnce;
        Self { most: most.max(1), granted: None, opening, carried: 0, tried: 0, lapses: 0 }
    }

    /// Connections are opened as others are answered.
    pub(crate) fn in_waves(self) -> Self {
        Self { opening: Opening::InWaves, ..self }
    }

    /// The cap at this time, while this many connections carry bytes.
    pub(crate) fn look(&mut self, now: Instant, carrying: u32) -> u32 {
        self.carried = self.carried.max(carrying);
        if let Some(granted) = self.granted.filter(|granted| now >= granted.until) {
            match granted.then {
                Then::TheSame(n) => self.wait(n, now, Then::More),
                Then::More if self.tried < AGAIN_MAX => {
                    self.tried += 1;
                    self.wait(granted.n.saturating_mul(2), now, Then::More);
                }
                Then::More => {}
            }
        }
        self.now()
    }

    /// The number of connections that may be open now.
    pub(crate) fn now(&self) -> u32 {
        let granted = self.granted.map_or(self.most, |granted| granted.n.min(self.most));
        match self.opening {
            Opening::AtOnce => granted,
            Opening::InWaves => {
                let carried = self.carried.max(1);
                let more = if carried < WAVE { WAVE } else { WAVE + carried * WAVE_FACTOR };
                granted.min(carried + more)
            }
        }
    }

    /// The number that a rule may choose.
    pub(crate) fn lasting(&self) -> u32 {
        let granted = self.granted.map(|granted| match granted.then {
            Then::TheSame(n) => n,
            Then::More => granted.n,
        });
        granted.map_or(self.most, |n| n.min(self.most))
    }

    /// Whether the same number is about to be tried again.
    pub(crate) fn is_lapsed(&self) -> bool {
        self.granted.is_some_and(|granted| granted.then != Then::More)
    }

    /// The far side has refused a connection and goes on with this many.
    pub(crate) fn refuse(&mut self, n: u32, now: Instant) {
        let n = n.max(1);
        if n < self.carried && self.lapses < LAPSES_MAX {
            let until = now + LAPSE * (1 << self.lapses);
            self.lapses += 1;
            self.granted = Some(Granted { n, until, then: Then::TheSame(self.carried) });
        } else {
            self.grant(n, now);
        }
    }

    /// The far side has let this many carry bytes for some time, although more are open.
    pub(crate) fn grant(&mut self, n: u32, now: Instant) {
        self.carried = self.carried.min(n);
        self.wait(n.max(1), now, Then::More);
    }

    fn wait(&mut self, n: u32, now: Instant, then: Then) {
        self.granted = Some(Granted { n, until: now + AGAIN_AFTER, then });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    #[test]
    fn more_are_tried_three_times_each_after_a_minute() {
        let mut cap = Cap::new(64);
        assert_eq!(cap.look(at(1000), 1), 64);
        cap.refuse(2, at(1000));
        let looks = |cap: &mut Cap, all: [u64; 3]| all.map(|second| cap.look(at(second), 2));
        assert_eq!(looks(&mut cap, [1059, 1060, 1061]), [2, 4, 4]);
        cap.refuse(2, at(1062));
        assert_eq!(looks(&mut cap, [1121, 1122, 1182]), [2, 4, 8]);
        cap.refuse(2, at(1183));
        assert_eq!(cap.look(at(9000), 2), 2);
    }

    #[test]
    fn a_number_that_was_granted_before_is_tried_again_soon() {
        let mut cap = Cap::new(8);
        cap.look(at(1), 2);
        cap.refuse(2, at(1));
        cap.refuse(1, at(10));
        assert_eq!((cap.now(), cap.lasting(), cap.is_lapsed()), (1, 2, true));
        assert_eq!((cap.look(at(11), 1), cap.is_lapsed()), (2, false));
        for second in 2..6 {
            cap.refuse(1, at(100 * second));
            assert_eq!(cap.look(at(100 * second + 20), 1), 2);
        }
        cap.refuse(1, at(1000));
        assert_eq!((cap.look(at(1030), 1), cap.lasting()), (1, 1));
    }

    #[test]
    fn connections_are_opened_as_others_are_answered() {
        let mut cap = Cap::new(16).in_waves();
        assert_eq!([0, 1, 3, 4, 3].map(|carrying| cap.look(at(1), carrying)), [5, 5, 7, 16, 16]);
        let mut cap = Cap::new(16).in_waves();
        for n in [5, 4, 3, 2] {
            cap.look(at(1), 2);
            cap.refuse(n, at(1));
        }
        assert_eq!((cap.look(at(2), 2), cap.lasting()), (2, 2));
    }
}
