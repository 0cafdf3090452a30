//! A command at the far side that answers a question: what it prints is bounded, and so is its time.

use crate::child::ended;
use hikyaku_console::Scope;
use std::ffi::OsString;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// The most that an answer may have, with what start-up files of the shell say before it.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// A person may have to type a password.
const PATIENCE: Duration = Duration::from_secs(180);

/// What a command at the far side has printed.
pub(super) struct Answer {
    /// Its standard output.
    pub(super) text: Vec<u8>,
    /// The exit code of ssh, which is the command's.
    pub(super) code: Option<i32>,
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
    /// The answer does not end.
    #[error("it says more than {} KiB", ANSWER_BYTES_MAX >> 10)]
    TooLong,
    /// Nothing ended in time.
    #[error("it has not answered within {} s", PATIENCE.as_secs())]
    Late,
}

/// Runs `words`, which begin with ssh, and hears what they print. What goes to standard error is not shown: the far side
/// may write anything there.
pub(super) fn ask(words: &[OsString], scope: &Scope) -> Result<Answer, NoAnswer> {
    let program = words.first().cloned().unwrap_or_default();
    let not_started =
        |source| NoAnswer::Spawn { program: program.to_string_lossy().into_owned(), source };
    let mut command = Command::new(&program);
    command.args(words.iter().skip(1)).stdin(Stdio::null()).stderr(Stdio::null());
    let spawned = scope.spawn(command.stdout(Stdio::piped()));
    let (mut child, _asking) = spawned.map_err(not_started)?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe);
    let output = output.map_err(|kind| not_started(kind.into()))?;
    let (tell, told) = sync_channel(1);
    let listen = move || {
        let mut text = Vec::new();
        // What has come before an error is the answer.
        let _ = output.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut text);
        let _ = tell.send(text);
    };
    let listener = thread::Builder::new().name("reach-answer".to_owned()).spawn(listen);
    listener.map_err(not_started)?;
    let text = told.recv_timeout(PATIENCE);
    let is_cut = text.as_ref().map_or(true, |text| text.len() as u64 > ANSWER_BYTES_MAX);
    if is_cut {
        let _ = child.kill();
    }
    let code = ended(&mut child).and_then(|status| status.code());
    match text {
        Err(_) => Err(NoAnswer::Late),
        Ok(_) if is_cut => Err(NoAnswer::TooLong),
        Ok(text) => Ok(Answer { text, code }),
    }
}
