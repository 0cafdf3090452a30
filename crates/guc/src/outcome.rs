//! How a command ends.

use anyhow::Error;
use hikyaku_console::{ExitCode, misuse};
use hikyaku_fs::{CHANGED, Shown};
use hikyaku_gridftp::{CredentialsError, FtpError};

/// A signal ended the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Interrupted {
    /// Chunks of the file that was under way are kept.
    #[error("interrupted; the same command goes on with what is missing of the unfinished file")]
    GoesOn,
    /// No file was under way, or nothing of it is kept.
    #[error("interrupted; nothing of an unfinished file is kept")]
    BeginsAnew,
}

/// Somebody has written to a source while it was copied. Its name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}: {CHANGED}")]
pub(crate) struct Changed(String);

impl Changed {
    pub(crate) fn new(path: &[u8]) -> Self {
        Self(Shown::new(path).to_string())
    }
}

/// What was asked for cannot be done, now or later.
pub(crate) fn lasting(text: impl Into<String>) -> Error {
    ExitCode::WillFail.error(text)
}

/// `-off` and `-len` for what is not one file.
pub(crate) fn part_of_several() -> Error {
    misuse("-off and -len are for one file", "without them, or the URL of that file")
}

/// The exit code of a command that ended with this error, if it is known from it.
pub fn exit_code(error: &Error) -> Option<ExitCode> {
    if error.chain().any(|link| link.is::<CredentialsError>()) {
        return Some(ExitCode::WillFail);
    }
    if error.chain().any(|link| link.is::<Changed>()) {
        return Some(ExitCode::MayPass);
    }
    let of_server = error.chain().find_map(|link| link.downcast_ref::<FtpError>())?;
    Some(match of_server {
        // The error of a file here says more.
        FtpError::Local(_) => return None,
        error if error.may_pass() => ExitCode::MayPass,
        FtpError::NotReached(_) => ExitCode::WillFail,
        FtpError::Refused { .. } | FtpError::Lacks(_) | FtpError::BadPath => ExitCode::WillFail,
        FtpError::LosesName { .. } | FtpError::Connect { .. } => ExitCode::WillFail,
        FtpError::Forbidden { .. } => ExitCode::WillFail,
        FtpError::Stranger { .. } | FtpError::Elsewhere { .. } => ExitCode::WillFail,
        FtpError::NoAddress { .. } | FtpError::Tls(_) | FtpError::Unguarded => ExitCode::WillFail,
        _ => ExitCode::Failed,
    })
}

/// The error of a file that was not completed, with the truth on what is kept of it.
pub(crate) fn of_unfinished(error: Error, is_kept: bool) -> Error {
    match error.is::<Interrupted>() && is_kept {
        true => Interrupted::GoesOn.into(),
        false => error,
    }
}

/// What a user can do about an error of a server.
pub(crate) fn remedy(error: &FtpError) -> Option<&'static str> {
    match error {
        error if error.is_port_closed() => Some("check the address: no program listens there"),
        FtpError::NotReached(_) => {
            Some("allow TCP connections from the server to this host in every firewall between")
        }
        FtpError::Stranger { .. }
        | FtpError::Elsewhere { .. }
        | FtpError::Connect { told: Some(_), .. } => {
            Some("--trust-pasv, if that host belongs to the server")
        }
        FtpError::LosesName { .. } => {
            Some("another name, or a way that keeps it: hikyaku cp, where the host has ssh")
        }
        FtpError::Unguarded => {
            Some("-nodcau, if data connections may be neither authenticated nor encrypted")
        }
        FtpError::Refused { code: 530, .. } => {
            Some("another user name or password in the URL: ftp://USER:PASSWORD@HOST/PATH")
        }
        _ => None,
    }
}
