//! Converts an error into what the user sees: what happened, why, what to try, and an exit code.
//!
//! The other crates return plain `anyhow` chains. Two things are taken from them:
//! - A message that begins with `try: ` is a remedy and is printed on a line of its own.
//! - The first [`io::Error`], or a [`CannotRun`], decides the exit code; see `docs/exit-codes.md`.

use hikyaku_fs::brief;
use hikyaku_lab::CannotRun;
use std::fmt;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

/// The command line is invalid.
pub(crate) const USAGE: u8 = 1;
/// The command failed; whether it would fail again is unknown.
const FAILED: u8 = 2;
/// The command failed for a reason that may pass.
const MAY_PASS: u8 = 5;
/// The command will fail again unless something is changed.
const WILL_FAIL: u8 = 6;

/// Prefix of a message that is a remedy.
const REMEDY_PREFIX: &str = "try: ";

/// What is printed and returned when a command fails.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    causes: Vec<String>,
    remedies: Vec<String>,
    code: u8,
}

impl From<&anyhow::Error> for Failure {
    fn from(error: &anyhow::Error) -> Self {
        let kind = error.chain().find_map(|link| link.downcast_ref::<io::Error>());
        let kind = kind.map(io::Error::kind);
        // Parts of the text may come from the other end, so control characters are removed and the
        // length is limited.
        let texts = error.chain().map(|link| brief(&link.to_string()));
        let (mut remedies, mut causes): (Vec<_>, Vec<_>) =
            texts.partition(|text| text.starts_with(REMEDY_PREFIX));
        // A cause that is contained in its effect adds nothing.
        causes.dedup_by(|cause, effect| effect.contains(cause.as_str()));
        if remedies.is_empty() {
            remedies.extend(kind.and_then(default_remedy));
        }
        let cannot_run = error.chain().find_map(|link| link.downcast_ref::<CannotRun>());
        let code = match cannot_run {
            Some(error) => error.exit_code(),
            None => hikyaku_copy::exit_code(error).or_else(|| kind.map(code)).unwrap_or(FAILED),
        };
        Self { causes, remedies, code }
    }
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "hikyaku: {}", self.causes.join(": "))?;
        self.remedies.iter().try_for_each(|remedy| writeln!(f, "{remedy}"))
    }
}

fn code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::TimedOut
        | ErrorKind::ResourceBusy
        | ErrorKind::AddrInUse => MAY_PASS,
        ErrorKind::PermissionDenied
        | ErrorKind::NotFound
        | ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::AddrNotAvailable
        | ErrorKind::Unsupported
        | ErrorKind::InvalidInput => WILL_FAIL,
        _ => FAILED,
    }
}

/// The most likely remedy, for errors that have none of their own.
fn default_remedy(kind: ErrorKind) -> Option<String> {
    let remedy = match kind {
        ErrorKind::PermissionDenied => "the same command as root (sudo)",
        ErrorKind::AddrInUse => "another port, or stop the program that uses this one",
        _ => return None,
    };
    Some(format!("{REMEDY_PREFIX}{remedy}"))
}
