//! Errors of the transport in the form in which the command prints them: a chain, with a remedy,
//! and with an [`io::Error`] in it whose kind decides the exit code.

use anyhow::Error;
use hikyaku_net::{CloseReason, ConnectError, EndpointError};
use hikyaku_udp::BindError;
use std::io::{self, ErrorKind};

/// There is no socket.
pub(crate) fn of_endpoint(error: EndpointError) -> Error {
    let kind = match &error {
        EndpointError::Bind(BindError::PortTaken { .. }) => ErrorKind::AddrInUse,
        EndpointError::Bind(BindError::PortForbidden { .. }) => ErrorKind::PermissionDenied,
        EndpointError::Bind(
            BindError::AddressUnavailable { .. } | BindError::FamilyUnsupported { .. },
        ) => ErrorKind::AddrNotAvailable,
        _ => ErrorKind::Other,
    };
    let remedy = error.remedy();
    with_remedy(io::Error::new(kind, error).into(), remedy)
}

/// There is no connection.
pub(crate) fn of_connect(error: ConnectError) -> Error {
    let kind = match &error {
        ConnectError::NoAnswer { .. } => ErrorKind::TimedOut,
        ConnectError::Unreachable { .. } => ErrorKind::NetworkUnreachable,
        ConnectError::Refused { .. } => ErrorKind::ConnectionRefused,
        ConnectError::NotFound { .. } => ErrorKind::HostUnreachable,
        ConnectError::WrongFamily { .. } => ErrorKind::AddrNotAvailable,
        ConnectError::Untrusted { .. } => ErrorKind::PermissionDenied,
        ConnectError::Version { .. } => ErrorKind::Unsupported,
        ConnectError::Name(_) => ErrorKind::InvalidInput,
        _ => ErrorKind::Other,
    };
    let remedy = match &error {
        ConnectError::NoAnswer { port, .. } => Some(format!(
            "try: `hikyaku perf -s` at the other end, and let UDP port {port} through every \
             firewall between the two"
        )),
        other => other.remedy().map(str::to_owned),
    };
    with_remedy(io::Error::new(kind, error).into(), remedy)
}

/// The connection ended in the middle of a test.
pub(crate) fn of_close(reason: &CloseReason) -> Error {
    let kind = match reason {
        CloseReason::TimedOut | CloseReason::Unreachable => ErrorKind::TimedOut,
        _ => ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, reason.to_string()).into()
}

/// The server does not want this test.
pub(crate) fn refused(reason: &str) -> Error {
    let text = format!("the server refuses the test: {reason}");
    io::Error::new(ErrorKind::InvalidInput, text).into()
}

/// The chain in one line, without what to do about it.
pub(crate) fn line(error: &Error) -> String {
    let mut causes: Vec<String> =
        error.chain().map(ToString::to_string).filter(|text| !text.starts_with("try: ")).collect();
    causes.dedup_by(|cause, effect| effect.contains(cause.as_str()));
    causes.join(": ")
}

/// `error` with something to do about it.
pub(crate) fn with_remedy(error: Error, remedy: Option<String>) -> Error {
    match remedy {
        // The outermost link is what happened.
        Some(remedy) => {
            let text = error.to_string();
            error.context(remedy).context(text)
        }
        None => error,
    }
}
