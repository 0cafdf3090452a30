//! Clients whose address changes while they shake hands (F07).

use super::*;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Stands between a client and a server, and forgets its mapping once.
struct Translator {
    address: SocketAddr,
    passed: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Translator {
    /// A translator whose outside address changes with datagram `at`, counted in both directions. Datagrams to the old
    /// address are lost.
    fn before(at: usize, server: SocketAddr) -> Self {
        let bind = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let (inside, mut outside) = (bind(), vec![bind()]);
        let address = inside.local_addr().unwrap();
        let (passed, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, stop) = (passed.clone(), is_over.clone());
        thread::spawn(move || {
            let (mut client, mut room) = (None, [0; 65_536]);
            // The old socket stays open, so that datagrams to it are dropped silently. Returns whether the address has changed.
            let pass = |outside: &mut Vec<UdpSocket>| {
                let forgets = count.fetch_add(1, Ordering::AcqRel) + 1 == at;
                if forgets {
                    outside.push(bind());
                }
                forgets
            };
            while !stop.load(Ordering::Acquire) {
                let mut is_idle = true;
                if let Ok((len, from)) = inside.recv_from(&mut room) {
                    client = Some(from);
                    pass(&mut outside);
                    let _ = outside[outside.len() - 1].send_to(&room[..len], server);
                    is_idle = false;
                }
                let back = outside[outside.len() - 1].recv(&mut room);
                if let (Ok(len), Some(client)) = (back, client) {
                    if !pass(&mut outside) {
                        let _ = inside.send_to(&room[..len], client);
                    }
                    is_idle = false;
                }
                if is_idle {
                    thread::sleep(Duration::from_micros(200));
                }
            }
        });
        Self { address, passed, is_over }
    }
}

impl Drop for Translator {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

// spec: path-4
#[test]
fn an_address_that_changes_in_the_handshake_ends_nothing() {
    let mut at = 1;
    loop {
        let lab = Lab::new();
        let translator = Translator::before(at, lab.listener.local_addr());
        let connected = block_on(lab.endpoint.connect(translator.address, lab.trusting()));
        let client = connected.unwrap_or_else(|error| panic!("changed at datagram {at}: {error}"));
        let shaken_in = translator.passed.load(Ordering::Acquire);
        let mut stream = block_on(client.open_stream()).unwrap();
        let sender = thread::spawn(move || block_on(send_pattern(stream.halves().0, 300_000)));
        let server = block_on(lab.listener.accept()).unwrap();
        let mut other = block_on(server.accept_stream()).unwrap();
        assert_eq!(block_on(receive_pattern(other.halves().1)).unwrap(), 300_000);
        sender.join().unwrap();
        // Last words still have a way.
        drop((other, server, client, lab));
        if at > shaken_in + 4 {
            // From here on it changes under data, which others test.
            break;
        }
        at += 1;
    }
    assert!(at > 8, "a handshake of {at} datagrams");
}
