//! `cargo xtask first-contact`: the first ten minutes of a new user, measured.
//!
//! A fresh Debian is made, and the commands of README.md are run in it as an ordinary user, from the clone to the first
//! copy to a second fresh Debian that has neither Rust, nor a C compiler, nor hikyaku. Each command is timed. Both systems
//! are directories of `target/first-contact`; they share the network of this machine, and the second one is reached at
//! another address of the loopback interface. Nothing outside that directory changes.

mod readme;
mod roots;

use anyhow::{Context, Result, bail, ensure};
use readme::Commands;
use roots::{FAR, Roots, USER};
use serde::Serialize;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;
use xtask::{Need, ensure_present, is_root, workspace};

/// Options of `cargo xtask first-contact`.
#[derive(clap::Args)]
pub(crate) struct FirstContactArgs {
    /// Directory of the two systems; removed at the end, but for the packages' base
    #[arg(long, value_name = "DIR", default_value = "target/first-contact")]
    dir: PathBuf,
    /// Write the table as JSON to FILE
    #[arg(long, value_name = "FILE", default_value = "target/first-contact.json")]
    json: PathBuf,
    /// Set by this command for itself: its process has mount and process namespaces of its own.
    #[arg(long, hide = true)]
    inside: bool,
}

/// A command that was run.
#[derive(Serialize)]
struct Step {
    command: String,
    seconds: f64,
    exit: i32,
}

/// What is written as JSON.
#[derive(Serialize)]
struct Report {
    commit: String,
    requirements: Step,
    commands: Vec<Step>,
    is_copied: bool,
}

const NEEDS: &[Need] = &[
    Need::new("debootstrap", "debootstrap"),
    Need::new("git", "git"),
    Need::new("unshare", "util-linux"),
    Need::new("ssh-keygen", "openssh-client"),
];

pub(crate) fn run(args: &FirstContactArgs) -> Result<ExitCode> {
    if !is_root() {
        bail!("only root can make fresh systems\ntry: sudo cargo xtask first-contact");
    }
    if args.inside {
        return inside(args);
    }
    ensure_present(NEEDS)?;
    // Every mount and every process of the two systems ends with the namespaces.
    let error = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"])
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .arg("--inside")
        .exec();
    Err(error).context("cannot start unshare")
}

fn inside(args: &FirstContactArgs) -> Result<ExitCode> {
    let source = workspace();
    let readme = fs::read_to_string(source.join("README.md")).context("cannot read README.md")?;
    let commands = Commands::of(&readme)?;
    let roots = Roots::make(&args.dir)?;
    println!("--- requirements");
    let begin = Instant::now();
    let exit = roots.install(commands.packages())?;
    ensure!(exit == 0, "{} failed", commands.requirements);
    let seconds = begin.elapsed().as_secs_f64();
    let requirements = Step { command: commands.requirements.clone(), seconds, exit };
    roots.meet(&source)?;
    let steps = roots.as_user(&commands.steps, &commands.address)?;
    let report = Report {
        commit: commit(&source)?,
        requirements,
        is_copied: roots.is_copied()?,
        commands: steps,
    };
    fs::write(&args.json, serde_json::to_string_pretty(&report)? + "\n")
        .with_context(|| format!("cannot write {}", args.json.display()))?;
    let is_good = show(&report);
    roots.remove()?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(report: &Report) -> bool {
    println!("\n{:>9}  exit  command", "time");
    let line = |step: &Step| {
        println!("{:>7.1} s  {:>4}  {}", step.seconds, step.exit, step.command);
    };
    line(&report.requirements);
    println!("           (the requirements, counted apart)");
    report.commands.iter().for_each(line);
    let sum: f64 = report.commands.iter().map(|step| step.seconds).sum();
    let all_good = report.is_copied && report.commands.iter().all(|step| step.exit == 0);
    let result = if report.is_copied { "equal" } else { "NOT equal" };
    println!(
        "{} commands in {:.1} min; what {USER}@{FAR} has is {result} to what was copied",
        report.commands.len(),
        sum / 60.0,
    );
    all_good
}

fn commit(source: &Path) -> Result<String> {
    let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(source).output()?;
    ensure!(head.status.success(), "cannot tell the commit");
    Ok(String::from_utf8(head.stdout)?.trim().to_owned())
}
