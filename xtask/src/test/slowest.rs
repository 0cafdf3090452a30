//! The tests that take longest: where the time of a run goes.

use std::fmt;
use std::time::Duration;

/// Tests that are named.
const NAMED: usize = 10;

/// The slowest tests so far, the slowest first.
#[derive(Default)]
pub(super) struct Slowest(Vec<Timed>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Timed {
    took: Duration,
    binary: String,
    name: String,
}

/// What a watched binary's result of a test ends with.
pub(super) fn suffix(took: Duration, binary: &str) -> String {
    format!(" <{:.3} s, {binary}>", took.as_secs_f64())
}

impl Slowest {
    /// Keeps the time of a result that ends with a [`suffix`].
    pub(super) fn line(&mut self, line: &str) {
        if let Some(timed) = Timed::parse(line) {
            self.keep(timed);
        }
    }

    /// Adds the tests of another command.
    pub(super) fn add(&mut self, other: Self) {
        other.0.into_iter().for_each(|timed| self.keep(timed));
    }

    fn keep(&mut self, timed: Timed) {
        let at = self.0.partition_point(|other| other.took >= timed.took);
        self.0.insert(at, timed);
        self.0.truncate(NAMED);
    }
}

impl Timed {
    fn parse(line: &str) -> Option<Self> {
        let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let (took, binary) = result.strip_suffix('>')?.rsplit_once(" <")?.1.split_once(" s, ")?;
        let took = Duration::try_from_secs_f64(took.parse().ok()?).ok()?;
        Some(Self { took, binary: binary.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for Slowest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Timed { took, binary, name }| {
            writeln!(f, "{:7.1} s  {binary} {name}", took.as_secs_f64())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_tests_are_named_first() {
        let mut slowest = Slowest::default();
        for seconds in [2, 50, 1] {
            let end = suffix(Duration::from_secs(seconds), "sim");
            slowest.line(&format!("test of::{seconds} ... ok{end}"));
        }
        slowest.line("test of::none ... ok");
        slowest.line("words <3.000 s, sim>");
        let said = "   50.0 s  sim of::50\n    2.0 s  sim of::2\n    1.0 s  sim of::1\n";
        assert_eq!(slowest.to_string(), said);
    }

    #[test]
    fn no_more_than_a_screen_is_kept() {
        let mut slowest = Slowest::default();
        for seconds in 0..100 {
            slowest.line(&format!("test a ... ok{}", suffix(Duration::from_secs(seconds), "b")));
        }
        assert_eq!(slowest.to_string().lines().count(), NAMED);
        assert!(slowest.to_string().starts_with("   99.0 s"));
    }
}
