//! The program under the name `hsftp`: it takes the arguments of `hikyaku sftp`, and its exit codes are sftp's.

use crate::args::{explain_as, with_version};
use crate::{failure, serve};
use clap::{Command, CommandFactory, FromArgMatches, Parser};
use hikyaku_console::{ExitCode as Code, Interrupt, print_error, start_logging};
use hikyaku_shell::{Outcome, SftpArgs};

/// Work with the files of another host, as sftp does
#[derive(Parser)]
#[command(name = "hsftp", version, disable_version_flag = true)]
struct Hsftp {
    #[command(flatten)]
    args: SftpArgs,
}

/// Exit code if a command of a batch failed, or the command line is wrong.
const FAILED: u8 = 1;
/// Exit code if no session began, or its connection was lost.
const NO_SESSION: u8 = 255;

/// The definition of the command line.
pub(crate) fn command() -> Command {
    with_version(Hsftp::command())
}

/// The exit code of `hikyaku sftp`.
pub(crate) fn code(outcome: Outcome) -> Code {
    match outcome {
        Outcome::Done => Code::Success,
        Outcome::Failed => Code::Failed,
    }
}

pub(crate) fn run() -> u8 {
    let matches = command().try_get_matches();
    let cli = match matches.and_then(|matches| Hsftp::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return explain_as(&error, FAILED),
    };
    let interrupt = Interrupt::default();
    if let Err(error) = start_logging(cli.args.verbosity()) {
        print_error(failure(&error.into()));
        return FAILED;
    }
    match hikyaku_shell::run(&cli.args, serve::available_memory(), &interrupt) {
        Ok(Outcome::Done) => Code::Success.number(),
        Ok(Outcome::Failed) => FAILED,
        Err(error) => {
            let failure = failure(&error);
            print_error(&failure);
            if failure.code() == Code::Usage { FAILED } else { NO_SESSION }
        }
    }
}
