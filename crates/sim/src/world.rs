//! Two hosts, two links, one clock.

use crate::pattern::Pattern;
use crate::scenario::{Load, Outcome, Scenario, TICK};
use crate::session::SimSession;
use hikyaku_link::{Counters, Link, Verdict};
use hikyaku_proto::{
    ClientIds, CloseReason, Connection, ConnectionId, Datagrams, Event, Side, Stats, StreamId,
};
use hikyaku_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Why a run is not a success. `seed` replays it.
#[derive(Debug)]
pub struct SimError {
    /// What happened.
    pub what: String,
    /// When.
    pub at: Instant,
    /// The scenario's seed.
    pub seed: u64,
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?} (seed {})", self.what, self.at, self.seed)
    }
}

impl std::error::Error for SimError {}

/// A simulation under way.
pub struct World {
    now: Instant,
    began: Instant,
    scenario: Scenario,
    hosts: [Host; 2],
    links: [Link; 2],
    wire: BinaryHeap<Reverse<Packet>>,
    sequence: u64,
    pattern: Pattern,
    sent: u64,
    delivered: u64,
    progress: Vec<u64>,
    samples: Vec<(Duration, Stats)>,
    sample: Duration,
    half: Option<Counters>,
    most_held: u64,
    steps: u64,
    proof: Proof,
}

struct Host {
    connection: Connection,
    stream: Option<StreamId>,
    closed: Option<CloseReason>,
    ended: bool,
    wake: Instant,
}

/// What the server may send before the client's address is proven.
#[derive(Default)]
struct Proof {
    /// A packet under handshake keys has come: only who receives at the address can have made it.
    given: bool,
    received: u64,
    sent: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    at: Instant,
    sequence: u64,
    to: usize,
    bytes: Vec<u8>,
}

/// The application keeps this much unsent data ready.
const READY: u64 = 2_000_000;
/// More steps than this in one simulated second are a busy loop at any rate in use here.
const MAX_STEPS_PER_PACKET: u64 = 40;
/// The sender's state is noted once a round trip, but at most this seldom.
const SAMPLE: Duration = Duration::from_millis(50);
const CLIENT: usize = 0;
const SERVER: usize = 1;

impl World {
    /// A world at time one second (so that "a second before" exists).
    pub fn new(scenario: Scenario) -> Self {
        let now = Instant::from_millis(1000);
        let mut rng = fastrand::Rng::with_seed(scenario.seed);
        let first = ConnectionId(rng.u64(..));
        let host = |side: Side, rng: &mut fastrand::Rng| {
            let config = match side {
                Side::Client => scenario.client.clone(),
                Side::Server => scenario.server.clone(),
            };
            let ids = ClientIds {
                local: ConnectionId(rng.u64(..)),
                destination: first,
                seed: rng.u64(..),
            };
            let params = Connection::local_params(&config, ids.local, first).encode();
            let session = Box::new(SimSession::new(side, params));
            let connection = match side {
                Side::Client => Connection::client(now, config, session, address(SERVER), ids),
                Side::Server => Connection::server(now, config, session, address(CLIENT), ids),
            };
            Host { connection, stream: None, closed: None, ended: false, wake: now }
        };
        let hosts = [host(Side::Client, &mut rng), host(Side::Server, &mut rng)];
        let links = [
            Link::new(scenario.up.clone(), rng.u64(..)),
            Link::new(scenario.down.clone(), rng.u64(..)),
        ];
        Self {
            now,
            began: now,
            hosts,
            links,
            wire: BinaryHeap::new(),
            sequence: 0,
            pattern: Pattern::new(scenario.seed),
            sent: 0,
            delivered: 0,
            progress: Vec::new(),
            samples: Vec::new(),
            sample: SAMPLE.min(scenario.up.delay * 2).max(Duration::from_millis(1)),
            half: None,
            most_held: 0,
            steps: 0,
            proof: Proof::default(),
            scenario,
        }
    }

    /// Runs to the end of the load.
    pub fn run(mut self) -> Result<Outcome, SimError> {
        self.turn(CLIENT)?;
        while !self.is_done() {
            self.step()?;
        }
        let client = self.hosts[CLIENT].connection.stats();
        let server = self.hosts[SERVER].connection.stats();
        let up = *self.links[0].counters_at(self.now);
        Ok(Outcome {
            took: self.now - self.began,
            delivered: self.delivered,
            progress: self.progress,
            samples: self.samples,
            client,
            server,
            up_at_half: self.half.unwrap_or(up),
            up,
            most_held: self.most_held,
        })
    }

    fn is_done(&self) -> bool {
        match self.scenario.load {
            Load::Bytes(..) => self.hosts[SERVER].ended,
            Load::For(time, _) => self.now - self.began >= time,
        }
    }

    fn step(&mut self) -> Result<(), SimError> {
        let packet = self.wire.peek().map(|Reverse(packet)| packet.at);
        let change = self.scenario.changes.first().map(|change| change.0);
        let wake = self.hosts.iter().map(|host| host.wake).min();
        let next = [packet, change, wake].into_iter().flatten().min();
        let next = next.ok_or_else(|| self.error("nothing will ever happen"))?;
        self.advance(next)?;
        if change.is_some_and(|at| at <= self.now) {
            let (_, up, down) = self.scenario.changes.remove(0);
            self.links[0].set_spec(self.now, up);
            self.links[1].set_spec(self.now, down);
        }
        let mut touched = [false; 2];
        while self.wire.peek().is_some_and(|Reverse(packet)| packet.at <= self.now) {
            if let Some(Reverse(packet)) = self.wire.pop() {
                touched[packet.to] = true;
                self.deliver(packet);
            }
        }
        for host in [CLIENT, SERVER] {
            if touched[host] || self.hosts[host].wake <= self.now {
                self.turn(host)?;
            }
        }
        Ok(())
    }

    fn advance(&mut self, to: Instant) -> Result<(), SimError> {
        self.steps += 1;
        let allowed = 100_000 + self.sequence * MAX_STEPS_PER_PACKET;
        if self.steps > allowed {
            return Err(self.error("busy loop"));
        }
        self.now = self.now.max(to);
        let elapsed = self.now - self.began;
        if elapsed > self.scenario.limit {
            return Err(self.error("took too long"));
        }
        let ticks = (elapsed.as_nanos() / TICK.as_nanos()) as usize;
        if self.progress.len() < ticks {
            self.progress.resize(ticks, self.delivered);
        }
        if self.samples.last().is_none_or(|(at, _)| elapsed >= *at + self.sample) {
            self.samples.push((elapsed, self.hosts[CLIENT].connection.stats()));
        }
        if self.half.is_none() && elapsed >= self.half_time() {
            self.half = Some(*self.links[0].counters_at(self.now));
        }
        Ok(())
    }

    fn half_time(&self) -> Duration {
        match self.scenario.load {
            Load::Bytes(..) => Duration::MAX,
            Load::For(time, _) => time / 2,
        }
    }

    fn deliver(&mut self, packet: Packet) {
        let host = &mut self.hosts[packet.to];
        // A packet under handshake keys proves the address it came from.
        if packet.to == SERVER {
            self.proof.given |= packet.bytes.first() == Some(&0x81);
            self.proof.received += packet.bytes.len() as u64;
        }
        host.connection.handle_datagrams(
            self.now,
            Datagrams::one(address(1 - packet.to), self.now, packet.bytes),
        );
    }

    /// Lets one host do everything it wants to do now.
    fn turn(&mut self, at: usize) -> Result<(), SimError> {
        let now = self.now;
        if self.hosts[at].connection.poll_timeout().is_some_and(|(due, _)| due <= now) {
            self.hosts[at].connection.handle_timeout(now);
        }
        self.application(at)?;
        let mut out = Vec::new();
        let mut bursts = 0;
        while let Some(transmit) = self.hosts[at].connection.poll_transmit(now, &mut out) {
            bursts += 1;
            if bursts > 100_000 {
                return Err(self.error("endless transmission"));
            }
            for segment in out[..transmit.len].chunks(transmit.segment) {
                self.send(at, segment)?;
            }
            // An application that is quick enough: only the path may limit what is measured.
            if at == CLIENT {
                self.write()?;
            }
        }
        self.application(at)?;
        let next = self.hosts[at].connection.poll_timeout().map(|(due, _)| due);
        self.hosts[at].wake = match next {
            Some(due) if due > now => due,
            // Due now, and still due after acting on it: try again a little later.
            Some(_) => now + Duration::from_micros(10),
            None => Instant::from_nanos(u64::MAX),
        };
        Ok(())
    }

    fn send(&mut self, from: usize, bytes: &[u8]) -> Result<(), SimError> {
        if from == SERVER && !self.proof.given {
            // spec: hs-3
            self.proof.sent += bytes.len() as u64;
            if self.proof.sent > 3 * self.proof.received {
                return Err(self.error("more than three times the question before proof"));
            }
        }
        let overhead = 28;
        let Verdict::Deliver(delivery) =
            self.links[from].offer(self.now, bytes.len() as u32 + overhead)
        else {
            return Ok(());
        };
        let mut bytes = bytes.to_vec();
        if let Some(noise) = delivery.corrupt {
            let bit = noise as usize % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for at in [Some(delivery.at), delivery.duplicate_at].into_iter().flatten() {
            self.sequence += 1;
            let packet = Packet { at, sequence: self.sequence, to: 1 - from, bytes: bytes.clone() };
            self.wire.push(Reverse(packet));
        }
        Ok(())
    }

    /// The applications: the client writes, the server reads and checks.
    fn application(&mut self, at: usize) -> Result<(), SimError> {
        while let Some((id, delivery)) = self.hosts[at].connection.poll_delivery() {
            let mut offset = delivery.offset;
            for piece in delivery.run.pieces() {
                if let Err(error) = self.pattern.verify(offset, piece) {
                    return Err(self.error(&error.to_string()));
                }
                offset += piece.len() as u64;
            }
            let len = delivery.run.len() as u64;
            self.delivered += len;
            self.hosts[at].connection.consumed(id, len);
        }
        self.most_held = self.most_held.max(self.hosts[at].connection.stats().held.bytes());
        while let Some(event) = self.hosts[at].connection.poll_event() {
            match event {
                Event::Ended(_) => self.hosts[at].ended = true,
                Event::Closed(reason) => {
                    self.hosts[at].closed = Some(reason.clone());
                    return Err(self.error(&format!("host {at} closed: {reason}")));
                }
                _ => {}
            }
        }
        if at == CLIENT { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), SimError> {
        let (total, kind) = match self.scenario.load {
            Load::Bytes(bytes, kind) => (bytes, kind),
            Load::For(_, kind) => (u64::MAX, kind),
        };
        let host = &mut self.hosts[CLIENT];
        if host.connection.is_handshaking() {
            return Ok(());
        }
        let id = match host.stream {
            Some(id) => id,
            None => match host.connection.open(kind) {
                Some(id) => *host.stream.insert(id),
                None => return Ok(()),
            },
        };
        while self.sent < total && host.connection.unsent(id).is_some_and(|unsent| unsent < READY) {
            let len = (total - self.sent).min(60_000) as usize;
            let bytes = self.pattern.bytes(self.sent, len);
            self.sent += bytes.len() as u64;
            host.connection.write(id, bytes);
        }
        if self.sent == total {
            host.connection.finish(id);
        }
        Ok(())
    }

    fn error(&self, what: &str) -> SimError {
        SimError { what: what.to_owned(), at: self.now, seed: self.scenario.seed }
    }
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host as u8 + 1)), 5000)
}
