//! How a command ends.

use crate::http::fault::Fault;
use anyhow::Error;
use hikyaku_console::{ExitCode, Kept, with_remedy};

/// The file is not the one that was to be fetched.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Damaged(pub(crate) String);

/// The exit code of a command that ended with this error, if it is known from it.
pub fn exit_code(error: &Error) -> Option<ExitCode> {
    if error.chain().any(|link| link.is::<Damaged>()) {
        return Some(ExitCode::Failed);
    }
    let fault = error.chain().find_map(|link| link.downcast_ref::<Fault>())?;
    Some(match fault {
        fault if fault.may_pass() => ExitCode::MayPass,
        Fault::Changed | Fault::Unrecognised => ExitCode::MayPass,
        Fault::NoAddress { source, .. } => ExitCode::of_lookup(source),
        Fault::Tls { .. } | Fault::Authorities(_) => ExitCode::WillFail,
        Fault::Status { .. } | Fault::Proxy(_) | Fault::Redirect(_) => ExitCode::WillFail,
        Fault::Weaker(_) | Fault::NotReached { .. } => ExitCode::WillFail,
        Fault::Unusable(_) => ExitCode::WillFail,
        _ => ExitCode::Failed,
    })
}

/// The error of a command for a fault of a server.
pub(crate) fn error_of(fault: Fault) -> Error {
    let remedy = fault.remedy();
    match fault {
        Fault::Stopped => Kept::Nothing.into(),
        fault => with_remedy(fault.into(), remedy),
    }
}
