//! The program `hikyaku`. It passes the arguments to the crate that does the work and prints its
//! errors; it does nothing else.
#![forbid(unsafe_code)]

mod alias;
mod args;
mod completions;
mod far;
mod help;
mod keys;
mod man;
mod mount_helper;
mod native;
mod serve;
mod standard;
#[cfg(test)]
mod tests;
mod usage;

use alias::Alias;
use anyhow::{Context, Error, Result};
use args::Verb;
use hikyaku_console::{
    CodeOf, ConfigArgs, Exit, ExitCode, Failure, Interrupt, leave, print, start_logging,
};

fn main() {
    hikyaku_crypto::leave_no_core();
    let replaced = standard::replace_unusable().context("standard input or output is closed");
    leave(replaced.map_or_else(|error| fail(&error), |()| run()))
}

/// Runs the command.
fn run() -> Exit {
    match args::called_as().as_deref() {
        Some("mount.hikyaku") => return mount_helper::run(),
        name => {
            if let Some(alias) = name.and_then(Alias::of) {
                return alias.run();
            }
        }
    }
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return args::explain(&error),
    };
    let interrupt = Interrupt::default();
    if let Err(error) = start_logging(cli.verb.says()) {
        return fail(&error.into());
    }
    let done = match cli.verb {
        Verb::Cp(args) => hikyaku_copy::run(&args, &interrupt).map(Exit::from),
        Verb::Sftp(args) => alias::sftp(&args, &interrupt).map(Exit::from),
        Verb::Sync(args) => {
            hikyaku_sync::run(&args, serve::available_memory(), &interrupt).map(Exit::from)
        }
        Verb::Ls(args) => hikyaku_ls::run(&args).map(Exit::from),
        Verb::Get(args) => hikyaku_web_get::run(&args, &interrupt).map(Exit::from),
        Verb::Guc(args) => hikyaku_guc::run(&args, &interrupt).map(Exit::from),
        Verb::Serve(args) => serve::run(&args, &interrupt).map(Exit::from),
        Verb::Mount(args) => hikyaku_mount::run(&args, &interrupt),
        Verb::Umount(args) => hikyaku_mount::umount(&args).map(success),
        Verb::Config(args) => config(&args).map(success),
        Verb::Perf(args) => hikyaku_perf::run(*args, &interrupt).map(success),
        Verb::Doctor(args) => hikyaku_doctor::run(&args, &interrupt).map(Exit::from),
        Verb::Proxy(args) => hikyaku_proxy::run(&args, serve::available_memory(), &interrupt),
        Verb::Web(args) => hikyaku_proxy::run_web(&args, serve::available_memory(), &interrupt),
        Verb::View(args) => hikyaku_view::run(&args, &interrupt).map(success),
        Verb::Lab(args) => hikyaku_lab::run(*args),
        Verb::Keys(args) => keys::run(&args).map(success),
        Verb::Status(args) => hikyaku_copy::status(&args).map(Exit::from),
        Verb::Report(args) => hikyaku_report::run(&args).map(success),
        Verb::Far(args) => far::run(&args).map(success),
        Verb::KnownPeers(args) => keys::run_by_old_name(&args).map(success),
        Verb::Completions(args) => completions::run(&args).map(success),
        Verb::Man(args) => man::run(&args).map(success),
    };
    let code = done.unwrap_or_else(|error| match error.downcast_ref::<clap::Error>() {
        Some(usage) => args::explain(usage),
        None => fail(&error),
    });
    // Also a command that has ended in order: for many that is what the signal is for.
    interrupt.end_by_signal();
    code
}

/// Prints an error, and tells its exit code.
fn fail(error: &Error) -> Exit {
    let failure = failure(error);
    failure.print();
    failure.code().into()
}

/// Prints the settings of all commands.
fn config(args: &ConfigArgs) -> Result<()> {
    print(hikyaku_console::config(args, &hikyaku_reach::settings::keys())?)
}

fn success((): ()) -> Exit {
    ExitCode::Success.into()
}

/// What an error of any crate means for the user.
fn failure(error: &Error) -> Failure {
    const KNOWN: [CodeOf; 6] = [
        hikyaku_reach::exit_code,
        hikyaku_view::exit_code,
        hikyaku_lab::exit_code,
        hikyaku_copy::exit_code,
        hikyaku_guc::exit_code,
        hikyaku_web_get::exit_code,
    ];
    Failure::new(error, &KNOWN)
}
