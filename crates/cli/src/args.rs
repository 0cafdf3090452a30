//! What users type.

use crate::completions::CompletionsArgs;
use crate::failure::USAGE;
use crate::known_peers::KnownPeersArgs;
use clap::{Parser, Subcommand};
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
    /// Measure what the transport moves between two hosts.
    Perf(Box<PerfArgs>),
    /// Run programs on an emulated long fat link between namespaces.
    Lab(LabArgs),
    /// Show or forget the keys of servers that were met before.
    KnownPeers(KnownPeersArgs),
    /// Print the completion script of a shell.
    Completions(CompletionsArgs),
}

/// Prints help, the version or a usage error where each belongs.
pub(crate) fn explain(error: &clap::Error) -> ExitCode {
    // With the terminal gone there is nobody left to tell.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}
