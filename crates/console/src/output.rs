//! Standard output and standard error. Failing to write standard output is an error, except that a reader may close it
//! (`| head`). Failing to write standard error is ignored, because there is nowhere to report it.

use crate::noise::Noise;
use crate::paint::{Stream, Tone};
use anyhow::{Error, Result};
use hikyaku_fs::reworded;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write, stderr, stdout};

/// Prefix of a line with a remedy.
pub(crate) const REMEDY_PREFIX: &str = "try: ";

/// Prints `text` on standard output, all of it before this returns.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(text: impl AsRef<[u8]>) -> Result<()> {
    let mut out = stdout().lock();
    printed(out.write_all(text.as_ref()).and_then(|()| out.flush()))
}

/// Prints a line by which a command that goes on running tells where it can be found. Nobody wants it where standard output
/// was closed.
///
/// # Errors
/// Standard output is open, and cannot be written.
pub fn announce(text: impl AsRef<[u8]>) -> Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if is_closed(&error) => Ok(()),
        written => printed(written),
    }
}

/// The result of a command whose output was `written` to standard output.
///
/// # Errors
/// Standard output could not be written, for another reason than that its reader had closed it.
pub fn printed(written: io::Result<()>) -> Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(unwritten(error)),
        Ok(()) => Ok(()),
    }
}

/// What is said of an error of standard output.
pub fn unwritten(error: io::Error) -> Error {
    let cause = match is_closed(&error) {
        true => io::Error::new(error.kind(), "it is closed"),
        false => error,
    };
    Error::new(cause).context("cannot write to standard output")
}

/// Whether standard output was closed before the command began: a socket without another end stands in its place.
fn is_closed(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotConnected
}

/// Prints `text` on standard error.
pub fn print_error(text: impl Display) {
    let _ = write!(stderr(), "{text}");
}

/// Prints a message of the program on standard error, if the user wants those of this tone: its first line follows
/// `hikyaku: ` in the colour of `tone`. Words of the system in it are those of [`hikyaku_fs::words`].
pub fn say(tone: Tone, text: impl Display) {
    if Noise::chosen().has(tone) {
        print_error(message(Stream::Error, tone, text));
    }
}

/// The lines that [`say`] prints, for `stream`. The command after `try: ` has a colour of its own.
pub(crate) fn message(stream: Stream, tone: Tone, text: impl Display) -> String {
    let text = reworded(&text.to_string());
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let mut shown = format!("{} {first}\n", stream.paint(tone, "hikyaku:"));
    for line in lines {
        match line.strip_prefix(REMEDY_PREFIX) {
            Some(command) => {
                shown.extend([REMEDY_PREFIX, &stream.paint(Tone::Command, command)]);
            }
            None => shown.push_str(line),
        }
        shown.push('\n');
    }
    shown
}
