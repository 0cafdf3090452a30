//! Numbers of things, as people say them.

use core::fmt;

/// A number of things, as in `1 file` and `2 files`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    count: u64,
    noun: &'static str,
}

/// So many of what one is called `noun`, whose plural ends with an `s` more.
pub fn counted(count: impl TryInto<u64>, noun: &'static str) -> Counted {
    // No count of this program is greater.
    Counted { count: count.try_into().unwrap_or(u64::MAX), noun }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.count == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", self.count, self.noun)
    }
}
