//! Times of local changes that programs have seen, before the server sent its own.

use hikyaku_store::{Found, Time};

#[cfg(test)]
mod tests;

/// Times that this mount has given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Touched {
    /// The time of a directory whose entries were changed here, if the server has sent no later one.
    given: Option<Time>,
    /// The server's time after changes under a write lease, and the time that programs have seen for them. An editor takes a
    /// change of the time for a write by another program.
    told: Option<(Time, Time)>,
}

/// A time of the server that is less than this before one that was given here is taken for that of the same change. The
/// clock that dates files goes in steps of up to 10 ms (`CLOCK_REALTIME_COARSE`, clock_getres(2)), in longer ones on a
/// machine that is busy, and the clocks of two machines are some milliseconds apart. A time that a program has set is
/// rarely that near.
const CLOCKS_APART_NANOS: i128 = 100_000_000;

impl Touched {
    /// The entries of a directory that shows this time were changed here. Returns its new time, which is later than the one
    /// that programs have seen, unless that is one of the future.
    pub(crate) fn give(&mut self, shown: Time, now: Time) -> Time {
        let given = if is_just_before(now, shown) { after(shown) } else { now };
        self.given = Some(given);
        given
    }

    /// An entry was changed at the server, whose clock may be behind the time that was given here.
    pub(crate) fn give_again(&mut self, shown: Time, now: Time) -> Time {
        if self.given.is_some() { self.give(shown, now) } else { shown }
    }

    /// The server has made all changes of this mount, and sends its time. Programs have seen another one.
    pub(crate) const fn confirmed(&mut self, told: Time, shown: Time) {
        self.told = Some((told, shown));
    }

    /// The time that programs see for this time of the server.
    pub(crate) fn shown(&self, modified: Time) -> Time {
        self.told.filter(|&(told, _)| told == modified).map_or(modified, |(_, shown)| shown)
    }

    /// The server's metadata, with the local time if that is just after the server's.
    pub(crate) fn corrected(&mut self, found: Found) -> Found {
        self.given = self.given.filter(|&given| is_just_before(found.modified, given));
        Found { modified: self.given.unwrap_or(found.modified), ..found }
    }

    /// A program has set the time.
    pub(crate) const fn clear(&mut self) {
        (self.given, self.told) = (None, None);
    }
}

/// The next time.
const fn after(time: Time) -> Time {
    match time.nanos {
        0..999_999_999 => Time { nanos: time.nanos + 1, ..time },
        _ => Time { secs: time.secs.saturating_add(1), nanos: 0 },
    }
}

/// Whether a time is that of the other one, or not long before it.
fn is_just_before(time: Time, other: Time) -> bool {
    let nanos = |time: Time| i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos);
    (0..CLOCKS_APART_NANOS).contains(&(nanos(other) - nanos(time)))
}
