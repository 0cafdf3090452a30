//! Standard output and standard error. Failing to write standard output is an error, except that a reader may close it
//! (`| head`). Failing to write standard error is ignored, because there is nowhere to report it.

use anyhow::{Context, Result};
use std::fmt::Display;
use std::io::{self, ErrorKind, Write, stderr, stdout};

/// Prints `text` on standard output, all of it before this returns.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(text: impl AsRef<[u8]>) -> Result<()> {
    let mut out = stdout().lock();
    printed(out.write_all(text.as_ref()).and_then(|()| out.flush()))
}

/// The result of a command whose output was `written` to standard output.
///
/// # Errors
/// Standard output could not be written, for another reason than that its reader had closed it.
pub fn printed(written: io::Result<()>) -> Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Prints `text` on standard error.
pub fn print_error(text: impl Display) {
    let _ = write!(stderr(), "{text}");
}
