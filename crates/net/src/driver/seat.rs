//! The socket of a driver, among those of its port.

use hikyaku_udp::UdpSocket;
use std::ops::Deref;
use std::sync::Arc;

/// The socket of a driver. It keeps the others of its port open as well: the kernel would give the place of a closed one to
/// another socket.
pub(crate) struct Seat {
    sockets: Arc<[UdpSocket]>,
    at: usize,
}

impl Seat {
    /// A seat for each of the sockets of a port.
    pub(crate) fn all(sockets: Vec<UdpSocket>) -> Vec<Self> {
        let sockets: Arc<[UdpSocket]> = sockets.into();
        (0..sockets.len()).map(|at| Self { sockets: sockets.clone(), at }).collect()
    }
}

impl Deref for Seat {
    type Target = UdpSocket;

    fn deref(&self) -> &UdpSocket {
        &self.sockets[self.at]
    }
}
