//! `hikyaku`: the command. Here arguments meet the crate that does the work, and errors meet the
//! user; nothing else happens here.
#![forbid(unsafe_code)]

mod args;
mod completions;
mod failure;
mod hscp;
mod known_peers;
#[cfg(test)]
mod tests;

use args::{Cli, Verb};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    hikyaku_crypto::leave_no_core();
    if hscp::is_called() {
        return hscp::run();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return args::explain(&error),
    };
    let done = match cli.verb {
        Verb::Cp(args) => hikyaku_copy::run(&args),
        Verb::Serve(args) => hikyaku_copy::serve(&args).map(|()| ExitCode::SUCCESS),
        Verb::Config(args) => hikyaku_copy::config(&args).map(|()| ExitCode::SUCCESS),
        Verb::Perf(args) => hikyaku_perf::run(*args),
        Verb::Lab(args) => hikyaku_lab::run(args),
        Verb::KnownPeers(args) => known_peers::run(&args),
        Verb::Completions(args) => completions::run(&args),
    };
    done.unwrap_or_else(|error| {
        let failure = Failure::from(&error);
        eprint!("{failure}");
        failure.exit_code()
    })
}
