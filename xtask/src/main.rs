//! `cargo xtask`: what this workspace asks of itself, from house rules to the whole test run.
#![forbid(unsafe_code)]

mod calls;
mod first_contact;
mod house;
mod install;
mod macos;
mod nightly;
mod package;
mod red;
mod serve;
mod source;
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
    /// Check the house rules: floors of crates, sizes, citations, paths and words in documents and comments.
    Tidy(tidy::TidyArgs),
    /// Count the places that do one job: engines, walks, journals, session set-ups, back-offs, sets of ssh's flags.
    House(house::HouseArgs),
    /// Run every check a change has to pass.
    Test(test::TestArgs),
    /// Run what takes too long for every change: the ignored tests, the long rigs, real servers of buckets.
    Nightly(nightly::NightlyArgs),
    /// Run one test binary, and end it where a test hangs.
    #[command(hide = true)]
    Watch(test::watch::WatchArgs),
    /// Weaken what attacks are met with, place by place: the tests must see it.
    Red(red::RedArgs),
    /// Let every kind of call of a copy to the kernel fail, one run for each, and judge what it leaves.
    Faults(calls::Passed),
    /// Cut the power at every point of a copy, and judge what is left.
    Crash(calls::Passed),
    /// Build hikyaku, and install it for this user: a static program, manual pages, completions.
    Install(install::InstallArgs),
    /// Build the program for users, and make packages of it.
    Dist(package::DistArgs),
    /// Run README's commands in a fresh Debian, from the clone to the first copy, and time them.
    FirstContact(first_contact::FirstContactArgs),
    /// Compile the portable crates for macOS, as far as types go.
    CheckMacos,
    /// Measure, and keep what was measured.
    Bench(calls::Passed),
    /// Show TCP and hikyaku side by side on a long link that loses packets.
    Demo(calls::Passed),
    /// Start and end real servers of other projects, to try things with.
    #[command(subcommand)]
    Servers(serve::Servers),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Tidy(args) => tidy::run(&args),
        Task::House(args) => house::run(&args),
        Task::Test(args) => test::run(&args),
        Task::Nightly(args) => nightly::run(&args),
        Task::Watch(args) => test::watch::run(&args),
        Task::Red(args) => red::run(&args),
        Task::Faults(args) => calls::faults("faults", &args),
        Task::Crash(args) => calls::faults("crash", &args),
        Task::Install(args) => install::run(&args),
        Task::Dist(args) => package::run(&args),
        Task::FirstContact(args) => first_contact::run(&args),
        Task::CheckMacos => macos::run(),
        Task::Bench(args) => calls::bench("bench", &args),
        Task::Demo(args) => calls::bench("demo", &args),
        Task::Servers(servers) => serve::run(servers),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}
