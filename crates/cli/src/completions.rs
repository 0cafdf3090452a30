//! Shell completion scripts, generated from the definition of the command line.

use crate::args;
use clap_complete::Shell;

/// Options of `hikyaku completions`.
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell for which to print the script
    pub(crate) shell: Shell,
}

/// Generates the script.
pub(crate) fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "hikyaku", &mut script);
    script
}
