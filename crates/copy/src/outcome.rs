//! What a run's end means for a script: whether it is worth trying again (`docs/cli.md`).

use anyhow::Error;
use hikyaku_console::{ExitCode, Kept};
use hikyaku_fs::FsError;
use hikyaku_job::{exit_code_of, kind_of_fs_error};
use hikyaku_net::ConnectError;
use hikyaku_pair::{Fatal, LostConnection, PairError, Refused};
use hikyaku_reach::dial::DialError;
use hikyaku_reach::tcp::TcpError;
use hikyaku_reach::{ReachError, SshFailed};
use hikyaku_stores::LocationError;
use hikyaku_transfer::FailureKind;
use std::collections::BTreeSet;

/// The error of a copy between two programs, with its remedy in the chain. An error that a caller reacts to is a link of its own.
pub(crate) fn explained(error: PairError) -> Error {
    let (remedy, text) = (error.remedy(), error.to_string());
    let error = match error {
        PairError::Stopped(kept) => Error::new(kept),
        PairError::Lost(lost) => Error::new(lost),
        PairError::Refused(refused) => Error::new(refused),
        PairError::Reach(error) => Error::new(error),
        PairError::Fatal(fatal) => Error::new(fatal),
        PairError::File(error) => Error::new(error),
        other => Error::new(other),
    };
    match remedy {
        Some(remedy) => error.context(remedy).context(text),
        None => error,
    }
}

/// The kind of the failure of a file that has ended a copy.
pub(crate) fn kind_of_file(error: &Error) -> Option<FailureKind> {
    error.chain().find_map(|link| {
        let fatal = link.downcast_ref::<Fatal>().map(Fatal::kind);
        fatal.or_else(|| link.downcast_ref::<FsError>().map(kind_of_fs_error))
    })
}

/// The exit code of a copy that ended with this error, if it is known from it.
pub fn exit_code(error: &Error) -> Option<ExitCode> {
    let is_away = |link: &(dyn std::error::Error + 'static)| {
        link.is::<SshFailed>()
            || link.is::<LostConnection>()
            || link.is::<ConnectError>()
            || link.is::<TcpError>()
            || is_blocked(link)
    };
    if error.chain().any(|link| link.is::<LocationError>()) {
        return Some(ExitCode::Usage);
    }
    if let Some(error) = error.chain().find_map(|link| link.downcast_ref::<DialError>()) {
        return Some(error.code());
    }
    if error.chain().any(is_away) {
        return Some(ExitCode::MayPass);
    }
    if crate::sftp::commands(error).is_some() {
        return Some(ExitCode::WillFail);
    }
    let refused = error.chain().find_map(|link| link.downcast_ref::<Refused>());
    let kind = refused.map(|refused| refused.kind).or_else(|| kind_of_file(error))?;
    Some(exit_code_of(kind))
}

/// Whether the only carrier that may be used does not get through.
fn is_blocked(link: &(dyn std::error::Error + 'static)) -> bool {
    let error = link.downcast_ref::<ReachError>();
    matches!(error, Some(ReachError::NoUdp { .. } | ReachError::NoTcp { .. }))
}

/// The exit code where some files could not be copied, for these reasons.
pub(crate) fn code_of_failures(kinds: &BTreeSet<FailureKind>) -> ExitCode {
    ExitCode::of_pieces(kinds.iter().map(|kind| exit_code_of(*kind)))
}

/// An error of this kind, said in these words.
pub(crate) fn failed(kind: FailureKind, text: impl Into<String>) -> Error {
    Error::new(Fatal::of(kind, text.into()))
}

/// The error of a copy whose target may be the new name of a directory. If its user stopped it, the directory is in the way of
/// the same command.
pub(crate) fn of_new_tree(error: Error, is_new_tree: bool) -> Error {
    match is_new_tree && Kept::of(&error).is_some() {
        true => Kept::NewTree.into(),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn an_error_says_whether_to_try_again() {
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let cases = [
            (
                Error::new(SshFailed::Ended { host: "far".into() }).context("try: ssh far"),
                Some(ExitCode::MayPass),
            ),
            (Error::new(LostConnection).context("lost"), Some(ExitCode::MayPass)),
            (
                failed(FailureKind::NotFound, "x: no such file").context("y"),
                Some(ExitCode::WillFail),
            ),
            // The caller knows the system's own errors.
            (Error::new(denied).context("cannot write to x"), None),
            (failed(FailureKind::Damaged, "x"), Some(ExitCode::Failed)),
            (anyhow!("odd"), None),
        ];
        for (error, wanted) in cases {
            assert_eq!(exit_code(&error), wanted, "{error:#}");
        }
        let wrapped: anyhow::Result<()> = Err(failed(FailureKind::Busy, "x"));
        assert_eq!(exit_code(&wrapped.context("y").unwrap_err()), Some(ExitCode::MayPass));
    }

    #[test]
    fn failures_of_one_sort_say_so() {
        let of = |kinds: &[FailureKind]| code_of_failures(&kinds.iter().copied().collect());
        assert_eq!(of(&[FailureKind::Denied, FailureKind::NotFound]), ExitCode::WillFail);
        assert_eq!(of(&[FailureKind::Busy]), ExitCode::MayPass);
        assert_eq!(of(&[FailureKind::Busy, FailureKind::Denied]), ExitCode::Failed);
        assert_eq!(of(&[]), ExitCode::Failed);
    }
}
