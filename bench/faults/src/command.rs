//! What can be asked for.

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};
use hikyaku_bench_faults::{
    Effort, Outcome, Rig, Run, SCENES, Scratch, Summary, become_watched, plan, sample, sweep,
};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

/// Judges `hikyaku cp` under faults of the system.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Let calls to the kernel fail, one run for each
    Faults(FaultArgs),
    /// Cut the power at every point of a copy
    Crash(CrashArgs),
    /// Wait to be watched and become a program
    #[command(hide = true)]
    Stage {
        #[arg(last = true)]
        command: Vec<OsString>,
    },
}

#[derive(Args)]
struct FaultArgs {
    /// Only runs whose name contains this; a whole name (small/write@target#2=ENOSPC) is run as it is
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// At most so many runs, drawn at random
    #[arg(long, value_name = "COUNT")]
    sample: Option<usize>,
    /// What they are drawn by
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write what came of each run into this file; what stands there already is not run again
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// The program under test (the one beside this one)
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

#[derive(Args)]
struct CrashArgs {
    /// Only this scene
    #[arg(long, value_name = "SCENE")]
    only: Option<String>,
    /// States of each scene that are looked at
    #[arg(long, default_value_t = 2000)]
    states: usize,
    /// States of each scene from which the program goes on
    #[arg(long, default_value_t = 40)]
    again: usize,
    /// What is left by chance is drawn by this
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The program under test (the one beside this one)
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

pub(crate) fn main() -> ExitCode {
    let done = match Cli::parse().what {
        What::Faults(args) => faults(&args),
        What::Crash(args) => crash(&args),
        What::Stage { command } => become_watched(&command).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("faults: {error:#}");
        ExitCode::from(2)
    })
}

fn faults(args: &FaultArgs) -> Result<ExitCode> {
    let (stage, program) = programs(args.program.as_deref())?;
    let scratch = Scratch::make("faults")?;
    judged(&Rig { stage: &stage, program: &program, scratch: scratch.path() }, args)
}

fn crash(args: &CrashArgs) -> Result<ExitCode> {
    let (stage, program) = programs(args.program.as_deref())?;
    let scratch = Scratch::make("crash")?;
    let rig = Rig { stage: &stage, program: &program, scratch: scratch.path() };
    let effort = Effort { states: args.states, again: args.again, seed: args.seed };
    let (mut states, mut wrong) = (0, 0);
    println!("{:<10}{:>8}{:>8}{:>8}{:>8}", "scene", "calls", "states", "again", "wrong");
    for scene in SCENES.iter().filter(|s| args.only.as_deref().is_none_or(|only| only == s.name)) {
        let swept = sweep(&rig, scene, effort)?;
        println!("{swept}");
        swept.wrong.iter().for_each(|words| println!("    {words}"));
        states += swept.states;
        wrong += swept.wrong.len();
    }
    println!("{states} states, {wrong} things wrong");
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// This program, and the one under test.
fn programs(named: Option<&Path>) -> Result<(PathBuf, PathBuf)> {
    let stage = std::env::current_exe()?;
    let program = named.map_or_else(|| stage.with_file_name("hikyaku"), Path::to_path_buf);
    ensure!(program.is_file(), "{}: no such program", program.display());
    Ok((stage, program))
}

fn judged(rig: &Rig<'_>, args: &FaultArgs) -> Result<ExitCode> {
    let known = args.keep.as_deref().map(known).transpose()?.unwrap_or_default();
    let keep =
        args.keep.as_deref().map(|path| File::options().create(true).append(true).open(path));
    let keep = keep.transpose().context("cannot keep what comes of it")?;
    let mut runs = wanted(rig, args)?;
    runs.retain(|run| !known.contains(&run.to_string()));
    let runs = sample(runs, args.seed, args.sample.unwrap_or(usize::MAX));
    println!("{} runs, {} known already", runs.len(), known.len());
    let told = Mutex::new((Summary::default(), keep));
    rig.run_all(runs, &|outcome| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.0.add(outcome);
        say(outcome);
        if let Some(keep) = &mut told.1 {
            // A run that is not kept is run again.
            let _ =
                writeln!(keep, "{}\t{:?}\t{}", outcome.name, outcome.end, outcome.wrong.join("; "));
        }
    })?;
    let summary = told.into_inner().unwrap_or_else(PoisonError::into_inner).0;
    println!("\n{summary}");
    Ok(if summary.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn say(outcome: &Outcome) {
    if outcome.wrong.is_empty() {
        return;
    }
    println!("WRONG {} ({:?}, {} ms)", outcome.name, outcome.end, outcome.took.as_millis());
    outcome.wrong.iter().for_each(|words| println!("    {words}"));
    println!("    replay: cargo xtask faults --only '{}'", outcome.name);
}

fn wanted(rig: &Rig<'_>, args: &FaultArgs) -> Result<Vec<Run>> {
    let only = args.only.as_deref().unwrap_or_default();
    if let Ok(run) = only.parse() {
        return Ok(vec![run]);
    }
    let scenes: Vec<_> =
        SCENES.iter().filter(|scene| !only.contains('/') || only.starts_with(scene.name)).collect();
    let mut runs = plan(rig, &scenes)?;
    runs.retain(|run| run.to_string().contains(only));
    Ok(runs)
}

/// Names of runs that were run before.
fn known(path: &Path) -> Result<BTreeSet<String>> {
    let Ok(text) = fs::read_to_string(path) else { return Ok(BTreeSet::new()) };
    Ok(text.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect())
}
