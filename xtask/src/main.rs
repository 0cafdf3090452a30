//! `cargo xtask`: what this workspace asks of itself, from house rules to benches.
#![forbid(unsafe_code)]

mod bench;
mod packages;
mod process;
mod red;
mod root;
mod test;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Checks, tests and benches of the hikyaku workspace.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check the house rules: floors, purity, sizes, heads, citations.
    Tidy(tidy::TidyArgs),
    /// Run every check a change has to pass.
    Test(test::TestArgs),
    /// Weaken what attacks are met with, place by place: the tests must see it.
    Red(red::RedArgs),
    /// Measure, and keep what was measured.
    Bench(bench::BenchArgs),
    /// One end of many short TCP flows, for benches.
    #[command(hide = true)]
    ShortFlows(bench::short::ShortArgs),
    /// Show TCP and hikyaku side by side on a long link that loses packets.
    Demo(bench::demo::DemoArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Tidy(args) => tidy::run(&args),
        Task::Test(args) => test::run(&args),
        Task::Red(args) => red::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::ShortFlows(args) => bench::short::run(&args),
        Task::Demo(args) => bench::demo::run(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}
