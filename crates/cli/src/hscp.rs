//! The same program under the name `hscp`: the verb is `cp`, the exit codes are scp's.

use crate::args::explain_as;
use crate::failure::Failure;
use clap::Parser;
use hikyaku_copy::{CopyArgs, SshFailed};
use std::path::Path;
use std::process::ExitCode;

/// Copies files between machines, as scp does.
#[derive(Parser)]
#[command(name = "hscp", version)]
struct Hscp {
    #[command(flatten)]
    args: CopyArgs,
}

/// Something could not be copied.
const FAILED: u8 = 1;
/// ssh did not get through.
const NO_SSH: u8 = 255;

/// Whether the program was called by this name.
pub(crate) fn is_called() -> bool {
    let name = std::env::args_os().next().unwrap_or_default();
    Path::new(&name).file_name().is_some_and(|name| name == "hscp")
}

pub(crate) fn run() -> ExitCode {
    let cli = match Hscp::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain_as(&error, FAILED),
    };
    match hikyaku_copy::run(&cli.args) {
        Ok(code) if code == ExitCode::SUCCESS => code,
        Ok(_) => ExitCode::from(FAILED),
        Err(error) => {
            eprint!("{}", Failure::from(&error));
            let is_ssh = error.chain().any(|link| link.is::<SshFailed>());
            ExitCode::from(if is_ssh { NO_SSH } else { FAILED })
        }
    }
}
