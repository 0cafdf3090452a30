//! `cargo xtask test`: all that a change has to pass, each step timed, the sums at the end.

mod advisories;
mod heard;
mod slowest;
mod summary;
pub(crate) mod watch;

use crate::macos;
use anyhow::{Context, Result};
use heard::Heard;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
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

/// How often each fuzz target runs in the smoke step: some seconds, and the same every time. Without
/// `-seed` and `-runs` a target goes on until it finds something.
const SMOKE: u32 = 500_000;
/// Targets of which one run takes longer, and how often they run.
const LONGER: [(&str, u32); 4] =
    [("connection", 10_000), ("handshake", 20_000), ("tls", 20_000), ("lines", 100_000)];
/// Whole connections begin with so many stories of a hundred steps: a fuzzer that begins with nothing has not
/// come to their tenth step when a smoke is over.
const STORIES: u64 = 64;
const STORY: usize = 404;

/// A test that takes longer hangs. The slowest one takes two minutes on two busy processors.
const TEST_LIMIT: Duration = Duration::from_secs(600);

/// What makes the compiler tell a fuzzer which ways are taken (libFuzzer's own flags).
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

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
    session.step("test", cargo_test(&["--workspace", "--no-fail-fast"], TEST_LIMIT)?);
    session.rows.push(namespaces());
    if macos::is_installed() {
        session.step("macos", macos::check());
    } else {
        session.skip("macos", "try: rustup target add aarch64-apple-darwin");
    }
    if !args.quick {
        session.deny();
        session.fuzz()?;
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

    pub(crate) fn step(&mut self, name: &str, mut command: Command) {
        println!("\n--- {name}");
        let begin = Instant::now();
        let outcome = match echo(command.current_dir(&self.root), &mut self.heard) {
            Ok(true) => Outcome::Ok,
            Ok(false) => Outcome::Failed("see above".to_owned()),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        self.rows.push(Row { name: name.to_owned(), outcome, took: begin.elapsed() });
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

    /// Builds the fuzz targets and runs each for a moment, on the compiler at hand: a sanitizer would
    /// need another, and there is nothing unsafe in what is fuzzed. (`cargo fuzz` takes them too.)
    fn fuzz(&mut self) -> Result<()> {
        let folder = self.root.join("fuzz");
        let mut build = cargo(&["build", "--release", "--locked", "--manifest-path"]);
        build.arg(folder.join("Cargo.toml")).args(["--target", &host()?]);
        // With a target of its own, what runs while it is built is not instrumented.
        build.env("RUSTFLAGS", COVERAGE).arg("--target-dir").arg(folder.join("target"));
        self.step("fuzz build", build);
        std::fs::create_dir_all(folder.join("artifacts"))?;
        for target in fuzz_targets(&folder.join("fuzz_targets"))? {
            let program = folder.join("target").join(host()?).join("release").join(&target);
            let mut run = Command::new(program);
            let longer = LONGER.iter().find(|(name, _)| *name == target);
            let runs = longer.map_or(SMOKE, |(_, runs)| *runs);
            run.args([
                "-seed=1",
                &format!("-runs={runs}"),
                "-print_final_stats=1",
                "-verbosity=0",
                "-print_funcs=0",
            ]);
            if target == "connection" {
                run.arg(stories(&folder.join("target").join("stories"))?);
            }
            // What it fails on is kept there.
            run.arg("-artifact_prefix=fuzz/artifacts/");
            self.step(&format!("fuzz {target}"), run);
        }
        Ok(())
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

/// A folder of stories to begin with, the same every time.
fn stories(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    for number in 0..STORIES {
        // Any bytes are a story.
        let mut story = [0; STORY];
        fastrand::Rng::with_seed(number).fill(&mut story);
        std::fs::write(folder.join(number.to_string()), story)?;
    }
    Ok(folder.to_owned())
}

fn fuzz_targets(folder: &Path) -> Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut targets = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            targets.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    targets.sort();
    Ok(targets)
}
