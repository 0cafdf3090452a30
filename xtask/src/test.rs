//! `cargo xtask test`: all that a change has to pass, each step timed, the sums at the end.

mod advisories;
mod fuzz;
mod heard;
mod slowest;
mod summary;
pub(crate) mod watch;

use crate::macos;
use anyhow::{Context, Result};
use heard::Heard;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use summary::{Counts, Outcome, Row};
use xtask::servers::gfarm;
use xtask::{NETWORK_TOOLS, ensure_present, is_root, on_path, workspace};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct TestArgs {
    /// Leave out the documentation build, the dependency check and the fuzz smoke.
    #[arg(long)]
    quick: bool,
}

/// A test that takes longer hangs. The slowest one takes two minutes on two busy processors.
const TEST_LIMIT: Duration = Duration::from_secs(600);

/// The test programs but `e2e`, as a pattern of cargo's.
const OTHERS: &str = "[!e]*";

/// Runs all steps, failing ones included, then prints the table and the tests' own sums.
pub(crate) fn run(args: &TestArgs) -> Result<ExitCode> {
    ensure_present(NETWORK_TOOLS)?;
    let mut session = Session::new();
    // Not every distribution has these servers.
    if let Err(error) = ensure_present(gfarm::NEEDS) {
        session.skip("gfarm", &format!("its tests do not run: {error}"));
    }
    session.step("fmt", cargo(&["fmt", "--all", "--", "--check"]));
    session
        .step("clippy", cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    if !args.quick {
        let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--document-private-items"]);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        session.step("doc", doc);
    }
    session.tests()?;
    session.rows.push(namespaces());
    if macos::is_installed() {
        session.step("macos", macos::check());
    } else {
        session.skip("macos", "try: rustup target add aarch64-apple-darwin");
    }
    if !args.quick {
        session.deny();
        fuzz::smoke(&mut session)?;
    }
    Ok(session.finish())
}

pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}

/// `cargo test`, with its tests watched. A shell that starts a command in the background lets it ignore three signals, and
/// all that the command starts inherits that; tests send these signals.
pub(crate) fn cargo_test(args: &[&str], limit: Duration) -> Result<Command> {
    let cargo = cargo(&[]);
    let mut command = Command::new("env");
    let (variable, runner) = watch::runner(&host()?, limit)?;
    command.args(["--default-signal=INT,QUIT,HUP"]).arg(cargo.get_program()).arg("test").args(args);
    command
        .envs(cargo.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env(variable, runner);
    Ok(command)
}

/// The steps done so far.
pub(crate) struct Session {
    root: PathBuf,
    rows: Vec<Row>,
    heard: Heard,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self { root: workspace(), rows: Vec::new(), heard: Heard::default() }
    }

    pub(crate) fn step(&mut self, name: &str, command: Command) {
        self.steps(vec![(name.to_owned(), command)]);
    }

    /// Runs commands beside each other, at most one a processor. Their lines come as they are said.
    fn steps(&mut self, commands: Vec<(String, Command)>) {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let (root, threads) = (&self.root, processors.min(commands.len()));
        let waiting = Mutex::new(commands.into_iter());
        let done = Mutex::new((&mut self.rows, &mut self.heard));
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        let one = || {
            while let Some((name, mut command)) = next() {
                println!("\n--- {name}");
                let (begin, mut heard) = (Instant::now(), Heard::default());
                let outcome = match echo(command.current_dir(root), &mut heard) {
                    Ok(true) => Outcome::Ok,
                    Ok(false) => Outcome::Failed("see above".to_owned()),
                    Err(error) => Outcome::Failed(format!("{error:#}")),
                };
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.0.push(Row { name, outcome, took: begin.elapsed() });
                done.1.add(heard);
            }
        };
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(one);
            }
        });
    }

    /// All tests, each once. The end-to-end tests wait most of their time, the others compute.
    fn tests(&mut self) -> Result<()> {
        self.step("test build", cargo(&["test", "--workspace", "--no-run"]));
        if self.rows.last().is_some_and(|row| matches!(row.outcome, Outcome::Failed(_))) {
            return Ok(());
        }
        let all = |targets: &[&str]| {
            // Of all packages: a selection of packages would select other features, and be compiled again.
            cargo_test(&[targets, &["--workspace", "--no-fail-fast"]].concat(), TEST_LIMIT)
        };
        self.steps(vec![
            ("end-to-end tests".to_owned(), all(&["--test", "e2e"])?),
            ("tests".to_owned(), all(&["--lib", "--bins", "--test", OTHERS])?),
        ]);
        self.step("doc tests", all(&["--doc"])?);
        Ok(())
    }

    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        println!("\n--- {name}: SKIPPED, {why}");
        self.rows.push(Row::skipped(name, why));
    }

    fn deny(&mut self) {
        if !on_path("cargo-deny") {
            self.skip("deny", "try: cargo install cargo-deny --locked");
            return;
        }
        self.step("deny", cargo(&["deny", "check", "bans", "licenses", "sources"]));
        // As old as it is: a test run fetches nothing.
        if advisories::are_present() {
            self.step("advisories", cargo(&["deny", "check", "--disable-fetch", "advisories"]));
        } else {
            self.skip("advisories", "no advisory database (try: cargo deny fetch)");
        }
    }

    pub(crate) fn finish(self) -> ExitCode {
        let results = &self.heard.results;
        let counts: Counts = results.iter().filter_map(|line| Counts::parse(line)).sum();
        println!("\n{}", summary::table(&self.rows));
        self.heard.failures.iter().for_each(|reasons| println!("{reasons}"));
        results.iter().filter(|line| !Counts::is_empty_line(line)).for_each(|line| {
            println!("{line}");
        });
        print!("{}", self.heard.slowest);
        println!("{counts}");
        let has_failed = self.rows.iter().any(|row| matches!(row.outcome, Outcome::Failed(_)));
        match has_failed || counts.failed > 0 {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        }
    }
}

/// Runs a command in full view and keeps what of it is said again at the end.
fn echo(command: &mut Command, heard: &mut Heard) -> Result<bool> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let stdout = child.stdout.take().context("standard output is piped")?;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        writeln!(std::io::stdout(), "{line}")?;
        heard.line(&line);
    }
    Ok(child.wait()?.success())
}

/// Whether the end-to-end tests could build their networks, or skipped themselves.
fn namespaces() -> Row {
    let probe = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    let took = Duration::ZERO;
    match probe {
        Ok(status) if status.success() && is_root() => {
            Row { name: "namespaces".to_owned(), outcome: Outcome::Ok, took }
        }
        _ => Row::skipped("namespaces", "END-TO-END TESTS DID NOT RUN: they need root"),
    }
}

/// The compiler's name for this machine.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc does not say for whom it compiles")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::own_files;

    #[test]
    fn each_test_program_is_run_by_one_step() {
        let files = own_files(&workspace()).unwrap();
        let names: Vec<String> = files.iter().filter_map(|path| program_of(path)).collect();
        assert!(names.iter().any(|name| name == "sim") && names.iter().any(|name| name == "e2e"));
        let begins = OTHERS.trim_start_matches("[!").trim_end_matches("]*");
        let is_in_none = |name: &&String| *name != "e2e" && name.starts_with(begins);
        assert!(!names.iter().any(|name| is_in_none(&name)), "{names:?}");
    }

    /// The test program of which this file is the root.
    fn program_of(path: &str) -> Option<String> {
        let below = path.split_once("/tests/")?.1.strip_suffix(".rs")?;
        let name = below.strip_suffix("/main").unwrap_or(below);
        (!path.contains("/src/") && !name.contains('/')).then(|| name.to_owned())
    }
}
