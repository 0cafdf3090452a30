//! TCP's congestion control, chosen by name for each socket.

use crate::socket::socket;
use rustix::net::{AddressFamily, SocketFlags, sockopt};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};

/// A congestion control cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The kernel does not have it.
    #[error("the kernel has no TCP congestion control '{name}'; there are: {}", available.join(", "))]
    Unknown {
        /// The requested algorithm.
        name: String,
        /// The algorithms of the kernel (`tcp_available_congestion_control`).
        available: Vec<String>,
    },
    /// Only root may use it.
    #[error("the TCP congestion control '{name}' is only for root; allowed for all users: {}", allowed.join(", "))]
    Forbidden {
        /// The requested algorithm.
        name: String,
        /// The algorithms that every user may set (`tcp_allowed_congestion_control`).
        allowed: Vec<String>,
    },
    /// Another error of the kernel.
    #[error("cannot use the TCP congestion control '{name}'")]
    Io {
        /// The requested algorithm.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Sets the congestion control of a connection or listener (`TCP_CONGESTION`).
///
/// # Errors
/// The kernel does not have `name`, or allows it only for root.
pub fn set_control(socket: impl AsFd, name: &str) -> Result<(), ControlError> {
    sockopt::set_tcp_congestion(socket, name).map_err(|error| {
        let source = io::Error::from(error);
        let name = name.to_owned();
        match source.kind() {
            ErrorKind::NotFound => ControlError::Unknown { name, available: names("available") },
            ErrorKind::PermissionDenied => {
                ControlError::Forbidden { name, allowed: names("allowed") }
            }
            _ => ControlError::Io { name, source },
        }
    })
}

/// The congestion control of a connection.
///
/// # Errors
/// The kernel's, of getsockopt(2).
pub fn control_of(stream: &TcpStream) -> io::Result<String> {
    Ok(sockopt::tcp_congestion(stream)?)
}

/// The congestion control that a new connection of this network namespace has.
///
/// # Errors
/// There is no TCP socket to ask.
pub fn default_control() -> io::Result<String> {
    Ok(sockopt::tcp_congestion(&probe()?)?)
}

/// Whether connections of this process can have the congestion control `name`.
///
/// # Errors
/// As [`set_control`], or there is no TCP socket to ask.
pub fn check_control(name: &str) -> Result<(), ControlError> {
    let probe = probe().map_err(|source| ControlError::Io { name: name.to_owned(), source })?;
    set_control(&probe, name)
}

/// A socket that is never connected.
fn probe() -> io::Result<OwnedFd> {
    socket(AddressFamily::INET, SocketFlags::empty())
}

/// The names of one of the kernel's two lists; empty if it cannot be read.
fn names(list: &str) -> Vec<String> {
    let path = format!("/proc/sys/net/ipv4/tcp_{list}_congestion_control");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}
