//! What came of many runs, in a table.

use crate::campaign::Outcome;
use crate::tracer::End;
use std::collections::BTreeMap;
use std::fmt;

/// Sums by scene.
#[derive(Default)]
pub struct Summary {
    scenes: BTreeMap<&'static str, Row>,
}

#[derive(Clone, Copy, Default)]
struct Row {
    runs: u32,
    struck: u32,
    done: u32,
    failed: u32,
    killed: u32,
    wrong: u32,
}

impl Summary {
    /// One more.
    pub fn add(&mut self, outcome: &Outcome) {
        let row = self.scenes.entry(outcome.scene).or_default();
        row.runs += 1;
        row.struck += u32::from(outcome.was_struck);
        match outcome.end {
            End::Exit(0) => row.done += 1,
            End::Exit(_) | End::Hung => row.failed += 1,
            End::Signal(_) => row.killed += 1,
        }
        row.wrong += u32::from(!outcome.wrong.is_empty());
    }

    /// Whether nothing was wrong.
    pub fn is_good(&self) -> bool {
        self.scenes.values().all(|row| row.wrong == 0)
    }

    /// How many runs met their fault.
    pub fn struck(&self) -> u32 {
        self.scenes.values().map(|row| row.struck).sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name: &str, row: &Row| {
            let Row { runs, struck, done, failed, killed, wrong } = row;
            writeln!(f, "{name:<10}{runs:>7}{struck:>8}{done:>8}{failed:>8}{killed:>8}{wrong:>8}")
        };
        writeln!(
            f,
            "{:<10}{:>7}{:>8}{:>8}{:>8}{:>8}{:>8}",
            "scene", "runs", "struck", "exit 0", "failed", "killed", "wrong"
        )?;
        let mut sum = Row::default();
        for (name, row) in &self.scenes {
            line(f, name, row)?;
            sum.runs += row.runs;
            sum.struck += row.struck;
            sum.done += row.done;
            sum.failed += row.failed;
            sum.killed += row.killed;
            sum.wrong += row.wrong;
        }
        line(f, "all", &sum)
    }
}
