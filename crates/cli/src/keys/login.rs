//! A question to the hikyaku of another host, through ssh.

use anyhow::{Error, Result};
use clap::Args;
use hikyaku_console::{ExitCode, NoiseArgs, Scope, with_remedy};
use hikyaku_reach::{
    Answer, Destination, Errors, FamilyArgs, Letters, NO_CONNECTION, NOT_THERE, NoAnswer, Question,
    SshArgs, SshFailed, SshOptions,
};

/// How ssh logs in.
#[derive(Clone, Debug, Args)]
#[command(mut_args(|arg| Letters::Scp.added(arg)))]
pub(super) struct Login {
    /// Path of hikyaku on the servers, if a shell there does not find it
    #[arg(long, value_name = "PATH")]
    remote_path: Option<String>,
    #[command(flatten)]
    ssh: SshArgs,
    #[command(flatten)]
    family: FamilyArgs,
    /// The messages on standard error.
    #[command(flatten)]
    pub(super) noise: NoiseArgs,
}

/// Whether ssh may ask the user for a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Prompts {
    Allowed,
    /// Several logins run at the same time, so their questions would mix.
    Refused,
}

/// Exit codes of shells that find no program, or may not execute it.
const NO_PROGRAM: [i32; 3] = [NOT_THERE, 126, 127];

impl Login {
    /// Runs `hikyaku VERB` on a host with this standard input.
    ///
    /// # Errors
    ///
    /// ssh does not start, does not log in or does not end, or the answer is too long.
    pub(super) fn ask(
        &self,
        (host, verb): (&Destination, &str),
        input: &[u8],
        prompts: Prompts,
    ) -> Result<Answer> {
        let (ssh, path) = (self.ssh(prompts), self.remote_path.as_deref());
        let question = Question::to_hikyaku(&ssh, (host, path), verb)?;
        let question = question.with_input(input).with_errors(Errors::Shown);
        match question.ask(&Scope::default()) {
            Ok(Answer { code: Some(NO_CONNECTION), .. }) => {
                let error = Error::new(SshFailed::Ended { host: host.host.clone() });
                Err(self.by_hand(error, host))
            }
            Ok(answer) => Ok(answer),
            Err(error @ NoAnswer::Spawn { .. }) => Err(error.into()),
            Err(error @ NoAnswer::Late) => Err(ExitCode::MayPass.error(format!("{host}: {error}"))),
            Err(error @ NoAnswer::TooLong) => {
                Err(ExitCode::WillFail.error(format!("{host}: {error}")))
            }
        }
    }

    /// The error of a host where the program was not found or cannot be executed.
    pub(super) fn missing(host: &Destination, answer: &Answer) -> Option<Error> {
        answer.code.filter(|code| NO_PROGRAM.contains(code))?;
        let error = ExitCode::WillFail.error(format!("{host}: hikyaku is not installed"));
        Some(with_remedy(error, Some(format!("hikyaku far install {host}, or --remote-path PATH"))))
    }

    /// The error with the ssh command that the user can try.
    pub(super) fn by_hand(&self, error: Error, host: &Destination) -> Error {
        with_remedy(error, Some(self.ssh(Prompts::Allowed).by_hand(host)))
    }

    fn ssh(&self, prompts: Prompts) -> SshOptions {
        let family = self.family.family();
        SshOptions { batch: prompts == Prompts::Refused, family, ..self.ssh.options() }
    }
}
