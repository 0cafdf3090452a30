//! Whether nobody listens at a UDP port. The kernel tells that of a connected socket only (ICMP "port unreachable", udp(7)), and the
//! transport's socket is none, because it has many peers.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What was found out of the port of a host, of which each address is asked twice.
#[derive(Clone, Default)]
pub(crate) struct ClosedPort(Arc<AtomicBool>);

/// The host's answer is waited for so long.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// The pause before an address is asked again: a port that a daemon is about to take is not closed.
const PAUSE: Duration = Duration::from_millis(300);

impl ClosedPort {
    /// Asks these addresses on a thread of its own, which ends within some seconds.
    pub(crate) fn ask(addresses: Vec<SocketAddr>) -> Self {
        let found = Self::default();
        let tells = found.clone();
        let ask = move || {
            let is_closed = |address: &SocketAddr| {
                let again = || {
                    thread::sleep(PAUSE);
                    is_refused(*address)
                };
                is_refused(*address) && again()
            };
            if !addresses.is_empty() && addresses.iter().all(is_closed) {
                tells.0.store(true, Ordering::Release);
            }
        };
        // Without a thread nothing is found out, and the port counts as silent.
        let _ = thread::Builder::new().name("port-probe".to_owned()).spawn(ask);
        found
    }

    /// Whether every address has told that nobody listens.
    pub(crate) fn is_found(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Whether a host answers a datagram with "port unreachable".
fn is_refused(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let ask = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_read_timeout(Some(ANSWER_TIME))?;
        socket.connect((ip, address.port()))?;
        // A daemon does not answer what is no packet of its protocol.
        socket.send(&[0])?;
        socket.recv(&mut [0; 1]).map(drop)
    };
    ask().is_err_and(|error: io::Error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_closed_if_nobody_listens_there() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        assert!(!is_refused(address));
        drop(socket);
        assert!(is_refused(address));
    }
}
