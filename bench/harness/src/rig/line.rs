//! A program and its arguments, before it is settled where it runs.

use hikyaku_lab::{Lab, Side};
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// One of the two ends of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Client,
    Server,
}

/// Somewhere with two ends.
pub(crate) trait Place {
    /// `program`, to be run at `end`.
    fn command(&self, end: End, program: &OsStr) -> Command;

    /// The server's address.
    fn server(&self) -> String;
}

impl Place for Lab {
    fn command(&self, end: End, program: &OsStr) -> Command {
        let side = match end {
            End::Client => Side::Client,
            End::Server => Side::Server(1),
        };
        Self::command(self, side, program)
    }

    fn server(&self) -> String {
        hikyaku_lab::ipv4(1).to_string()
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    words: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
}

impl Line {
    /// A program with nothing behind it.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        Self { words: vec![program.as_ref().to_owned()], variables: Vec::new() }
    }

    /// Adds one argument.
    pub(crate) fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub(crate) fn args<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.words.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Adds the arguments in a text, split at spaces.
    pub(crate) fn words(self, text: &str) -> Self {
        self.args(text.split_whitespace())
    }

    /// Sets a variable of its surroundings.
    pub(crate) fn variable(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// With another command behind it, by the shell, if this one did well.
    pub(crate) fn then(mut self, script: &str) -> Self {
        let both = format!("\"$@\" && {script}");
        self.words.splice(0..0, ["sh", "-c", &both, "sh"].map(OsString::from));
        self
    }

    /// On this processor only, all its threads.
    pub(crate) fn pinned(self, cpu: usize) -> Self {
        self.behind(&["taskset", "-c", &cpu.to_string()])
    }

    /// With a lower priority than the relay of the lab, which is late otherwise on a machine with two processors.
    pub(crate) fn behind_the_lab(self) -> Self {
        self.behind(&["nice", "-n", "10"])
    }

    /// As nobody.
    pub(crate) fn unprivileged(self) -> Self {
        let nobody = NOBODY.to_string();
        self.behind(&["setpriv", "--reuid", &nobody, "--regid", &nobody, "--clear-groups"])
    }

    fn behind(mut self, words: &[&str]) -> Self {
        self.words.splice(0..0, words.iter().map(OsString::from));
        self
    }

    /// The command at a host of a lab.
    pub(crate) fn on(&self, lab: &Lab, side: Side) -> Command {
        let mut command = lab.command(side, &self.words[0]);
        command.args(&self.words[1..]).envs(self.variables.iter().cloned());
        command
    }

    /// The command at one end of a place.
    pub(crate) fn at(&self, place: &dyn Place, end: End) -> Command {
        let mut command = place.command(end, &self.words[0]);
        command.args(&self.words[1..]).envs(self.variables.iter().cloned());
        command
    }
}

/// The user without rights.
pub(crate) const NOBODY: u32 = 65_534;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_stand_before_the_program() {
        let line = Line::new("perf").words("-c host").pinned(1).unprivileged();
        let words: Vec<_> = line.words.iter().filter_map(|word| word.to_str()).collect();
        assert_eq!(words[0], "setpriv");
        assert_eq!(words[words.len() - 6..], ["taskset", "-c", "1", "perf", "-c", "host"]);
    }
}
