//! The program under the name `hscp`: it takes the arguments of `hikyaku cp`, and its exit codes
//! are scp's.

use crate::args::{explain_as, with_version};
use crate::failure;
use clap::{Command, CommandFactory, FromArgMatches, Parser};
use hikyaku_console::{ExitCode as Code, Interrupt, print_error, start_logging};
use hikyaku_copy::CopyArgs;
use hikyaku_reach::SshFailed;

/// Copy files between hosts, as scp does
#[derive(Parser)]
#[command(name = "hscp", version, disable_version_flag = true)]
struct Hscp {
    #[command(flatten)]
    args: CopyArgs,
}

/// Exit code if something could not be copied.
const FAILED: u8 = 1;
/// Exit code if ssh could not connect.
const SSH_FAILED: u8 = 255;

/// The definition of the command line.
pub(crate) fn command() -> Command {
    with_version(Hscp::command())
}

pub(crate) fn run() -> u8 {
    let matches = command().try_get_matches();
    let cli = match matches.and_then(|matches| Hscp::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return explain_as(&error, FAILED),
    };
    let interrupt = Interrupt::default();
    if let Err(error) = start_logging(cli.args.verbosity()) {
        print_error(failure(&error.into()));
        return FAILED;
    }
    match hikyaku_copy::run(&cli.args, &interrupt) {
        Ok(Code::Success) => Code::Success.number(),
        Ok(_) => FAILED,
        Err(error) => {
            print_error(failure(&error));
            interrupt.end_by_signal();
            let is_ssh = error.chain().any(|link| link.is::<SshFailed>());
            if is_ssh { SSH_FAILED } else { FAILED }
        }
    }
}
