//! Times that programs have seen of what was changed here, before the server told its own.

use hikyaku_store::{Found, Time};

/// Times that this mount has given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Touched {
    /// That of a directory whose entries were changed, if the server has told no later one.
    given: Option<Time>,
    /// What the server has told after changes that were decided here, and the time that programs have seen of them. An
    /// editor takes a file for one that somebody else has written to when its time changes.
    told: Option<(Time, Time)>,
}

/// A time of the server that is less than this before one that was given here is taken for that of the same change. The
/// clock that dates files goes in steps of up to 10 ms (`CLOCK_REALTIME_COARSE`, clock_getres(2)), in longer ones on a
/// machine that is busy, and the clocks of two machines are some milliseconds apart. A time that somebody has set is
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

    /// The server has made all changes that were decided here, and tells a time. Programs have seen another one.
    pub(crate) const fn confirmed(&mut self, told: Time, shown: Time) {
        self.told = Some((told, shown));
    }

    /// What programs see where the server tells this time.
    pub(crate) fn shown(&self, modified: Time) -> Time {
        self.told.filter(|&(told, _)| told == modified).map_or(modified, |(_, shown)| shown)
    }

    /// What the server tells, but for the time that was given here, if that is just after the server's.
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

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_store::{Identity, Kind, Owner};

    fn at(nanos: u32) -> Time {
        Time { secs: 1000, nanos }
    }

    fn dir(modified: Time) -> Found {
        Found {
            kind: Kind::Dir,
            size: 0,
            allocated: 0,
            mode: 0o755,
            owner: Owner::default(),
            modified,
            identity: Identity { device: 1, number: 1 },
            version: None,
        }
    }

    #[test]
    fn a_clock_that_is_behind_does_not_put_a_directory_back() {
        let mut touched = Touched::default();
        let given = touched.give(at(0), at(50_000_000));
        assert_eq!(given, at(50_000_000));
        for told in [at(46_000_000), at(49_999_999), at(46_000_000)] {
            assert_eq!(touched.corrected(dir(told)).modified, given);
        }
        // A change at the server, whose clock has gone on by a step that is still behind, gives a later time.
        let next = touched.give_again(given, at(50_000_000));
        assert!(next > given);
        assert_eq!(touched.corrected(dir(at(49_999_999))).modified, next);
        // Its clock has come beyond it.
        assert_eq!(touched.corrected(dir(at(60_000_000))).modified, at(60_000_000));
        assert_eq!(touched.corrected(dir(at(59_000_000))).modified, at(59_000_000));
        assert_eq!(touched.give_again(at(59_000_000), at(70_000_000)), at(59_000_000));
    }

    #[test]
    fn a_file_that_was_written_here_keeps_the_time_that_programs_have_seen() {
        let mut touched = Touched::default();
        touched.confirmed(at(300_000_000), at(5));
        assert_eq!(touched.shown(at(300_000_000)), at(5));
        // Somebody else has written to it.
        assert_eq!(touched.shown(at(400_000_000)), at(400_000_000));
        touched.clear();
        assert_eq!(touched.shown(at(300_000_000)), at(300_000_000));
    }

    #[test]
    fn a_time_that_somebody_has_set_is_seen() {
        let mut touched = Touched::default();
        let past = Time { secs: 5, nanos: 0 };
        touched.give(at(0), at(50_000_000));
        assert_eq!(touched.corrected(dir(past)).modified, past);
        // By a program here.
        touched.give(past, at(50_000_000));
        touched.clear();
        assert_eq!(touched.corrected(dir(at(49_000_000))).modified, at(49_000_000));
        // One of the future ends with the next change.
        let future = Time { secs: 5000, nanos: 0 };
        assert_eq!(touched.give(future, at(7)), at(7));
        assert_eq!(touched.give(at(999_999_999), at(999_999_990)), Time { secs: 1001, nanos: 0 });
    }
}
