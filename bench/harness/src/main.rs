//! `bench`: the benches and the demo. `cargo xtask bench` and `cargo xtask demo` build it and become it.
#![forbid(unsafe_code)]

mod bench;
mod cases;
mod demo;
mod record;
mod rig;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Benches of the hikyaku workspace.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure, and keep what was measured.
    Bench(bench::BenchArgs),
    /// Show TCP and hikyaku side by side on a long link that loses packets.
    Demo(demo::DemoArgs),
    /// One end of many short TCP flows, for benches.
    #[command(hide = true)]
    ShortFlows(rig::short_flows::ShortArgs),
    /// A web server that limits its clients, for benches.
    #[command(hide = true)]
    OddWeb(rig::odd_web::OddArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Bench(args) => bench::run(&args),
        Task::Demo(args) => demo::run(&args),
        Task::ShortFlows(args) => rig::short_flows::run(&args),
        Task::OddWeb(args) => rig::odd_web::run(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("bench: {error:#}");
        ExitCode::from(2)
    })
}
