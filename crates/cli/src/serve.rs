//! `hikyaku serve`: a daemon, or the far side of one session that ssh has started.

use anyhow::Result;
use clap::Args;
use hikyaku_console::Interrupt;
use hikyaku_serve::DaemonArgs;
use hikyaku_units::DataSize;

/// Options of `hikyaku serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve one session through standard input and output; `hikyaku cp` starts this through ssh
    #[arg(long, conflicts_with = "root", required_unless_present = "root")]
    stdio: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

/// Serves until the session or the daemon ends.
pub(crate) fn run(args: &ServeArgs, interrupt: &Interrupt) -> Result<()> {
    if !args.stdio {
        return hikyaku_serve::run(&args.daemon, interrupt);
    }
    let memory = DataSize::from_bytes(hikyaku_copy::available_memory());
    let arrival = hikyaku_reach::serve(&[hikyaku_copy::SERVICE], memory)?;
    hikyaku_copy::attend(arrival)
}
