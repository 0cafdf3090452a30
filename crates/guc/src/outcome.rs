//! How a command ends.

use anyhow::Error;
use hikyaku_console::{Counts, ExitCode, Kept, misuse, no_listener, with_remedy};
use hikyaku_fs::{CHANGED, Shown};
use hikyaku_gridftp::{CredentialsError, FtpError, Server};
use hikyaku_store_ftp::Parts;

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
        FtpError::Refused { .. } | FtpError::Lacks(_) | FtpError::PlainFtp | FtpError::BadPath => {
            ExitCode::WillFail
        }
        FtpError::LosesName { .. } | FtpError::Connect { .. } => ExitCode::WillFail,
        FtpError::Forbidden { .. } => ExitCode::WillFail,
        FtpError::Stranger { .. } | FtpError::Elsewhere { .. } => ExitCode::WillFail,
        FtpError::NoAddress { source: Some(source), .. } => ExitCode::of_lookup(source),
        FtpError::NoAddress { .. } | FtpError::Tls(_) | FtpError::Unguarded => ExitCode::WillFail,
        _ => ExitCode::Failed,
    })
}

/// The error of a file that was not completed, with the truth on what is kept of it.
pub(crate) fn of_unfinished(error: Error, is_kept: bool) -> Error {
    match Kept::of(&error).is_some() && is_kept {
        true => Kept::Everything.into(),
        false => error,
    }
}

/// The error of a command that has completed this number of files, with the truth on what the same command does if its user
/// stopped it. `record` knows the complete files of a tree.
pub(crate) fn of_several(error: Error, counts: &Counts, record: Record) -> Error {
    let of = counts.is_counted.then_some(counts.total_files);
    match (Kept::of(&error), record) {
        (None, _) => error,
        (Some(_), Record::None) if counts.files > 0 => Kept::Unrecorded.into(),
        (Some(Kept::Nothing), _) => Kept::whole_files(counts.files, of).into(),
        (Some(kept), _) => kept.into(),
    }
}

/// Whether complete files are recorded, so that the same command leaves them out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Record {
    Kept,
    None,
}

/// An error of this server, with its host and port.
pub(crate) fn of_server(server: &Server, error: FtpError) -> Error {
    let Server { host, port, .. } = server;
    let error = match error {
        FtpError::Connect { told: None, source, .. } if source.is_refusal() => {
            ExitCode::MayPass.error(no_listener(host, "TCP", *port))
        }
        error => error.into(),
    };
    error.context(format!("{host}:{port}"))
}

/// An error of a server, with its remedy. The session has asked for files in these parts.
pub(crate) fn explained(server: &Server, parts: Parts, error: FtpError) -> Error {
    let of_stripes = match (&error, parts) {
        (FtpError::Lie(_), Parts::Whole) => {
            Some("without -stripe: some servers' data nodes send whole files only")
        }
        _ => None,
    };
    let remedy = remedy(&error).or(of_stripes);
    with_remedy(of_server(server, error), remedy)
}

/// What a user can do about an error of a server.
pub(crate) fn remedy(error: &FtpError) -> Option<&'static str> {
    match error {
        FtpError::NotReached(_) => {
            Some("allow TCP connections from the server to this host in every firewall between")
        }
        FtpError::Stranger { .. }
        | FtpError::Elsewhere { .. }
        | FtpError::Connect { told: Some(_), .. } => {
            Some("--trust-pasv, if that host belongs to the server")
        }
        FtpError::PlainFtp => Some("two copies, the first one to this host"),
        FtpError::LosesName { .. } => {
            Some("another name, or a way that keeps it: hikyaku cp, where the host has ssh")
        }
        FtpError::Unguarded => {
            Some("-nodcau, if data connections may be neither authenticated nor encrypted")
        }
        FtpError::Refused { command, .. } if command == "RNFR" || command == "RNTO" => {
            Some("--inplace, if the server does not let files be renamed")
        }
        FtpError::Refused { code: 530, .. } => {
            Some("another user name or password in the URL: ftp://USER:PASSWORD@HOST/PATH")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_after_a_signal_depend_on_complete_files_and_on_their_record() {
        let counts =
            |files| Counts { files, total_files: 5, is_counted: true, ..Counts::default() };
        let after = |kept: Kept, files, record| {
            Kept::of(&of_several(Error::from(kept).context("run7/f1"), &counts(files), record))
        };
        let some = Kept::WholeFiles { files: 2, of: Some(5) };
        for (kept, files, record, wanted) in [
            (Kept::Nothing, 0, Record::None, Kept::Nothing),
            (Kept::Nothing, 0, Record::Kept, Kept::Nothing),
            (Kept::Nothing, 2, Record::Kept, some),
            (Kept::Nothing, 2, Record::None, Kept::Unrecorded),
            (Kept::Everything, 2, Record::Kept, Kept::Everything),
            (Kept::Everything, 0, Record::None, Kept::Everything),
            (Kept::Everything, 2, Record::None, Kept::Unrecorded),
        ] {
            assert_eq!(after(kept, files, record), Some(wanted), "{kept:?} {files} {record:?}");
        }
        let other = of_several(lasting("run7/f1 is away"), &counts(2), Record::None);
        assert_eq!((Kept::of(&other), other.to_string()), (None, "run7/f1 is away".to_owned()));
    }
}
