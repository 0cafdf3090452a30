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

/// The test program that waits most of its time: for links, servers, and limits of rates.
const END_TO_END: &str = "e2e";
/// So many of its tests run at a time where there are fewer processors.
const WAITING_TESTS_MIN: usize = 2;
/// Test programs that compute, in virtual time.
const SIMULATIONS: [&str; 3] = ["chaos", "model", "sim"];

/// Runs all steps, failing ones included, then prints the table and the tests' own sums.
pub(crate) fn run(args: &TestArgs) -> Result<ExitCode> {
    ensure_present(NETWORK_TOOLS)?;
    let mut session = Session::new();
    // Not every distribution has these servers.
    if let Err(error) = ensure_present(gfarm::NEEDS) {
        session.skip("gfarm", &format!("its tests do not run: {error}"));
    }
    session.component("fmt", "rustfmt", &["fmt", "--all", "--", "--check"]);
    // The test build has no S3: what is left out there is compiled here.
    let clippy = [
        &["clippy", "--workspace", "--all-targets", "--features", "hikyaku-cli/s3"][..],
        &["--", "-D", "warnings"],
    ]
    .concat();
    session.component("clippy", "clippy", &clippy);
    if !args.quick {
        session.component("fuzz clippy", "clippy", &fuzz::CLIPPY);
        let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--document-private-items"]);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        session.step("doc", doc);
    }
    if macos::is_installed() {
        session.step("macos", macos::check());
    } else {
        session.skip("macos", "try: rustup target add aarch64-apple-darwin");
    }
    if !args.quick {
        session.deny();
    }
    session.tests(args)?;
    session.rows.push(namespaces());
    Ok(session.finish())
}

/// A command with the name of what it does.
struct Step {
    name: String,
    command: Command,
}

impl Step {
    fn new(name: &str, command: Command) -> Self {
        Self { name: name.to_owned(), command }
    }
}

pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}

/// `cargo test`, with its tests watched, but for some test programs. A shell that starts a command in the background lets it ignore three signals, and
/// all that the command starts inherits that; tests send these signals.
pub(crate) fn cargo_test(args: &[&str], limit: Duration, left_out: &[&str]) -> Result<Command> {
    let (variable, runner) = watch::runner(&host()?, limit, left_out)?;
    let mut test = cargo(&["test"]);
    test.args(args).env(variable, runner);
    Ok(through("env", "--default-signal=INT,QUIT,HUP", &test))
}

/// What computes waits for what runs beside it and has to be in time.
fn later(command: &Command) -> Command {
    through("nice", "--adjustment=10", command)
}

/// A command that is started by another program.
fn through(program: &str, option: &str, command: &Command) -> Command {
    let mut outer = Command::new(program);
    outer.arg(option).arg(command.get_program()).args(command.get_args());
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer
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
        self.beside(vec![vec![Step::new(name, command)]]);
    }

    /// Runs lists of steps beside each other, each in its order. Their lines come as they are said.
    fn beside(&mut self, lists: Vec<Vec<Step>>) {
        let root = &self.root;
        let done = Mutex::new((&mut self.rows, &mut self.heard));
        let run = |Step { name, mut command }: Step| {
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
        };
        thread::scope(|scope| {
            for list in lists {
                scope.spawn(|| list.into_iter().for_each(&run));
            }
        });
    }

    /// All tests, each once, and the fuzz targets. What waits most of its time goes first; what computes runs beside it.
    fn tests(&mut self, args: &TestArgs) -> Result<()> {
        self.step("test build", cargo(&["test", "--workspace", "--no-run"]));
        let (mut waiting, mut computing) = (Vec::new(), Vec::new());
        if self.rows.last().is_some_and(|row| matches!(row.outcome, Outcome::Ok)) {
            let all = |targets: &[&str], left_out: &[&str]| {
                // Of all packages: a selection of packages would select other features, and be compiled again.
                let args = [targets, &["--workspace", "--no-fail-fast"]].concat();
                cargo_test(&args, TEST_LIMIT, left_out)
            };
            let mut end_to_end = all(&["--test", END_TO_END], &[])?;
            let processors = thread::available_parallelism().map_or(1, NonZero::get);
            end_to_end.env("RUST_TEST_THREADS", processors.max(WAITING_TESTS_MIN).to_string());
            waiting.push(vec![Step::new("end-to-end tests", end_to_end)]);
            let elsewhere = [&[END_TO_END][..], &SIMULATIONS].concat();
            waiting.push(vec![
                Step::new("tests", all(&["--tests"], &elsewhere)?),
                Step::new("doc tests", all(&["--doc"], &[])?),
            ]);
            let simulations = all(&SIMULATIONS.map(|name| ["--test", name]).concat(), &[])?;
            computing.push(Step::new("simulations", later(&simulations)));
        }
        if !args.quick {
            computing.extend(fuzz::smoke(&self.root)?);
        }
        waiting.push(computing);
        self.beside(waiting);
        Ok(())
    }

    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        println!("\n--- {name}: SKIPPED, {why}");
        self.rows.push(Row::skipped(name, why));
    }

    /// A step of a component of Rust's toolchain that may not be installed: not every toolchain has all, and there may be no
    /// network.
    fn component(&mut self, step: &str, component: &str, arguments: &[&str]) {
        let subcommand = arguments.first().copied().unwrap_or_default();
        let there = cargo(&[subcommand, "--version"]).output();
        match there.is_ok_and(|output| output.status.success()) {
            true => self.step(step, cargo(arguments)),
            false => self.skip(step, &format!("try: rustup component add {component}")),
        }
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
        results.iter().filter(|line| !Counts::is_empty_line(line)).for_each(|line| {
            println!("{line}");
        });
        print!("{}", self.heard.slowest);
        self.heard.failures.iter().for_each(|reasons| println!("{reasons}"));
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

    fn sh(name: &str, script: &str) -> Step {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Step::new(name, command)
    }

    #[test]
    fn lists_of_steps_run_beside_each_other_and_each_in_its_order() {
        let folder = std::env::temp_dir().join(format!("hikyaku-steps-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut session = Session { root: folder.clone(), ..Session::new() };
        // Each of the first two opens the pipe only with the other.
        session.step("pipe", later(&sh("", "mkfifo pipe").command));
        session.beside(vec![
            vec![sh("reads", "cat pipe"), sh("after", "test -e written && exit 3")],
            vec![sh(
                "writes",
                "touch written; echo 'test result: ok. 7 passed; 0 failed; 0 ignored;' > pipe",
            )],
        ]);
        std::fs::remove_dir_all(&folder).unwrap();
        let failed = |row: &Row| matches!(row.outcome, Outcome::Failed(_));
        let mut rows: Vec<_> = session.rows.iter().map(|row| (&*row.name, failed(row))).collect();
        rows.sort_unstable();
        assert_eq!(rows, [("after", true), ("pipe", false), ("reads", false), ("writes", false)]);
        let counts: Counts =
            session.heard.results.iter().filter_map(|line| Counts::parse(line)).sum();
        assert_eq!(counts.passed, 7);
    }
}
