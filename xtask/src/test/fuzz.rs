//! A smoke run of each fuzz target.

use super::{Session, cargo, host};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How often each fuzz target runs: some seconds, and the same every time. Without `-seed` and `-runs` a target goes on
/// until it finds something.
const SMOKE: u32 = 500_000;
/// Targets of which one run takes longer, and how often they run.
const LONGER: [(&str, u32); 4] =
    [("connection", 10_000), ("handshake", 20_000), ("tls", 20_000), ("lines", 100_000)];
/// Whole connections begin with so many stories of a hundred steps: a fuzzer that begins with nothing has not
/// come to their tenth step when a smoke is over.
const STORIES: u64 = 64;
const STORY: usize = 404;

/// What makes the compiler tell a fuzzer which ways are taken (libFuzzer's own flags).
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Builds the fuzz targets and runs each for a moment, on the compiler at hand: a sanitizer would
/// need another, and there is nothing unsafe in what is fuzzed. (`cargo fuzz` takes them too.)
pub(super) fn smoke(session: &mut Session) -> Result<()> {
    let folder = session.root.join("fuzz");
    let mut build = cargo(&["build", "--release", "--locked", "--manifest-path"]);
    build.arg(folder.join("Cargo.toml")).args(["--target", &host()?]);
    // With a target of its own, what runs while it is built is not instrumented.
    build.env("RUSTFLAGS", COVERAGE).arg("--target-dir").arg(folder.join("target"));
    session.step("fuzz build", build);
    std::fs::create_dir_all(folder.join("artifacts"))?;
    let mut runs = Vec::new();
    for target in targets(&folder.join("fuzz_targets"))? {
        runs.push((format!("fuzz {target}"), run(&folder, &target)?));
    }
    session.steps(runs);
    Ok(())
}

fn run(folder: &Path, target: &str) -> Result<Command> {
    let program = folder.join("target").join(host()?).join("release").join(target);
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
    run.arg(format!("-artifact_prefix=fuzz/artifacts/{target}-"));
    Ok(run)
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

fn targets(folder: &Path) -> Result<Vec<String>> {
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
