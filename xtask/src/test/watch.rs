//! `cargo xtask watch`: runs one test binary and ends it where a test hangs, with the name of that test.
//!
//! `cargo test` starts every test binary through it (cargo's setting `runner`).

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The test harness names a test that has been running for so long.
const TOLD_AFTER: Duration = Duration::from_secs(60);

/// Options of `cargo xtask watch`.
#[derive(clap::Args)]
pub(crate) struct WatchArgs {
    /// How long one test may take, in seconds.
    #[arg(long)]
    limit: u64,
    /// The test binary and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// How `cargo test` has to be called so that its binaries are watched: variable and value of the environment.
pub(super) fn runner(host: &str, limit: Duration) -> Result<(String, OsString)> {
    let variable = format!("CARGO_TARGET_{}_RUNNER", host.to_uppercase().replace(['-', '.'], "_"));
    let mut value = std::env::current_exe().context("this program has no name")?.into_os_string();
    value.push(format!(" watch --limit {} --", limit.as_secs()));
    Ok((variable, value))
}

/// Runs the binary to its end, or to the end of a test's time.
pub(crate) fn run(args: &WatchArgs) -> Result<ExitCode> {
    let (program, rest) = args.command.split_first().context("no test binary is named")?;
    let mut command = Command::new(program);
    let mut child = command
        .args(rest)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let stdout = child.stdout.take().context("standard output is piped")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        // The receiver is gone once the binary was ended.
        let _ = BufReader::new(stdout)
            .split(b'\n')
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line));
    });
    let mut tests = Tests::new(Duration::from_secs(args.limit));
    loop {
        match lines.recv_timeout(Duration::from_secs(1)) {
            Ok(line) => {
                tests.line(&String::from_utf8_lossy(&line), Instant::now());
                let mut out = std::io::stdout().lock();
                out.write_all(&line)?;
                out.write_all(b"\n")?;
                out.flush()?;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(verdict) = tests.overdue(&program.to_string_lossy(), Instant::now()) {
            end_with_children(child.id());
            child.wait()?;
            println!("{verdict}");
            return Ok(ExitCode::FAILURE);
        }
    }
    let code = child.wait()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// What the binary said of its tests.
struct Tests {
    limit: Duration,
    passed: u64,
    failed: u64,
    /// When the binary last said something.
    heard: Instant,
    /// Tests that the harness called slow, and when they began.
    slow: BTreeMap<String, Instant>,
}

impl Tests {
    fn new(limit: Duration) -> Self {
        Self { limit, passed: 0, failed: 0, heard: Instant::now(), slow: BTreeMap::new() }
    }

    fn line(&mut self, line: &str, now: Instant) {
        self.heard = now;
        let Some(rest) = line.strip_prefix("test ") else { return };
        if let Some((name, _)) = rest.split_once(" has been running for over") {
            self.slow.insert(name.to_owned(), now.checked_sub(TOLD_AFTER).unwrap_or(now));
        } else if let Some((name, result)) = rest.split_once(" ... ") {
            self.slow.remove(name);
            self.passed += u64::from(result == "ok");
            self.failed += u64::from(result == "FAILED");
        }
    }

    /// The closing lines of a binary in which a test takes too long, in the form of the harness.
    fn overdue(&self, binary: &str, now: Instant) -> Option<String> {
        let late = |began: &Instant| now.duration_since(*began) > self.limit;
        let mut names: Vec<&str> =
            self.slow.iter().filter(|(_, began)| late(began)).map(|(name, _)| &**name).collect();
        // One test at a time is not named by the harness while it runs, nor is what comes after the tests.
        if names.is_empty() && late(&self.heard) {
            names.push(binary);
        }
        if names.is_empty() {
            return None;
        }
        let failed = self.failed + names.len() as u64;
        let lines =
            names.iter().map(|name| format!("test {name} ... FAILED\n")).collect::<String>();
        let reasons = names.iter().map(|name| {
            format!(
                "---- {name} ----\nit did not end within {} s and was killed\n",
                self.limit.as_secs()
            )
        });
        Some(format!(
            "{lines}\nfailures:\n\n{}\ntest result: FAILED. {} passed; {failed} failed; 0 ignored; the rest did not run",
            reasons.collect::<String>(),
            self.passed,
        ))
    }
}

/// Kills a process and all that it and its children started.
fn end_with_children(first: u32) {
    let mut ids = vec![first];
    let mut at = 0;
    while let Some(&parent) = ids.get(at) {
        ids.extend(children(parent));
        at += 1;
    }
    for id in ids {
        if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn children(parent: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(600);

    #[test]
    fn a_test_that_hangs_is_named_and_counted() {
        let (mut tests, begin) = (Tests::new(LIMIT), Instant::now());
        for line in [
            "test quick ... ok",
            "test wrong ... FAILED",
            "test slow has been running for over 60 seconds",
            "test hung has been running for over 60 seconds",
            "test slow ... ok",
        ] {
            tests.line(line, begin);
        }
        assert!(tests.overdue("binary", begin + Duration::from_secs(530)).is_none());
        let verdict = tests.overdue("binary", begin + Duration::from_secs(541)).unwrap();
        assert!(verdict.starts_with("test hung ... FAILED\n"), "{verdict}");
        assert!(verdict.contains("test result: FAILED. 2 passed; 2 failed;"), "{verdict}");
    }

    #[test]
    fn a_binary_that_says_nothing_is_named() {
        let (tests, begin) = (Tests::new(LIMIT), Instant::now());
        assert!(tests.overdue("binary", begin).is_none());
        let verdict = tests.overdue("binary", begin + Duration::from_secs(602)).unwrap();
        assert!(verdict.contains("---- binary ----"), "{verdict}");
    }

    #[test]
    fn children_of_children_are_ended() {
        let mut shell =
            Command::new("sh").args(["-c", "sh -c 'sleep 600; true'; true"]).spawn().unwrap();
        let below = |id: u32| children(id).first().copied();
        let sleep = loop {
            if let Some(sleep) = below(shell.id()).and_then(below) {
                break sleep;
            }
            thread::sleep(Duration::from_millis(5));
        };
        end_with_children(shell.id());
        shell.wait().unwrap();
        let is_there = || {
            let stat = fs::read_to_string(format!("/proc/{sleep}/stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
        };
        while is_there() {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
