//! The number of connections that the far side grants.

use core::time::Duration;
use hikyaku_units::Instant;

/// After this time without a refusal, twice as many are tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// How often that is done in a transfer.
const AGAIN_MAX: u32 = 3;

/// How many connections may be asked for.
#[derive(Clone, Debug)]
pub(crate) struct Cap {
    most: u32,
    granted: Option<Granted>,
    /// How often more were tried after a refusal.
    tried: u32,
}

#[derive(Clone, Copy, Debug)]
struct Granted {
    n: u32,
    since: Instant,
}

impl Cap {
    pub(crate) fn new(most: u32) -> Self {
        Self { most: most.max(1), granted: None, tried: 0 }
    }

    /// The cap at this time.
    pub(crate) fn look(&mut self, now: Instant) -> u32 {
        if let Some(granted) = &mut self.granted
            && self.tried < AGAIN_MAX
            && now - granted.since >= AGAIN_AFTER
        {
            self.tried += 1;
            *granted = Granted { n: granted.n.saturating_mul(2), since: now };
        }
        self.now()
    }

    pub(crate) fn now(&self) -> u32 {
        self.granted.map_or(self.most, |granted| granted.n.min(self.most))
    }

    /// The far side has refused a connection and goes on with this many.
    pub(crate) fn refuse(&mut self, n: u32, now: Instant) {
        self.granted = Some(Granted { n: n.max(1), since: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_are_tried_three_times_each_after_a_minute() {
        let at = |seconds: u64| Instant::from_millis(seconds * 1000);
        let mut cap = Cap::new(64);
        assert_eq!(cap.look(at(1000)), 64);
        cap.refuse(2, at(1000));
        assert_eq!((cap.look(at(1059)), cap.look(at(1060)), cap.look(at(1061))), (2, 4, 4));
        cap.refuse(2, at(1062));
        assert_eq!((cap.look(at(1121)), cap.look(at(1122)), cap.look(at(1182))), (2, 4, 8));
        cap.refuse(2, at(1183));
        assert_eq!(cap.look(at(9000)), 2);
    }
}
