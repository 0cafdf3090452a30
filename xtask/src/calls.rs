//! Calls of what stands in packages of its own: the program is built, and becomes this process.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use xtask::{Build, Profile};

/// Options of the program; `--help` shows them.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// A rig of `bench/faults`, beside the program that it judges. Its exit code says whether the copy was found good.
pub(crate) fn faults(rig: &str, args: &Passed) -> Result<ExitCode> {
    let packages = &["hikyaku-cli", "hikyaku-bench-faults"];
    become_program(&Build { profile: Profile::Dev, packages }.program("faults")?, rig, args)
}

/// The benches or the demo of `bench/harness`.
pub(crate) fn bench(verb: &str, args: &Passed) -> Result<ExitCode> {
    let packages = &["hikyaku-bench-harness"];
    become_program(&Build { profile: Profile::Release, packages }.program("bench")?, verb, args)
}

/// Returns only if it cannot. A signal that is to end the call ends the program, which puts back what it has changed.
fn become_program(program: &Path, verb: &str, args: &Passed) -> Result<ExitCode> {
    let error = Command::new(program).arg(verb).args(&args.rest).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}
