//! A build of many minutes, with a line a minute that says how far it is.

use crate::process::run;
use crate::workspace;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, IsTerminal};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Between two lines.
const PERIOD: Duration = Duration::from_secs(60);
/// For cargo to read manifests.
const LIST_TIME_MAX: Duration = Duration::from_secs(300);
/// Names of crates that wait for their turn to be counted.
const WAITING_MAX: usize = 1024;

/// The crates of a build.
#[derive(Debug)]
pub(super) struct Crates {
    built: BTreeSet<String>,
    all: usize,
}

/// A line of cargo's messages in JSON.
#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    target: Option<Made>,
}

#[derive(Deserialize)]
struct Made {
    kind: Vec<String>,
}

impl Crates {
    /// Those that a package is built of for a target.
    ///
    /// # Errors
    ///
    /// cargo does not list them.
    pub(super) fn of(cargo: &mut Command, package: &str, triple: &str) -> Result<Self> {
        cargo.args(["tree", "--locked", "--package", package, "--target", triple]);
        cargo.args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
        let list = run(cargo.current_dir(workspace()), LIST_TIME_MAX)?.success();
        let list = list.context("cargo does not list the crates of the program")?;
        // A name and a version; whether it was listed before stands behind them.
        let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        let names: BTreeSet<_> = list.lines().map(name).filter(|name| !name.is_empty()).collect();
        Ok(Self { built: BTreeSet::new(), all: names.len() })
    }

    /// How many there are.
    pub(super) const fn count(&self) -> usize {
        self.all
    }

    /// Runs cargo, which builds them, with its messages in JSON.
    ///
    /// # Errors
    ///
    /// cargo cannot be run.
    pub(super) fn build(mut self, cargo: &mut Command) -> Result<ExitStatus> {
        let begin = Instant::now();
        cargo.args(["--message-format", "json-render-diagnostics"]).stdout(Stdio::piped());
        let mut child = cargo.spawn().context("cannot run cargo")?;
        let messages = child.stdout.take().context("cargo has no output")?;
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let reader = thread::spawn(move || {
            let lines = BufReader::new(messages).lines().map_while(Result::ok);
            for built in lines.filter_map(|line| built(&line)) {
                // The receiver lives until this thread drops the sender.
                let _ = sender.send(built);
            }
        });
        let mut next = begin + PERIOD;
        loop {
            match receiver.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(name) => {
                    let had_more = self.built.len() + 1 < self.all;
                    self.built.insert(name);
                    if !had_more || self.built.len() + 1 != self.all {
                        continue;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            next = Instant::now() + PERIOD;
            // On a terminal cargo shows a bar, which it draws again below this line.
            let clear = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
            println!("{clear}{}", self.line(begin.elapsed()));
        }
        // It has closed its end of the channel.
        let _ = reader.join();
        child.wait().context("cannot wait for cargo")
    }

    /// How far the build is after this time.
    fn line(&self, time: Duration) -> String {
        let (minutes, built, all) = (time.as_secs() / 60, self.built.len(), self.all);
        let last = match built + 1 == all {
            true => "; the last one links all of them, which takes a third of the whole time",
            false => "",
        };
        format!("{minutes} min: {built} of {all} crates are built{last}")
    }
}

/// The crate that a message of cargo reports as built.
fn built(message: &str) -> Option<String> {
    let message: Message = serde_json::from_str(message).ok()?;
    // A crate with a build script has two programs: the script comes first.
    let is_script = message.target?.kind.iter().any(|kind| kind == "custom-build");
    let is_built = message.reason == "compiler-artifact" && !is_script;
    message.package_id.filter(|_| is_built)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_built_when_more_than_its_build_script_is() {
        let message = |reason: &str, kind: &str| {
            format!(r#"{{"reason":"{reason}","package_id":"a","target":{{"kind":["{kind}"]}}}}"#)
        };
        assert_eq!(built(&message("compiler-artifact", "lib")), Some("a".to_owned()));
        assert_eq!(built(&message("compiler-artifact", "custom-build")), None);
        assert_eq!(built(&message("compiler-message", "lib")), None);
        assert_eq!(built(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    fn a_line_names_the_crates_that_are_built_and_the_long_last_step() {
        let line = |built: usize, minutes: u64| {
            let built = (0..built).map(|number| number.to_string()).collect();
            Crates { built, all: 201 }.line(Duration::from_secs(minutes * 60 + 5))
        };
        assert_eq!(line(117, 3), "3 min: 117 of 201 crates are built");
        assert!(line(200, 8).starts_with("8 min: 200 of 201 crates are built; the last one links"));
    }

    /// Of the program itself: every number that is shown rests on it.
    #[test]
    fn the_crates_of_the_program_are_counted() {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.arg("--offline");
        let crates = Crates::of(&mut cargo, "hikyaku-cli", "x86_64-unknown-linux-gnu").unwrap();
        assert!(crates.count() > 100, "{crates:?}");
    }
}
