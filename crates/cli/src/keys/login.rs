//! A question to the hikyaku of another host, through ssh.

use anyhow::{Context, Error, Result};
use clap::Args;
use hikyaku_console::{ExitCode, with_remedy};
use hikyaku_reach::{
    Destination, Letters, NO_CONNECTION, NOT_THERE, SshArgs, SshFailed, SshOptions, ended,
};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// How ssh logs in.
#[derive(Clone, Debug, Args)]
#[command(mut_args(|arg| Letters::Scp.added(arg)))]
pub(super) struct Login {
    /// Path of hikyaku on the servers, if a shell there does not find it
    #[arg(long, value_name = "PATH")]
    remote_path: Option<String>,
    #[command(flatten)]
    ssh: SshArgs,
}

/// Whether ssh may ask the user for a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Prompts {
    Allowed,
    /// Several logins run at the same time, so their questions would mix.
    Refused,
}

/// The output of a program on another host.
#[derive(Debug)]
pub(super) struct Answer {
    /// At most [`ANSWER_BYTES_MAX`]; start-up files of the shell may have written the first lines.
    pub(super) text: String,
    /// The exit code of ssh, which is that of the program.
    pub(super) code: Option<i32>,
}

/// The most bytes that are read of an answer.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// A person may have to type a password.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);
/// Exit codes of shells that find no program, or may not execute it.
const NO_PROGRAM: [i32; 3] = [NOT_THERE, 126, 127];

impl Login {
    /// Runs `hikyaku VERB` on a host with this standard input.
    ///
    /// # Errors
    ///
    /// ssh does not start, does not log in or does not end.
    pub(super) fn ask(
        &self,
        (host, verb): (&Destination, &str),
        input: &[u8],
        prompts: Prompts,
    ) -> Result<Answer> {
        let words = self.ssh(prompts).start(host, self.remote_path.as_deref(), verb)?;
        let (program, rest) = words.split_first().context("no program")?;
        let mut command = Command::new(program);
        command.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped());
        let name = || format!("cannot start {}", Path::new(program).display());
        let mut child = command.spawn().with_context(name)?;
        if let Some(mut pipe) = child.stdin.take() {
            // If ssh has ended, its exit code is the better error.
            let _ = pipe.write_all(input);
        }
        let output = child.stdout.take().context("ssh has no output")?;
        let (tell, told) = sync_channel(1);
        let read = move || {
            let mut bytes = Vec::new();
            // The bytes before an error are the answer.
            let _ = output.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes);
            let _ = tell.send(bytes);
        };
        thread::Builder::new().name("keys-answer".to_owned()).spawn(read)?;
        let Ok(bytes) = told.recv_timeout(ANSWER_TIMEOUT) else {
            let _ = child.kill();
            let _ = child.wait();
            let seconds = ANSWER_TIMEOUT.as_secs();
            return Err(ExitCode::MayPass.error(format!("{host}: no answer within {seconds} s")));
        };
        let code = ended(&mut child).and_then(|status| status.code());
        if code == Some(NO_CONNECTION) {
            let error = Error::new(SshFailed::Ended { host: host.host.clone() });
            return Err(self.by_hand(error, host));
        }
        Ok(Answer { text: String::from_utf8_lossy(&bytes).into_owned(), code })
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
        SshOptions { batch: prompts == Prompts::Refused, ..self.ssh.options() }
    }
}
