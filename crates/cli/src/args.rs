//! What users type.

use crate::completions::CompletionsArgs;
use crate::failure::USAGE;
use crate::known_peers::KnownPeersArgs;
use clap::{Parser, Subcommand};
use hikyaku_copy::{ConfigArgs, CopyArgs, ServeArgs};
use hikyaku_lab::LabArgs;
use hikyaku_perf::PerfArgs;
use std::process::ExitCode;

/// Line-rate data transfer over long fat networks.
#[derive(Parser)]
#[command(name = "hikyaku", version, propagate_version = true, after_help = MORE)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const MORE: &str = "\
Rates are bits a second (1gbit, 110M), sizes are bytes (5MB, 5MiB), times are seconds or carry a unit (200ms).
Exit codes: 0 done, 1 usage, 2 failed, 5 failed but may work later, 6 will fail again.";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Copy files between machines, as scp does.
    Cp(Box<CopyArgs>),
    /// Show the settings of the config file, and where each comes from.
    Config(ConfigArgs),
    /// Measure what the transport moves between two hosts.
    Perf(Box<PerfArgs>),
    /// Run programs on an emulated long fat link between namespaces.
    Lab(LabArgs),
    /// Show or forget the keys of servers that were met before.
    KnownPeers(KnownPeersArgs),
    /// Print the completion script of a shell.
    Completions(CompletionsArgs),
    #[command(hide = true)]
    Serve(ServeArgs),
}

/// Prints help, the version or a usage error where each belongs.
pub(crate) fn explain(error: &clap::Error) -> ExitCode {
    explain_as(error, USAGE)
}

/// The same with another code for a usage error.
pub(crate) fn explain_as(error: &clap::Error, usage: u8) -> ExitCode {
    // With the terminal gone there is nobody left to tell.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(usage) } else { ExitCode::SUCCESS }
}
