//! Converts errors of the transport into the form that the command prints: a chain of messages with
//! an optional remedy, and an [`io::Error`] whose kind decides the exit code. The library names no
//! commands; the remedies are made here.

use crate::message::RefusalKind;
use anyhow::Error;
use hikyaku_console::{ExitCode, no_listener, with_remedy};
use hikyaku_fs::words;
use hikyaku_net::{BindError, CloseReason, ConnectError, EndpointError};
use hikyaku_reach::{ReachError, dial};
use std::io::{self, ErrorKind};

/// No socket could be opened.
pub(crate) fn of_endpoint(error: EndpointError) -> Error {
    let kind = error.kind();
    let remedy = match &error {
        EndpointError::Bind(BindError::PortTaken { address }) => Some(format!(
            "try: ss -ulpn 'sport = :{}' shows who has it; any other port will do",
            address.port()
        )),
        EndpointError::Bind(BindError::PortForbidden { .. }) => {
            Some("try: a port of 1024 or above".to_owned())
        }
        _ => None,
    };
    with_remedy(io::Error::new(kind, error).into(), remedy)
}

/// No connection could be made to `host`.
pub(crate) fn of_connect(host: &str, error: ConnectError) -> Error {
    if let ConnectError::NotFound { source, .. } = &error {
        return unknown_host(host, source);
    }
    let remedy = match &error {
        ConnectError::NoAnswer { port, .. } => Some(format!(
            "try: hikyaku perf -s on the host, and let UDP port {port} through every firewall \
             between the two"
        )),
        ConnectError::Untrusted(refusal) => Some(refusal.remedy()),
        _ => None,
    };
    let code = dial::of_connect(&error);
    with_remedy(code.error(error.to_string()).context(host.to_owned()), remedy)
}

/// The server was not reached through ssh.
pub(crate) fn of_reach(error: ReachError) -> Error {
    let remedy = match &error {
        ReachError::NoUdp { .. } => {
            error.remedy().map(|remedy| format!("{remedy}, or name others: --udp-ports FROM-TO"))
        }
        _ => error.remedy(),
    };
    match error {
        ReachError::NoUdp { .. } => {
            with_remedy(io::Error::new(ErrorKind::TimedOut, error).into(), remedy)
        }
        error => with_remedy(error.into(), remedy),
    }
}

/// No address was found for `host`.
pub(crate) fn unknown_host(host: &str, source: &io::Error) -> Error {
    let error = ExitCode::of_lookup(source).error(words(source)).context(host.to_owned());
    with_remedy(error, Some("the address in place of the name"))
}

/// `host` has addresses, but none of the demanded family.
pub(crate) fn no_address(host: &str, family: &str) -> Error {
    ExitCode::WillFail.error(format!("no {family} address")).context(host.to_owned())
}

/// The server's host answered with "port unreachable".
pub(crate) fn nobody_there(host: &str, port: u16) -> Error {
    let error = ExitCode::MayPass.error(no_listener(host, "UDP", port)).context(host.to_owned());
    with_remedy(error, Some("hikyaku perf -s on the host"))
}

/// The other end, and so the connection, was lost.
pub(crate) fn gone(text: String) -> Error {
    io::Error::new(ErrorKind::ConnectionAborted, text).into()
}

/// The connection was closed during a test.
pub(crate) fn of_close(reason: &CloseReason) -> Error {
    let kind = match reason {
        CloseReason::TimedOut | CloseReason::Unreachable => ErrorKind::TimedOut,
        _ => ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, reason.to_string()).into()
}

/// No thread could be started.
pub(crate) fn no_thread(error: io::Error) -> Error {
    let error = Error::from(io::Error::new(ErrorKind::ResourceBusy, words(&error)));
    let remedy = "raise the limit of processes of this user (ulimit -u)";
    with_remedy(error.context("cannot start a thread"), Some(remedy))
}

/// The server refuses the test, permanently or for now.
pub(crate) fn refused(reason: &str, lasts: RefusalKind) -> Error {
    let text = format!("the server refuses the test: {reason}");
    let kind = match lasts {
        RefusalKind::Always => ErrorKind::InvalidInput,
        RefusalKind::ForNow => ErrorKind::ResourceBusy,
    };
    io::Error::new(kind, text).into()
}

/// The connection was closed before the test began.
pub(crate) fn of_early_end(reason: &CloseReason) -> Error {
    let CloseReason::Peer { reason: text, .. } = reason else { return of_close(reason) };
    if text.is_empty() { of_close(reason) } else { refused(text, RefusalKind::ForNow) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_connecting_come_with_a_remedy() {
        let silent = ConnectError::NoAnswer { host: "far".to_owned(), port: 5201, seconds: 10 };
        let lookup = ConnectError::NotFound {
            host: "far".to_owned(),
            source: io::Error::new(ErrorKind::NotFound, "no such name"),
        };
        let cases = [
            (silent, ExitCode::MayPass, "far: no answer from far UDP port 5201", "hikyaku perf -s"),
            (lookup, ExitCode::WillFail, "far: no such name", "the address"),
        ];
        for (error, code, text, remedy) in cases {
            let error = of_connect("far", error);
            assert!(hikyaku_console::causes(&error).starts_with(text), "{error:#}");
            let is_remedy = |link: String| link.starts_with("try: ") && link.contains(remedy);
            assert!(error.chain().any(|link| is_remedy(link.to_string())), "{error:#}");
            assert_eq!(ExitCode::of(&error, &[]), code, "{error:#}");
        }
    }
}
