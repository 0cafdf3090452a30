//! Detects a port without a listener: a probe datagram from a separate socket, to which the host of
//! a closed UDP port answers with ICMP "port unreachable".
//!
//! Anybody who knows the ports of a flow can forge such an answer. Therefore the probe never uses
//! the ports of the test's flow. Each probe is sent from a fresh ephemeral port, and the server
//! counts as gone only after the second ICMP error with no packet received from the server in
//! between. A listening server does not answer the probe. A firewall that drops new flows silently
//! makes the probe inconclusive, and the test continues.

use crate::session::Event;
use crate::wait::{Cut, Stop, Worker, wait};
use hikyaku_net::Connection;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The result of probing before a connection exists.
#[derive(Clone, Default)]
pub(crate) struct ClosedPort(Arc<AtomicBool>);

/// Payload of a probe. No listener recognizes it as a packet of the protocol, so none answers.
const PROBE: &[u8] = &[0];
/// How long to wait for an ICMP error, which takes one round trip.
const ICMP_TIMEOUT: Duration = Duration::from_secs(1);
/// Receive timeout of the probe's socket, after which the stop flag is checked.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Time between two probes. It gives a server that is started together with its client time to
/// bind.
const PROBE_INTERVAL: Duration = Duration::from_millis(300);
/// The server is probed when it has been silent for this long.
const SILENCE_BEFORE_PROBE: Duration = Duration::from_millis(800);
/// Interval at which a running test checks whether the server has been silent.
const SILENCE_CHECK_INTERVAL: Duration = Duration::from_millis(200);
pub(crate) const SERVER_GONE: &str =
    "the server has ended: its host reports that nobody listens at the port";

impl ClosedPort {
    /// Whether every address reported a closed port.
    pub(crate) fn is_found(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Probes all `addresses`. If all of them report a closed port, sets `closed_port` and `stop` and
/// unparks the thread `who`.
pub(crate) fn before(
    addresses: Vec<SocketAddr>,
    local: Option<IpAddr>,
    closed_port: &ClosedPort,
    (stop, who): (Stop, Thread),
) -> io::Result<Worker> {
    let closed_port = closed_port.clone();
    Worker::spawn("port-probe", move |own| {
        let is_closed = |address: &SocketAddr| {
            let again = || {
                own.sleep(PROBE_INTERVAL);
                !own.is_set()
            };
            is_refused(*address, local, own) && again() && is_refused(*address, local, own)
        };
        if !addresses.is_empty() && addresses.iter().all(is_closed) && !own.is_set() {
            closed_port.0.store(true, Ordering::Release);
            stop.set();
            who.unpark();
        }
    })
}

/// Probes the server while a test runs, and posts an event when it is gone.
pub(crate) fn during(
    connection: Connection,
    local: Option<IpAddr>,
    post: Sender<Event>,
) -> io::Result<Worker> {
    Worker::spawn("port-probe", move |stop| {
        let address = connection.remote_addr();
        let (mut heard, mut since) = (None, Instant::now());
        let mut signs = 0;
        while !stop.is_set() {
            stop.sleep(if signs > 0 { PROBE_INTERVAL } else { SILENCE_CHECK_INTERVAL });
            let until = Some(Instant::now() + ICMP_TIMEOUT);
            let stats = match wait(connection.stats(), stop, until) {
                Ok(Some(stats)) => stats,
                Ok(None) | Err(Cut::Stopped) => return,
                Err(Cut::TooLate) => continue,
            };
            let packets = Some(stats.received.packets);
            if packets != heard {
                (heard, since, signs) = (packets, Instant::now(), 0);
            } else if since.elapsed() >= SILENCE_BEFORE_PROBE {
                signs = if is_refused(address, local, stop) { signs + 1 } else { 0 };
            }
            if signs == 2 {
                // The receiver of events is gone after the test.
                let _ = post.send(Event::DataLost(SERVER_GONE.to_owned()));
                return;
            }
        }
    })
}

/// Whether the host at `address` answers a probe with "port unreachable".
fn is_refused(address: SocketAddr, local: Option<IpAddr>, stop: &Stop) -> bool {
    let any = match address.ip().to_canonical() {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let ask = || {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let socket = UdpSocket::bind((local.unwrap_or(any), 0))?;
        socket.set_read_timeout(Some(STOP_CHECK_INTERVAL))?;
        socket.connect(address)?;
        socket.send(PROBE)?;
        let until = Instant::now() + ICMP_TIMEOUT;
        while !stop.is_set() && Instant::now() < until {
            match socket.recv(&mut [0; 1]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other.map(drop),
            }
        }
        Ok(())
    };
    ask().is_err_and(|error: io::Error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn closed() -> SocketAddr {
        // The port is free again when this returns; another process is unlikely to take it
        // meanwhile.
        UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).unwrap()
    }

    #[test]
    fn only_a_closed_port_refuses() {
        let open = UdpSocket::bind("127.0.0.1:0").unwrap();
        let is_refused = |address, local| is_refused(address, local, &Stop::default());
        assert!(!is_refused(open.local_addr().unwrap(), None));
        assert!(is_refused(closed(), None));
        assert!(is_refused(closed(), Some(Ipv4Addr::LOCALHOST.into())));
    }

    #[test]
    fn one_open_address_of_several_is_not_a_refusal() {
        let open = UdpSocket::bind("127.0.0.1:0").unwrap();
        for (addresses, expected) in [
            (vec![closed(), closed()], true),
            (vec![closed(), open.local_addr().unwrap()], false),
            (vec![], false),
        ] {
            let (closed_port, stop) = (ClosedPort::default(), Stop::default());
            let probe = before(addresses, None, &closed_port, (stop.clone(), thread::current()));
            while !probe.as_ref().unwrap().is_finished() {
                thread::sleep(Duration::from_millis(10));
            }
            assert_eq!((closed_port.is_found(), stop.is_set()), (expected, expected));
        }
    }
}
