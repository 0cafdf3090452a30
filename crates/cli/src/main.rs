//! The program `hikyaku`. It passes the arguments to the crate that does the work and prints its
//! errors; it does nothing else.
#![forbid(unsafe_code)]

mod args;
mod completions;
mod failure;
mod hscp;
mod known_peers;
mod man;
mod output;
mod serve;
#[cfg(test)]
mod tests;

use args::Verb;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    hikyaku_crypto::leave_no_core();
    if hscp::is_called() {
        return hscp::run();
    }
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return args::explain(&error),
    };
    let done = match cli.verb {
        Verb::Cp(args) => hikyaku_copy::run(&args),
        Verb::Serve(args) => serve::run(&args),
        Verb::Config(args) => hikyaku_copy::config(&args).and_then(output::print),
        Verb::Perf(args) => hikyaku_perf::run(*args),
        Verb::Lab(args) => hikyaku_lab::run(*args),
        Verb::KnownPeers(args) => known_peers::run(&args),
        Verb::Completions(args) => output::print(completions::script(args.shell)),
        Verb::Man(args) => man::run(&args),
    };
    done.unwrap_or_else(|error| match error.downcast_ref::<clap::Error>() {
        Some(usage) => args::explain(usage),
        None => {
            let failure = Failure::from(&error);
            output::print_error(&failure);
            hikyaku_copy::end_by_signal();
            failure.exit_code()
        }
    })
}
