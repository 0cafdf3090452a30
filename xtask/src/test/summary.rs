//! The table of steps, and the sums of the test runner's closing lines.

use std::fmt;
use std::iter::Sum;
use std::time::Duration;

/// A step and how it went.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
}

impl Row {
    pub(super) fn skipped(name: &str, why: &str) -> Self {
        let outcome = Outcome::Skipped(why.to_owned());
        Self { name: name.to_owned(), outcome, took: Duration::ZERO }
    }
}

/// How a step went.
pub(super) enum Outcome {
    Ok,
    Failed(String),
    Skipped(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Failed(why) => write!(f, "FAILED   {why}"),
            Self::Skipped(why) => write!(f, "SKIPPED  {why}"),
        }
    }
}

/// One aligned line a step.
pub(super) fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let line = |row: &Row| {
        format!("{:width$}  {:7.1} s  {}\n", row.name, row.took.as_secs_f64(), row.outcome)
    };
    rows.iter().map(line).collect()
}

/// Numbers of tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) ignored: u64,
}

impl Counts {
    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let numbers = line.strip_prefix("test result:")?;
        let number = |word: &str| {
            let before = numbers.split_once(word)?.0.trim_end();
            before.rsplit(' ').next()?.parse().ok()
        };
        let passed = number(" passed")?;
        Some(Self { passed, failed: number(" failed")?, ignored: number(" ignored")? })
    }

    /// Whether a closing line is that of a binary without tests.
    pub(super) fn is_empty_line(line: &str) -> bool {
        Self::parse(line) == Some(Self::default())
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            passed: sum.passed + one.passed,
            failed: sum.failed + one.failed,
            ignored: sum.ignored + one.ignored,
        })
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} ignored", self.passed, self.failed, self.ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "test result: FAILED. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s";

    #[test]
    fn closing_lines_are_added_up() {
        let counts: Counts = [LINE, LINE].into_iter().filter_map(Counts::parse).sum();
        assert_eq!(counts.to_string(), "24 passed, 2 failed, 4 ignored");
        assert_eq!(Counts::parse("test a ... ok"), None);
    }

    #[test]
    fn binaries_without_tests_are_known() {
        assert!(Counts::is_empty_line(
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured"
        ));
        assert!(!Counts::is_empty_line(LINE));
    }

    #[test]
    fn the_table_is_aligned() {
        let rows = [
            Row { name: "a".into(), outcome: Outcome::Ok, took: Duration::from_millis(1500) },
            Row::skipped("long", "no root"),
        ];
        assert_eq!(table(&rows), "a         1.5 s  ok\nlong      0.0 s  SKIPPED  no root\n");
    }
}
