//! What the test runner said: the closing line of every test binary, what failed in it, and what took long.

use super::slowest::Slowest;

/// Lines kept of the failures of one binary: who reads the end of a long log is to find the reason there.
const KEPT: usize = 60;
/// Lines kept of each panic of a failing test. All that the test printed is in the log.
const KEPT_OF_A_PANIC: usize = 8;

/// Kept while the runner talks.
#[derive(Default)]
pub(super) struct Heard {
    /// Its closing lines, one a test binary.
    pub(super) results: Vec<String>,
    /// What it said of each binary in which tests failed.
    pub(super) failures: Vec<String>,
    /// The tests that took longest.
    pub(super) slowest: Slowest,
    /// The failures that it is telling of.
    telling: Option<Failures>,
}

/// The failing tests of a binary, and the panics of each.
#[derive(Default)]
struct Failures {
    lines: Vec<String>,
    /// Lines that the panic is still to have.
    left: usize,
}

impl Failures {
    fn line(&mut self, line: &str) {
        if line.starts_with("---- ") || line == "failures:" {
            self.left = 1;
        } else if line.starts_with("thread '") && line.contains(" panicked at ") {
            self.left = KEPT_OF_A_PANIC;
        }
        if self.left > 0 && self.lines.len() < KEPT {
            self.left -= 1;
            self.lines.push(line.to_owned());
        }
    }
}

impl Heard {
    /// It said this line.
    pub(super) fn line(&mut self, line: &str) {
        self.slowest.line(line);
        if line.starts_with("test result:") {
            self.results.push(line.to_owned());
            self.failures.extend(self.telling.take().map(|told| told.lines.join("\n")));
        } else if let Some(told) = &mut self.telling {
            told.line(line);
        } else if line == "failures:" {
            self.telling = Some(Failures::default());
        }
    }

    /// Adds what another command said.
    pub(super) fn add(&mut self, other: Self) {
        self.results.extend(other.results);
        self.failures.extend(other.failures);
        self.slowest.add(other.slowest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_kept() {
        let mut heard = Heard::default();
        let said = "test a ... ok\ntest b ... FAILED\nfailures:\n\n---- b stdout ----\nsaid before\n\n\
            thread 'b' (7) panicked at b.rs:1:1:\nwhy\n\nfailures:\n    b\n\n\
            test result: FAILED. 1 passed; 1 failed;\ntest c ... ok\ntest result: ok. 1 passed;";
        said.lines().for_each(|line| heard.line(line));
        assert_eq!(heard.results.len(), 2);
        let kept = "---- b stdout ----\nthread 'b' (7) panicked at b.rs:1:1:\nwhy\n\nfailures:";
        assert_eq!(heard.failures, [kept]);
    }

    #[test]
    fn a_talker_is_cut_short() {
        let mut heard = Heard::default();
        heard.line("failures:");
        for _ in 0..100 {
            heard.line("thread 'b' panicked at b.rs:1:1:");
            (0..1000).for_each(|_| heard.line("more"));
        }
        heard.line("test result: FAILED.");
        assert_eq!(heard.failures[0].lines().count(), KEPT);
        assert_eq!(heard.failures[0].matches("panicked").count(), KEPT.div_ceil(KEPT_OF_A_PANIC));
    }
}
