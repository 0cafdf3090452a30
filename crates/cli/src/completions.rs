//! Completion scripts, made from the same definitions that read the arguments.

use crate::args::Cli;
use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{ErrorKind, Write, stdout};
use std::process::ExitCode;

/// Options of `hikyaku completions`.
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that will read the script.
    shell: Shell,
}

/// Prints the script. A reader that closes early (`| head`) is no error.
pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode> {
    match stdout().write_all(&script(args.shell)) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        written => Ok(written.map(|()| ExitCode::SUCCESS)?),
    }
}

pub(crate) fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "hikyaku", &mut script);
    script
}
