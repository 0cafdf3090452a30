//! A smoke run of each fuzz target.

use super::{Step, cargo, later};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Without it the targets are not built.
const FEATURE: &str = "hikyaku-fuzz/libfuzzer";
/// Their sources are read early: their programs are built beside the tests, and a crate that one lacks is seen at the end
/// of half an hour.
pub(super) const CLIPPY: [&str; 8] =
    ["clippy", "--workspace", "--bins", "--features", FEATURE, "--", "-D", "warnings"];
/// How often each fuzz target runs: some seconds, and the same every time. Without `-seed` and `-runs` a target goes on
/// until it finds something.
const SMOKE: u32 = 500_000;
/// Targets of which one run takes longer, and how often they run.
const LONGER: [(&str, u32); 5] = [
    ("connection", 10_000),
    ("handshake", 20_000),
    ("tls", 20_000),
    ("lines", 100_000),
    ("web", 100_000),
];
/// Whole connections begin with so many stories of a hundred steps: a fuzzer that begins with nothing has not
/// come to their tenth step when a smoke is over.
const STORIES: u64 = 64;
const STORY: usize = 404;

/// Builds the fuzz targets and runs each for a moment, on the compiler at hand: a sanitizer would need another, and there
/// is nothing unsafe in what is fuzzed. (`cargo fuzz --features libfuzzer` takes them too, and instruments all crates.)
pub(super) fn smoke(root: &Path) -> Result<Vec<Step>> {
    let folder = root.join("fuzz");
    std::fs::create_dir_all(folder.join("artifacts"))?;
    let targets = targets(&folder.join("fuzz_targets"))?;
    let mut build = cargo(&["build", "--workspace", "--features", FEATURE]);
    build.args(targets.iter().flat_map(|target| ["--bin", target]));
    // What is not of the workspace is that of the tests.
    build.env("RUSTC_WORKSPACE_WRAPPER", folder.join("instrument"));
    let mut steps = vec![Step::new("fuzz build", later(&build))];
    for target in targets {
        steps.push(Step::new(&format!("fuzz {target}"), later(&run(root, &target)?)));
    }
    Ok(steps)
}

fn run(root: &Path, target: &str) -> Result<Command> {
    // Cargo puts it beside this program.
    let this = std::env::current_exe().context("this program has no name")?;
    let mut run = Command::new(this.with_file_name(target));
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
        run.arg(stories(&root.join("target").join("stories"))?);
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
