//! Whole endpoints over loopback.

mod attacks;
mod drivers;
mod endings;
mod failures;
mod handles;
mod many;
mod messages;
mod moves;
mod transfers;

use super::blocking::block_on;
use super::*;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

/// A listener, and all that is needed to connect to it.
struct Lab {
    listener: Listener,
    endpoint: Endpoint,
    fingerprint: Fingerprint,
}

impl Lab {
    fn new() -> Self {
        Self::with("127.0.0.1:0", |_| {})
    }

    fn with(address: &str, set: impl FnOnce(&mut ListenerConfig)) -> Self {
        let identity = Identity::generate().unwrap();
        let mut config = ListenerConfig::new(ServerCredentials::new(&identity));
        config.endpoint = quiet();
        set(&mut config);
        let address: SocketAddr = address.parse().unwrap();
        let listener = Listener::bind(address, config).unwrap();
        let endpoint = Endpoint::bind(SocketAddr::new(address.ip(), 0), quiet()).unwrap();
        Self { listener, endpoint, fingerprint: identity.fingerprint() }
    }

    fn trusting(&self) -> ConnectConfig {
        ConnectConfig::new(Trust::Pinned(self.fingerprint))
    }

    /// Both ends of a new connection.
    fn connect(&self) -> (Connection, Connection) {
        self.connect_with(self.trusting())
    }

    fn connect_with(&self, config: ConnectConfig) -> (Connection, Connection) {
        let address = self.listener.local_addr();
        let client = block_on(self.endpoint.connect(address, config)).unwrap();
        (client, block_on(self.listener.accept()).unwrap())
    }
}

/// Several drivers, so that each test has connections of more than one.
fn quiet() -> EndpointConfig {
    let drivers = Drivers::Fixed(3.try_into().unwrap());
    EndpointConfig { on_drop: OnDrop::Wait, drivers, ..EndpointConfig::default() }
}

/// The byte at `offset` of every stream.
fn pattern(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn patterned(offset: u64, len: usize) -> Bytes {
    (offset..offset + len as u64).map(pattern).collect::<Vec<_>>().into()
}

fn assert_pattern(offset: u64, run: &Run) {
    let expected = (offset..).map(pattern);
    assert!(run.pieces().flatten().copied().zip(expected).all(|(a, b)| a == b), "at {offset}");
}

/// Writes `len` bytes of the pattern and finishes.
async fn send_pattern(stream: &mut SendHalf, len: u64) {
    let mut at = 0;
    while at < len {
        let n = (len - at).min(100_000);
        stream.write_chunk(patterned(at, n as usize)).await.unwrap();
        at += n;
    }
    stream.finish();
}

/// Reads the pattern to the end and gives its length.
async fn receive_pattern(stream: &mut ReceiveHalf) -> Result<u64, ReadError> {
    let mut at = 0;
    while let Some(run) = stream.read_chunk().await? {
        assert_pattern(at, &run);
        at += run.len() as u64;
    }
    Ok(at)
}

/// Lets `check` become true within some seconds.
fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    for _ in 0..500 {
        if check() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not come true");
}
