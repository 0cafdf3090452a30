//! Networks that are full, and a port that is.

use super::*;
use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

/// Connections that say they come from these addresses, and their other ends.
struct Port {
    listener: TcpListener,
    handshakes: Handshakes,
    held: Vec<(TcpStream, Place)>,
}

impl Port {
    fn new() -> Self {
        let limits = HandshakeLimits { all: 6, of_network: 3 };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { listener, handshakes: Handshakes::new(limits), held: Vec::new() }
    }

    fn come(&mut self, from: &str) {
        let client = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        let (stream, _) = self.listener.accept().unwrap();
        let place = self.handshakes.enter(&stream, from.parse().unwrap()).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        // The listener's end is kept open by the place only.
        self.held.push((client, place));
    }

    /// Which of them are open.
    fn open(&mut self) -> Vec<bool> {
        let is_open = |client: &mut TcpStream| client.read(&mut [0]).is_err();
        self.held.iter_mut().map(|(client, _)| is_open(client)).collect()
    }
}

#[test]
fn a_network_that_is_full_ends_its_own_oldest_silent_one() {
    let mut port = Port::new();
    port.come("192.0.2.1");
    port.held[0].1.has_spoken();
    for last in 2..6 {
        port.come(&format!("192.0.2.{last}"));
    }
    assert_eq!(port.open(), [true, false, false, true, true]);
    port.come("2001:db8::1");
    assert!(port.open()[5]);
}

#[test]
fn a_full_port_ends_one_of_the_network_that_has_most() {
    let mut port = Port::new();
    for from in
        ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "2001:db8::ffff:3", "198.51.100.1"]
    {
        port.come(from);
    }
    assert_eq!(port.open(), [true; 6]);
    port.come("203.0.113.1");
    assert_eq!(port.open(), [true, true, false, true, true, true, true]);
}

#[test]
fn places_are_given_back() {
    let mut port = Port::new();
    for _ in 0..3 {
        port.come("192.0.2.1");
    }
    port.held.remove(0);
    port.come("192.0.2.1");
    assert_eq!(port.open(), [true; 3]);
}
