//! Output of the subcommands. Failing to write standard output is an error, except that a reader
//! may close it (`| head`). Failing to write standard error is ignored, because there is nowhere to
//! report it.

use anyhow::{Context, Result};
use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};

/// Prints `text` on standard output.
pub(crate) fn print(text: impl Display) -> Result<()> {
    let mut out = stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Prints `text` on standard error.
pub(crate) fn print_error(text: impl Display) {
    let _ = write!(stderr(), "{text}");
}
