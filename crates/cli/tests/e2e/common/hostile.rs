//! Hostile clients of `hikyaku perf -s`. They follow the protocol as far as it helps them.

use hikyaku_crypto::{Fingerprint, Trust};
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_net::{ConnectConfig, Connection, Endpoint, EndpointConfig, OnDrop, Stream};
use serde_json::{Value, json};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What a hostile client does repeatedly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trick {
    /// Connects and sends nothing.
    Silent,
    /// Begins a message and never completes it.
    HalfAWord,
    /// Asks for a test of one day and sends no data.
    Holder,
    /// Asks for a test whose reader pauses for one day, and fills the receive window.
    Staller,
    /// Asks for a test and fills streams that the server does not read.
    Filler,
    /// Asks for a download and reads nothing.
    Deaf,
    /// Joins a test that does not exist and fills the receive window.
    Joiner,
    /// Asks for the maximal number of streams and opens only a few.
    Crowd,
    /// Begins a handshake and does not complete it.
    HalfOpen,
}

pub(crate) const TRICKS: [Trick; 9] = [
    Trick::Silent,
    Trick::HalfAWord,
    Trick::Holder,
    Trick::Staller,
    Trick::Filler,
    Trick::Deaf,
    Trick::Joiner,
    Trick::Crowd,
    Trick::HalfOpen,
];

/// Running hostile clients. They end when this is dropped.
pub(crate) struct Siege {
    stop: Stop,
    clients: Vec<JoinHandle<()>>,
    connected: Arc<AtomicU64>,
}

struct Client {
    endpoint: Arc<Endpoint>,
    server: SocketAddr,
    key: Fingerprint,
    stop: Stop,
    connected: Arc<AtomicU64>,
}

/// Number of clients that share a socket.
const CLIENTS_PER_SOCKET: usize = 25;
/// How long a client keeps its connection before it starts again.
const HOLD_TIME: Duration = Duration::from_secs(8);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

impl Siege {
    /// Starts `count` clients, which use all tricks in turn.
    pub(crate) fn begin(server: SocketAddr, key: Fingerprint, count: usize) -> Self {
        let (stop, connected) = (Stop::default(), Arc::<AtomicU64>::default());
        let mut endpoint = endpoint();
        let client = |at: usize| {
            if at.is_multiple_of(CLIENTS_PER_SOCKET) {
                endpoint = self::endpoint();
            }
            let client = Client {
                endpoint: endpoint.clone(),
                server,
                key,
                stop: stop.clone(),
                connected: connected.clone(),
            };
            thread::spawn(move || client.attack(TRICKS[at % TRICKS.len()]))
        };
        let clients = (0..count).map(client).collect();
        Self { stop, clients, connected }
    }

    /// Number of connections that the server has accepted so far.
    pub(crate) fn connected(&self) -> u64 {
        self.connected.load(Ordering::Relaxed)
    }
}

impl Drop for Siege {
    fn drop(&mut self) {
        self.stop.set();
        for client in self.clients.drain(..) {
            client.thread().unpark();
            let _ = client.join();
        }
    }
}

fn endpoint() -> Arc<Endpoint> {
    let mut config = EndpointConfig::default();
    config.linger = Duration::ZERO;
    config.closing = Duration::ZERO;
    config.on_drop = OnDrop::Wait;
    Arc::new(Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap())
}

impl Client {
    fn attack(&self, trick: Trick) {
        while !self.stop.is_set() {
            if trick == Trick::HalfOpen {
                self.half_open();
            } else if let Some(connection) = self.connect() {
                self.connected.fetch_add(1, Ordering::Relaxed);
                // The trick's connection is closed when this is dropped.
                let _held = self.play(trick, &connection);
                let until = Some(Instant::now() + HOLD_TIME);
                let _ = wait(connection.closed(), &self.stop, until);
            }
        }
    }

    fn config(&self) -> ConnectConfig {
        let mut config = ConnectConfig::new(Trust::Pinned(self.key));
        config.transport.connect_timeout = ANSWER_TIMEOUT;
        config
    }

    fn connect(&self) -> Option<Connection> {
        let connecting = self.endpoint.connect(self.server, self.config());
        wait(connecting, &self.stop, Some(Instant::now() + ANSWER_TIMEOUT)).ok()?.ok()
    }

    fn play(
        &self,
        trick: Trick,
        connection: &Connection,
    ) -> Option<(Vec<Stream>, Vec<Connection>)> {
        let token = format!("{:032x}", fastrand::u128(..));
        let mut streams = Vec::new();
        let mut others = Vec::new();
        if trick != Trick::Silent {
            streams.push(self.open(connection)?);
        }
        let day = json!({"seconds": 86_400.0, "at": 0.0});
        match trick {
            Trick::Silent | Trick::HalfOpen => {}
            Trick::HalfAWord => self.write(&mut streams[0], &[0, 0, 200, 0, b'{']),
            Trick::Holder => self.say(&mut streams[0], &hello(&token, "upload", 1, Value::Null)),
            Trick::Deaf => {
                self.say(&mut streams[0], &hello(&token, "download", 1, Value::Null));
                self.say(&mut streams[0], &json!({"type": "start"}));
            }
            Trick::Staller => {
                self.say(&mut streams[0], &hello(&token, "upload", 1, day));
                self.fill(connection, &mut streams, 1);
            }
            Trick::Filler => {
                self.say(&mut streams[0], &hello(&token, "upload", 1, Value::Null));
                self.fill(connection, &mut streams, 20);
            }
            Trick::Joiner => {
                self.say(&mut streams[0], &json!({"type": "join", "token": token, "index": 1}));
                self.fill(connection, &mut streams, 1);
            }
            Trick::Crowd => {
                self.say(&mut streams[0], &hello(&token, "upload", 40, Value::Null));
                for index in 1..5 {
                    let Some(other) = self.connect() else { break };
                    let mut stream = self.open(&other)?;
                    self.say(&mut stream, &json!({"type": "join", "token": token, "index": index}));
                    streams.push(stream);
                    others.push(other);
                }
            }
        }
        Some((streams, others))
    }

    fn open(&self, connection: &Connection) -> Option<Stream> {
        wait(connection.open_stream(), &self.stop, Some(Instant::now() + ANSWER_TIMEOUT)).ok()?.ok()
    }

    fn write(&self, stream: &mut Stream, bytes: &[u8]) {
        let write = stream.write_chunk(bytes.to_vec().into());
        let _ = wait(write, &self.stop, Some(Instant::now() + ANSWER_TIMEOUT));
    }

    fn say(&self, stream: &mut Stream, message: &Value) {
        let text = message.to_string();
        let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        self.write(stream, &bytes);
    }

    /// Writes to `count` new streams in turn until the receive window has been full for a while.
    fn fill(&self, connection: &Connection, streams: &mut Vec<Stream>, count: usize) {
        let from = streams.len();
        streams.extend((0..count).map_while(|_| self.open(connection)));
        let block = hikyaku_net::Bytes::from(vec![7; 1 << 20]);
        'filling: while !self.stop.is_set() {
            for stream in &mut streams[from..] {
                let until = Some(Instant::now() + Duration::from_millis(500));
                match wait(stream.write_chunk(block.clone()), &self.stop, until) {
                    Ok(Ok(())) => {}
                    _ => break 'filling,
                }
            }
        }
    }

    /// Sends the first packet of a handshake to a socket of its own, and from there to the server.
    fn half_open(&self) {
        let between = UdpSocket::bind("127.0.0.1:0").unwrap();
        between.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let there = between.local_addr().unwrap();
        let mut first = [0; 2000];
        let connecting = self.endpoint.connect(there, self.config());
        // The attempt is abandoned once the packet has been sent.
        let _ = wait(connecting, &self.stop, Some(Instant::now() + Duration::from_millis(100)));
        if let Ok((len, _)) = between.recv_from(&mut first) {
            let _ = between.send_to(&first[..len], self.server);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn hello(token: &str, direction: &str, streams: u32, stall: Value) -> Value {
    json!({
        "type": "hello",
        "version": 1,
        "program": "hostile",
        "token": token,
        "policy": "fair",
        "wire_target": null,
        "plan": {
            "direction": direction,
            "limit": {"seconds": 86_000.0},
            "streams": streams,
            "interval": 1.0,
            "omit": 0.0,
            "target": null,
            "kind": "ordered",
            "handling": "copy",
            "length": 262_144,
            "stall": stall,
        },
    })
}
