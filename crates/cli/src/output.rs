//! Output of this crate. Failing to write standard output is an error, except that a reader may
//! close it (`| head`). Failing to write standard error is ignored, because there is nowhere to
//! report it.

use anyhow::{Context, Result};
use std::fmt::Display;
use std::io::{self, ErrorKind, Write, stderr, stdout};
use std::process::ExitCode;

/// Prints `text` on standard output.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<ExitCode> {
    let mut out = stdout().lock();
    result_of_printing(out.write_all(text.as_ref()).and_then(|()| out.flush()))
}

/// The result of a command whose output was `written` to standard output.
pub(crate) fn result_of_printing(written: io::Result<()>) -> Result<ExitCode> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        written => written.map(|()| ExitCode::SUCCESS).context("cannot write to standard output"),
    }
}

/// Prints `text` on standard error.
pub(crate) fn print_error(text: impl Display) {
    let _ = write!(stderr(), "{text}");
}
