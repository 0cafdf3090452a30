//! What the test runner said: the closing line of every test binary, what failed in it, and what took long.

use super::slowest::Slowest;

/// Lines kept of the failures of one binary: who reads the end of a long log is to find the reason there.
const KEPT: usize = 60;

/// Kept while the runner talks.
#[derive(Default)]
pub(super) struct Heard {
    /// Its closing lines, one a test binary.
    pub(super) results: Vec<String>,
    /// What it said of each binary in which tests failed.
    pub(super) failures: Vec<String>,
    /// The tests that took longest.
    pub(super) slowest: Slowest,
    /// Lines of the failures that it is telling of.
    telling: Option<Vec<String>>,
}

impl Heard {
    /// It said this line.
    pub(super) fn line(&mut self, line: &str) {
        self.slowest.line(line);
        if line.starts_with("test result:") {
            self.results.push(line.to_owned());
            self.failures.extend(self.telling.take().map(|lines| lines.join("\n")));
        } else if let Some(lines) = &mut self.telling {
            if lines.len() < KEPT {
                lines.push(line.to_owned());
            }
        } else if line == "failures:" {
            self.telling = Some(Vec::new());
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
        let said = "test a ... ok\ntest b ... FAILED\nfailures:\n\n---- b stdout ----\nwhy\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed;\ntest c ... ok\ntest result: ok. 1 passed;";
        said.lines().for_each(|line| heard.line(line));
        assert_eq!(heard.results.len(), 2);
        assert_eq!(heard.failures, ["\n---- b stdout ----\nwhy\n\nfailures:\n    b\n"]);
    }

    #[test]
    fn a_talker_is_cut_short() {
        let mut heard = Heard::default();
        heard.line("failures:");
        (0..1000).for_each(|_| heard.line("more"));
        heard.line("test result: FAILED.");
        assert_eq!(heard.failures[0].lines().count(), KEPT);
    }
}
