//! The reasons of failed requests as those of a store.

use hikyaku_http::Fault;
use hikyaku_store::ErrorKind;

/// The reason of a failed operation on a file.
pub(crate) fn kind_of(fault: &Fault) -> ErrorKind {
    match fault {
        Fault::Status { code: 404 | 410, .. } => ErrorKind::NotFound,
        Fault::Status { code: 401 | 403 | 407, .. } | Fault::Proxy(401 | 403 | 407) => {
            ErrorKind::Denied
        }
        // A password must not be sent where others can read it.
        Fault::Weaker(_) => ErrorKind::Denied,
        Fault::Silent(_) | Fault::Slow(_) | Fault::Status { code: 408 | 504, .. } => {
            ErrorKind::TimedOut
        }
        Fault::Changed | Fault::Unrecognised | Fault::NoRanges => ErrorKind::Changed,
        Fault::Invalid(_) | Fault::Lie(_) | Fault::OtherFile(_) | Fault::Redirect(_) => {
            ErrorKind::Damaged
        }
        Fault::NoAddress { .. }
        | Fault::NotReached { .. }
        | Fault::Connection(_)
        | Fault::Closed
        | Fault::Tls { .. }
        | Fault::Authorities(_)
        | Fault::Unusable(_)
        | Fault::Request(_)
        | Fault::Proxy(_)
        | Fault::Status { .. }
        | Fault::Full
        | Fault::Stopped => ErrorKind::Unreachable,
    }
}
