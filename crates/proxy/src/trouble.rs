//! Errors in the form that the command prints: a chain of messages with an optional remedy, and an [`io::Error`] whose
//! kind decides the exit code.

use crate::args::Remote;
use anyhow::Error;
use hikyaku_console::with_remedy;
use hikyaku_net::CloseReason;
use hikyaku_reach::daemon::NoService;
use hikyaku_reach::dial::{Address, DialError};
use hikyaku_reach::{Fate, Gone, ReachError};
use std::io::{self, ErrorKind};

/// The far side was not reached.
pub(crate) fn of_reach(error: ReachError) -> Error {
    let remedy = error.remedy();
    let kind = match &error {
        ReachError::NoConnection { .. } | ReachError::Silent { .. } => Some(ErrorKind::TimedOut),
        ReachError::NotThere { .. } => None,
        _ => None,
    };
    match kind {
        Some(kind) => with_remedy(io::Error::new(kind, error).into(), remedy),
        None => with_remedy(error.into(), remedy),
    }
}

/// A daemon was not reached, or forwards nothing. `key` is that of this user.
pub(crate) fn of_dial(address: &Address, error: DialError, key: &str) -> Error {
    match &error {
        DialError::Service(NoService::Refused(_)) => {
            let remedy =
                "hikyaku serve --allow HOST:PORTS on the host, and a key without no-forward";
            error.at(address, remedy.to_owned())
        }
        _ => error.explained(address, key),
    }
}

/// A port cannot be listened on.
pub(crate) fn of_bind(what: &str, error: io::Error) -> Error {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => {
            Some("try: another port, or 0 for any free one; ss -tlpn shows who has it".to_owned())
        }
        ErrorKind::PermissionDenied => Some("try: a port of 1024 or above".to_owned()),
        _ => None,
    };
    with_remedy(Error::from(error).context(format!("{what}: cannot listen")), remedy)
}

/// The far side does not listen (`-R`).
pub(crate) fn of_remote(host: &str, forward: &Remote, why: &str) -> Error {
    let text = format!("{host} does not listen on {}: {why}", forward.place);
    let remedy =
        "try: another port, or loopback; for a daemon, listen=ADDRESS:PORTS in its list of keys";
    // Another attempt changes nothing, unless something changes there.
    let error = io::Error::new(ErrorKind::PermissionDenied, text);
    with_remedy(error.into(), Some(remedy.to_owned()))
}

/// The connection to the far side is over.
pub(crate) fn of_close(host: &str, reason: &CloseReason, fate: &Fate) -> Error {
    let kind = match reason {
        CloseReason::TimedOut | CloseReason::Unreachable => ErrorKind::TimedOut,
        _ => ErrorKind::ConnectionAborted,
    };
    let text = match fate.get() {
        Some(Gone::Ended(who)) => format!("{who} has ended"),
        Some(Gone::Lost) => format!("nothing is heard of {host} any more"),
        None => format!("the connection to {host} is over: {reason}"),
    };
    let remedy = "try: the same command again; all carried connections were reset";
    with_remedy(io::Error::new(kind, text).into(), Some(remedy.to_owned()))
}
