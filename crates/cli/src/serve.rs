//! `hikyaku serve`: the far side of other commands of this program.

use anyhow::Result;
use clap::Args;
use hikyaku_units::DataSize;
use std::process::ExitCode;

/// The far side of a session; `hikyaku cp` starts it through ssh
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    /// Talk to the near side through standard input and output
    #[arg(long, required = true)]
    stdio: bool,
}

/// Serves one session.
pub(crate) fn run(_: &ServeArgs) -> Result<ExitCode> {
    let memory = DataSize::from_bytes(hikyaku_copy::available_memory());
    let arrival = hikyaku_reach::serve(&[hikyaku_copy::SERVICE], memory)?;
    hikyaku_copy::attend(arrival).map(|()| ExitCode::SUCCESS)
}
