//! The program under other names: `hscp` takes the arguments of `hikyaku cp`, and `hsftp` those of `hikyaku sftp`. Their
//! exit codes are those of scp and sftp.

use crate::args::{explain_as, with_version};
use crate::{failure, help, serve};
use anyhow::{Error, Result};
use clap::{Command, CommandFactory, FromArgMatches, Parser};
use hikyaku_console::{Exit, ExitCode as Code, Interrupt, Noise, ScpCode, start_logging};
use hikyaku_copy::CopyArgs;
use hikyaku_reach::SshFailed;
use hikyaku_shell::{Outcome, SftpArgs};

/// Copy files between hosts, as scp does
#[derive(Parser)]
#[command(version, disable_version_flag = true)]
struct Hscp {
    #[command(flatten)]
    args: CopyArgs,
}

/// Work with the files of another host, as sftp does
#[derive(Parser)]
#[command(version, disable_version_flag = true)]
struct Hsftp {
    #[command(flatten)]
    args: SftpArgs,
}

/// A name of the program with conventions of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alias {
    Hscp,
    Hsftp,
}

impl Alias {
    pub(crate) const ALL: [Self; 2] = [Self::Hscp, Self::Hsftp];

    /// The alias that a program of this name is.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|alias| alias.name() == name)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hscp => "hscp",
            Self::Hsftp => "hsftp",
        }
    }

    /// The command of which this is another name.
    pub(crate) const fn verb(self) -> &'static str {
        match self {
            Self::Hscp => "cp",
            Self::Hsftp => "sftp",
        }
    }

    /// The command line with the texts of its help.
    pub(crate) fn command(self) -> Command {
        help::of_alias(self.plain(), self.name(), self.verb())
    }

    /// The command line as the command defines it.
    pub(crate) fn plain(self) -> Command {
        let command = match self {
            Self::Hscp => Hscp::command(),
            Self::Hsftp => Hsftp::command(),
        };
        with_version(command.name(self.name()))
    }

    /// Runs the command.
    pub(crate) fn run(self) -> Exit {
        match self {
            Self::Hscp => run::<Hscp>(self),
            Self::Hsftp => run::<Hsftp>(self),
        }
    }
}

/// What a command under an alias does.
trait Aliased: FromArgMatches {
    fn says(&self) -> Noise;

    fn run(&self, interrupt: &Interrupt) -> Result<Code>;

    /// The exit code of an error.
    fn code(error: &Error) -> ScpCode;
}

impl Aliased for Hscp {
    fn says(&self) -> Noise {
        self.args.says()
    }

    fn run(&self, interrupt: &Interrupt) -> Result<Code> {
        hikyaku_copy::run(&self.args, interrupt)
    }

    fn code(error: &Error) -> ScpCode {
        let is_ssh = error.chain().any(|link| link.is::<SshFailed>());
        if is_ssh { ScpCode::NoConnection } else { ScpCode::Failed }
    }
}

impl Aliased for Hsftp {
    fn says(&self) -> Noise {
        self.args.says()
    }

    fn run(&self, interrupt: &Interrupt) -> Result<Code> {
        sftp(&self.args, interrupt)
    }

    fn code(error: &Error) -> ScpCode {
        match failure(error).code() {
            Code::Usage => ScpCode::Failed,
            _ => ScpCode::NoConnection,
        }
    }
}

/// Runs `hikyaku sftp`.
pub(crate) fn sftp(args: &SftpArgs, interrupt: &Interrupt) -> Result<Code> {
    hikyaku_shell::run(args, serve::available_memory(), interrupt).map(|outcome| match outcome {
        Outcome::Done => Code::Success,
        Outcome::Failed => Code::Failed,
    })
}

fn run<A: Aliased>(alias: Alias) -> Exit {
    let matches = alias.command().try_get_matches();
    let cli = match matches.and_then(|matches| A::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return explain_as(&error, ScpCode::Failed.into()),
    };
    let interrupt = Interrupt::default();
    if let Err(error) = start_logging(cli.says()) {
        failure(&error.into()).print();
        return ScpCode::Failed.into();
    }
    let code = match cli.run(&interrupt) {
        Ok(Code::Success) => ScpCode::Success,
        Ok(_) => ScpCode::Failed,
        Err(error) => {
            failure(&error).print();
            A::code(&error)
        }
    };
    interrupt.end_by_signal();
    code.into()
}
