//! How a command ends.

use anyhow::{Error, Result};
use hikyaku_console::{ExitCode, Kept, with_remedy};
use hikyaku_http::{Fault, Netrc};
use std::path::Path;

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
    let remedy = remedy(&fault);
    match fault {
        Fault::Stopped => Kept::Nothing.into(),
        fault => with_remedy(fault.into(), remedy),
    }
}

/// The remedy for a fault.
const fn remedy(fault: &Fault) -> Option<&'static str> {
    match fault {
        Fault::Status { code: 401 | 403, .. } => Some(
            "-u USER:PASSWORD, a line in ~/.netrc with --netrc, -H 'Authorization: ...', or --cookies FILE",
        ),
        Fault::Status { code: 407, .. } | Fault::Proxy(407) => {
            Some("--proxy http://USER:PASSWORD@HOST:PORT")
        }
        fault if fault.is_certificate() => {
            Some("--ca FILE with the certificate of the authority that the server uses")
        }
        Fault::Unusable(_) => Some("--proxy http://HOST:PORT, or no_proxy with the host's name"),
        _ => None,
    }
}

/// The logins of a file.
///
/// # Errors
/// The file cannot be used.
pub(crate) fn logins(path: &Path) -> Result<Netrc> {
    Netrc::read(path).map_err(|error| {
        let remedy = error.remedy();
        with_remedy(error.into(), remedy)
    })
}
