//! `cargo xtask watch`: runs one test binary, times its tests, and ends it where a test hangs, with the name of that test.
//!
//! `cargo test` starts every test binary through it (cargo's setting `runner`).

use super::slowest;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Options of `cargo xtask watch`.
#[derive(clap::Args)]
pub(crate) struct WatchArgs {
    /// How long one test may take, in seconds.
    #[arg(long)]
    limit: u64,
    /// Test binaries that are not run.
    #[arg(long, value_name = "NAME")]
    leave_out: Vec<String>,
    /// The test binary and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// How `cargo test` has to be called so that its binaries, but those that are left out, are watched: variable and value of
/// the environment.
pub(super) fn runner(host: &str, limit: Duration, left_out: &[&str]) -> Result<(String, OsString)> {
    let variable = format!("CARGO_TARGET_{}_RUNNER", host.to_uppercase().replace(['-', '.'], "_"));
    let mut value = std::env::current_exe().context("this program has no name")?.into_os_string();
    value.push(format!(" watch --limit {}", limit.as_secs()));
    left_out.iter().for_each(|name| value.push(format!(" --leave-out {name}")));
    value.push(" --");
    Ok((variable, value))
}

/// Runs the binary to its end, or to the end of a test's time.
pub(crate) fn run(args: &WatchArgs) -> Result<ExitCode> {
    let (program, rest) = args.command.split_first().context("no test binary is named")?;
    let binary = short(program);
    if args.leave_out.contains(&binary) {
        return Ok(ExitCode::SUCCESS);
    }
    let limit = Duration::from_secs(args.limit);
    let mut tests = Tests::new(limit, threads(rest), listed(program, rest));
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
    loop {
        match lines.recv_timeout(Duration::from_secs(1)) {
            Ok(line) => {
                let took = tests.line(&String::from_utf8_lossy(&line), Instant::now());
                let mut out = std::io::stdout().lock();
                out.write_all(&line)?;
                if let Some(took) = took {
                    out.write_all(slowest::suffix(took, &binary).as_bytes())?;
                }
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

/// The name of a test binary without the hash that cargo adds.
fn short(program: &OsStr) -> String {
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
    name.rsplit_once('-').map_or(&*name, |(name, _)| name).to_owned()
}

/// The names of the tests that a binary is going to run, in its order; none if it is no test harness.
fn listed(program: &OsStr, arguments: &[OsString]) -> VecDeque<String> {
    // Cargo puts test harnesses there. Another program would do its work twice.
    if Path::new(program).parent().is_none_or(|folder| !folder.ends_with("deps")) {
        return VecDeque::new();
    }
    let output = Command::new(program).args(arguments).arg("--list").output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// How many tests the harness runs at a time.
fn threads(arguments: &[OsString]) -> usize {
    let option = arguments.iter().find_map(|word| word.to_str()?.strip_prefix("--test-threads="));
    let variable = std::env::var("RUST_TEST_THREADS").ok();
    let number = option.or(variable.as_deref()).and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// The tests of a binary. The harness says when a test ends, and begins the next one of its list then.
struct Tests {
    limit: Duration,
    threads: usize,
    passed: u64,
    failed: u64,
    /// When the binary last said something.
    heard: Instant,
    /// Tests that have not begun.
    waiting: VecDeque<String>,
    /// Tests that run, and when they began.
    running: BTreeMap<String, Instant>,
}

impl Tests {
    fn new(limit: Duration, threads: usize, waiting: VecDeque<String>) -> Self {
        let running = BTreeMap::new();
        Self { limit, threads, passed: 0, failed: 0, heard: Instant::now(), waiting, running }
    }

    /// The binary said this line. Returns how long a test took of which this is the result.
    fn line(&mut self, line: &str, now: Instant) -> Option<Duration> {
        self.heard = now;
        let mut took = None;
        if let Some((name, result)) = result(line) {
            self.passed += u64::from(result == "ok");
            self.failed += u64::from(result == "FAILED");
            if let Some(began) = self.running.remove(name) {
                took = Some(now.duration_since(began)).filter(|_| result != "ignored");
            } else {
                // A line was lost, in another program's words for example: nothing is known of what runs.
                self.waiting.clear();
                self.running.clear();
            }
        } else if !line.starts_with("running ") {
            return None;
        }
        while self.running.len() < self.threads {
            let Some(next) = self.waiting.pop_front() else { break };
            self.running.insert(next, now);
        }
        took
    }

    /// The closing lines of a binary in which a test takes too long, in the form of the harness.
    fn overdue(&self, binary: &str, now: Instant) -> Option<String> {
        let late = |began: &Instant| now.duration_since(*began) > self.limit;
        let running = self.running.iter();
        let mut names: Vec<&str> =
            running.filter(|(_, began)| late(began)).map(|(name, _)| &**name).collect();
        // What comes before and after the tests has no name, nor has a binary without a list.
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

/// A test's name and result.
fn result(line: &str) -> Option<(&str, &str)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let result = result.split_once(',').map_or(result, |(result, _)| result);
    Some((name.strip_suffix(" - should panic").unwrap_or(name), result))
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
mod tests;
