//! What a test reports of the UDP socket that it uses.

use hikyaku_net::{Endpoint, Granted};
use std::net::SocketAddr;

/// Figures of a socket, which do not change while it is open.
pub(crate) struct Socket {
    pub(crate) local: SocketAddr,
    pub(crate) granted: Granted,
    /// A command that would enlarge its buffers, if the kernel granted less than was asked for.
    pub(crate) advice: Option<String>,
}

impl Socket {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        Self {
            local: endpoint.local_addr(),
            granted: endpoint.granted(),
            advice: endpoint.advice().map(str::to_owned),
        }
    }
}
