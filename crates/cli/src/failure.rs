//! An error as the user meets it: what happened, why, what to try, and a number for scripts.
//!
//! Below this crate errors are plain `anyhow` chains. Two things are read from them:
//! - a link whose text begins with `try: ` is a remedy and gets a line of its own;
//! - the first [`io::Error`] decides the exit code, see `docs/exit-codes.md`.

use std::fmt;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

/// The command line makes no sense.
pub(crate) const USAGE: u8 = 1;
/// It failed, and we cannot say whether it would fail again.
const FAILED: u8 = 2;
/// It failed for a reason that may pass.
const MAY_PASS: u8 = 5;
/// It will fail again unless something is changed.
const WILL_FAIL: u8 = 6;

const REMEDY: &str = "try: ";

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
        let texts = error.chain().map(ToString::to_string);
        let (mut remedies, mut causes): (Vec<_>, Vec<_>) =
            texts.partition(|text| text.starts_with(REMEDY));
        // A cause that its own effect has named already says nothing new.
        causes.dedup_by(|cause, effect| effect.contains(cause.as_str()));
        if remedies.is_empty() {
            remedies.extend(kind.and_then(usual_remedy));
        }
        Self { causes, remedies, code: kind.map_or(FAILED, code) }
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
        | ErrorKind::AddrNotAvailable
        | ErrorKind::Unsupported
        | ErrorKind::InvalidInput => WILL_FAIL,
        _ => FAILED,
    }
}

/// What helps most often, for errors whose origin had nothing better to say.
fn usual_remedy(kind: ErrorKind) -> Option<String> {
    let remedy = match kind {
        ErrorKind::PermissionDenied => "the same command as root (sudo)",
        ErrorKind::AddrInUse => "another port, or stop the program that has this one",
        _ => return None,
    };
    Some(format!("{REMEDY}{remedy}"))
}
