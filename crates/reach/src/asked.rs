//! A command on another host that answers a question: its output is bounded, and so is its time.

use crate::child::ended;
use crate::destination::Destination;
use crate::ssh::{BadRemotePath, SshOptions, quoted};
use hikyaku_console::{Scope, Tone, say};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

/// Maximum length of an answer, with the output of start-up files of the shell before it.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// The user may have to type a password.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);
/// Time for the rest of standard error when the command has ended: a shared connection may keep it open.
const ERRORS_TIMEOUT: Duration = Duration::from_secs(1);

/// A command on another host.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// ssh and its arguments.
    words: Vec<OsString>,
    input: &'a [u8],
    errors: Errors,
}

/// The standard error of ssh and of the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errors {
    /// It is that of this process.
    Shown,
    /// It is part of the answer.
    Kept,
    /// It is discarded: the other host may write anything there.
    Dropped,
}

/// The output of a command on another host.
#[derive(Debug)]
pub struct Answer {
    /// Its standard output; start-up files of the shell may have written the first lines.
    pub text: Vec<u8>,
    /// Its standard error and that of ssh, if it is [`Errors::Kept`].
    pub errors: Vec<u8>,
    /// The exit code of ssh, which is that of the command.
    pub code: Option<i32>,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// ssh cannot be started.
    #[error("cannot start {program}")]
    Spawn {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The answer is too long.
    #[error("the answer is longer than {} KiB", ANSWER_BYTES_MAX >> 10)]
    TooLong,
    /// The command does not end in time.
    #[error("no answer within {} s", ANSWER_TIMEOUT.as_secs())]
    Late,
}

impl<'a> Question<'a> {
    /// `hikyaku VERB` at `host`, where `verb` is a few plain words. See [`SshOptions::start`].
    ///
    /// # Errors
    ///
    /// A shell would find a meaning in the path.
    pub fn to_hikyaku(
        ssh: &SshOptions,
        (host, path): (&Destination, Option<&str>),
        verb: &str,
    ) -> Result<Self, BadRemotePath> {
        let words = ssh.start(host, path, verb)?;
        Ok(Self { words, input: &[], errors: Errors::Dropped })
    }

    /// A command of plain words for the login shell at `host`.
    pub(crate) fn to_shell(ssh: &SshOptions, host: &Destination, command: &str) -> Self {
        Self { words: ssh.plain(host, command), input: &[], errors: Errors::Dropped }
    }

    /// Its standard input; none by default.
    #[must_use]
    pub fn with_input(self, input: &'a [u8]) -> Self {
        Self { input, ..self }
    }

    /// Its standard error; [`Errors::Dropped`] by default.
    #[must_use]
    pub fn with_errors(self, errors: Errors) -> Self {
        Self { errors, ..self }
    }

    /// Runs the command, and waits for its end, at most 180 s.
    ///
    /// # Errors
    ///
    /// See [`NoAnswer`]. An exit code is none.
    pub fn ask(&self, scope: &Scope) -> Result<Answer, NoAnswer> {
        let program = self.words.first().cloned().unwrap_or_default();
        let not_started =
            |source| NoAnswer::Spawn { program: program.to_string_lossy().into_owned(), source };
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        say(Tone::Detail, format_args!("asking: {}", words.join(" ")));
        let mut command = Command::new(&program);
        command.args(self.words.iter().skip(1)).stdout(Stdio::piped());
        command.stdin(if self.input.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stderr(match self.errors {
            Errors::Shown => Stdio::inherit(),
            Errors::Kept => Stdio::piped(),
            Errors::Dropped => Stdio::null(),
        });
        let (mut child, _asking) = scope.spawn(&mut command).map_err(not_started)?;
        if let Some(mut pipe) = child.stdin.take() {
            // If ssh has ended, its exit code is the better error.
            let _ = pipe.write_all(self.input);
        }
        let output = child.stdout.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into());
        let output = output.and_then(read).map_err(not_started)?;
        let errors = child.stderr.take().map(read).transpose().map_err(not_started)?;
        let text = output.recv_timeout(ANSWER_TIMEOUT);
        let is_cut = text.as_ref().map_or(true, |text| text.len() as u64 > ANSWER_BYTES_MAX);
        if is_cut {
            let _ = child.kill();
        }
        let code = ended(&mut child).and_then(|status| status.code());
        let errors = errors.and_then(|errors| errors.recv_timeout(ERRORS_TIMEOUT).ok());
        match text {
            Err(_) => Err(NoAnswer::Late),
            Ok(_) if is_cut => Err(NoAnswer::TooLong),
            Ok(text) => Ok(Answer { text, errors: errors.unwrap_or_default(), code }),
        }
    }
}

/// Reads in a thread until the end, or until there is more than an answer may have.
fn read(output: impl Read + Send + 'static) -> io::Result<Receiver<Vec<u8>>> {
    let (tell, told) = sync_channel(1);
    let listen = move || {
        let mut text = Vec::new();
        // The bytes before an error are the answer.
        let _ = output.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut text);
        let _ = tell.send(text);
    };
    thread::Builder::new().name("reach-answer".to_owned()).spawn(listen)?;
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(program: &str, input: &[u8], errors: Errors) -> Result<Answer, NoAnswer> {
        let words = ["sh", "-c", program].map(OsString::from).to_vec();
        Question { words, input, errors }.ask(&Scope::default())
    }

    #[test]
    fn a_command_gets_its_input_and_answers_with_its_output_and_code() {
        let answer = asked("cat; echo no >&2; exit 3", b"yes", Errors::Kept).unwrap();
        let Answer { text, errors, code } = answer;
        assert_eq!((&text[..], &errors[..], code), (&b"yes"[..], &b"no\n"[..], Some(3)));
        let answer = asked("echo no >&2; cat", b"", Errors::Dropped).unwrap();
        assert_eq!((&answer.text[..], &answer.errors[..]), (&b""[..], &b""[..]));
    }

    #[test]
    fn an_endless_answer_is_cut() {
        let error = asked("yes", b"", Errors::Dropped).unwrap_err();
        assert!(matches!(error, NoAnswer::TooLong), "{error}");
        let none =
            Question { words: vec!["/nowhere/ssh".into()], input: b"", errors: Errors::Shown };
        let error = none.ask(&Scope::default()).unwrap_err();
        assert!(error.to_string().contains("/nowhere/ssh"), "{error}");
    }
}
