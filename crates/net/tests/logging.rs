//! The log lines of a connection. A program has one subscriber, so this is a test program of its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use hikyaku_net::blocking::{NetListener, NetStream};
use hikyaku_net::{ConnectConfig, Identity, ListenerConfig, ServerCredentials, Trust};
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn both_ends_log_the_start_and_the_end_of_a_connection() {
    let text = Text::default();
    let writer = text.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone())
        .init();
    let identity = Identity::generate().unwrap();
    let config = ListenerConfig::new(ServerCredentials::new(&identity));
    let listener = NetListener::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let address = listener.local_addr();
    let client = thread::spawn(move || {
        let config = ConnectConfig::new(Trust::Pinned(identity.fingerprint()));
        let mut stream = NetStream::connect(address, config).unwrap();
        stream.write_all(b"ping").unwrap();
        stream.finish();
        stream.delivered().unwrap();
    });
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_to_string(&mut String::new()).unwrap();
    // The end of a connection is logged before its endpoint has been dropped.
    drop(stream);
    client.join().unwrap();
    drop(listener);
    let text = String::from_utf8(text.0.lock().unwrap().clone()).unwrap();
    for line in ["connection up", "connection down"] {
        assert_eq!(text.matches(line).count(), 2, "{line}: {text}");
    }
}
