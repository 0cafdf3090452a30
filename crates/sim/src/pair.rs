//! Two ends of this project's transport and their applications, without the links between them.

use crate::duo::Mark;
use crate::middlebox::{Envelope, Middlebox, OnTheWay};
use crate::pattern::Pattern;
use crate::scenario::{Load, TICK};
use crate::session::SimSession;
use hikyaku_proto::{
    ClientIds, Config, Connection, ConnectionId, Datagrams, Event, Side, Stats, StreamId,
};
use hikyaku_units::Instant;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A client that sends, and a server that checks what it receives.
pub(crate) struct Pair {
    hosts: [Host; 2],
    load: Load,
    began: Instant,
    pattern: Pattern,
    sent: u64,
    delivered: u64,
    progress: Vec<u64>,
    samples: Vec<(Duration, Stats)>,
    sample: Duration,
    most_held: u64,
    proof: Proof,
    way: OnTheWay,
}

/// The result of a pair.
pub(crate) struct PairEnd {
    pub(crate) delivered: u64,
    pub(crate) progress: Vec<u64>,
    pub(crate) samples: Vec<(Duration, Stats)>,
    pub(crate) client: Stats,
    pub(crate) server: Stats,
    pub(crate) most_held: u64,
}

struct Host {
    connection: Connection,
    stream: Option<StreamId>,
    ended: bool,
    wake: Instant,
}

/// Bytes that the server may send before the client's address is validated.
#[derive(Default)]
struct Proof {
    /// A packet under handshake keys has arrived. Only a host that receives packets at the address
    /// can have built it.
    given: bool,
    received: u64,
    sent: u64,
}

/// Unsent bytes that the application keeps ready.
const READY_BYTES: u64 = 2_000_000;
/// The minimum interval between two samples of the sender's statistics. The interval is a round
/// trip if that is longer.
const SAMPLE_INTERVAL_MIN: Duration = Duration::from_millis(50);
/// Maximum difference between the calendars of the hosts.
const CALENDAR_DIFFERENCE_MAX: Duration = Duration::from_millis(40);
const BURSTS_MAX: u32 = 100_000;
/// Bytes of IP and UDP headers of a datagram.
const HEADER_BYTES: u32 = 28;
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

impl Pair {
    /// Both ends at `now`, when the client starts.
    pub(crate) fn new(
        now: Instant,
        [client, server]: [&Config; 2],
        (load, delay): (Load, Duration),
        pattern: Pattern,
        rng: &mut fastrand::Rng,
    ) -> Self {
        let first = ConnectionId(rng.u64(..));
        let mut host = |side: Side, config: &Config| {
            let ids = ClientIds {
                local: ConnectionId(rng.u64(..)),
                destination: first,
                seed: rng.u64(..),
            };
            // One application reads the only stream.
            let config = Config { stream_window: config.initial_window, ..config.clone() };
            let params = Connection::local_params(&config, ids.local, first).encode();
            let session = Box::new(SimSession::new(side, params));
            // Real hosts agree on the time of day to a few milliseconds.
            let calendar = rng.u64(..CALENDAR_DIFFERENCE_MAX.as_nanos() as u64);
            let mut connection = match side {
                Side::Client => Connection::client(now, config, session, address(SERVER), ids),
                Side::Server => Connection::server(now, config, session, address(CLIENT), ids),
            };
            connection.set_calendar(calendar);
            Host { connection, stream: None, ended: false, wake: now }
        };
        Self {
            hosts: [host(Side::Client, client), host(Side::Server, server)],
            load,
            began: now,
            pattern,
            sent: 0,
            delivered: 0,
            progress: Vec::new(),
            samples: Vec::new(),
            sample: SAMPLE_INTERVAL_MIN.min(delay * 2).max(Duration::from_millis(1)),
            most_held: 0,
            proof: Proof::default(),
            way: OnTheWay::default(),
        }
    }

    /// Adds middleboxes and attackers.
    pub(crate) fn beside(mut self, way: OnTheWay) -> Self {
        self.way = way;
        self
    }

    pub(crate) fn wake(&self, host: usize) -> Instant {
        self.hosts[host].wake
    }

    /// Whether all data has arrived. A load without a size never ends.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.load, Load::Bytes(..)) && self.hosts[SERVER].ended
    }

    /// Records the progress.
    pub(crate) fn note(&mut self, now: Instant) {
        if now < self.began {
            return;
        }
        let elapsed = now - self.began;
        let ticks = (elapsed.as_nanos() / TICK.as_nanos()) as usize;
        if self.progress.len() < ticks {
            self.progress.resize(ticks, self.delivered);
        }
        if self.samples.last().is_none_or(|(at, _)| elapsed >= *at + self.sample) {
            self.samples.push((elapsed, self.hosts[CLIENT].connection.stats()));
        }
    }

    pub(crate) fn end(self) -> PairEnd {
        PairEnd {
            delivered: self.delivered,
            progress: self.progress,
            samples: self.samples,
            client: self.hosts[CLIENT].connection.stats(),
            server: self.hosts[SERVER].connection.stats(),
            most_held: self.most_held,
        }
    }

    /// A datagram arrives at `to`. Returns the datagrams that an attacker delivers instead, and
    /// their additional delays.
    pub(crate) fn arrive(
        &mut self,
        now: Instant,
        to: usize,
        bytes: Vec<u8>,
        mark: Mark,
    ) -> Vec<(Duration, Vec<u8>)> {
        let Some(meddler) = &mut self.way.meddler else {
            self.deliver(now, to, bytes, mark);
            return Vec::new();
        };
        let Some((envelope, bytes)) = Envelope::unwrap(bytes) else { return Vec::new() };
        let made = meddler.on_arrival(now, side(to), bytes);
        made.into_iter().map(|(later, bytes)| (later, envelope.wrap(&bytes))).collect()
    }

    pub(crate) fn deliver(&mut self, now: Instant, to: usize, bytes: Vec<u8>, mark: Mark) {
        let current = self.way.middle.mapping(now - self.began);
        let Some((envelope, bytes)) = Envelope::unwrap(bytes) else { return };
        // A packet under handshake keys validates its source address.
        if to == SERVER {
            self.proof.given |= SimSession::is_of_handshake(&bytes, Side::Server);
            self.proof.received += bytes.len() as u64;
        }
        if to == CLIENT && envelope.mapping != current {
            return;
        }
        let source =
            if to == SERVER { self.way.middle.address(envelope.mapping) } else { address(SERVER) };
        let datagram = Datagrams {
            congestion_experienced: envelope.is_marked || mark == Mark::Congestion,
            local: self.way.middle.local(current).filter(|_| to == CLIENT),
            ..Datagrams::one(source, now, bytes)
        };
        self.hosts[to].connection.handle_datagrams(now, datagram);
    }

    /// Lets one host do everything that it has to do now.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        at: usize,
        send: &mut dyn FnMut(&[u8], u32),
    ) -> Result<(), String> {
        if self.hosts[at].connection.poll_timeout().is_some_and(|(due, _)| due <= now) {
            self.hosts[at].connection.handle_timeout(now);
        }
        self.application(at)?;
        let mut out = Vec::new();
        let mut bursts = 0;
        while let Some(transmit) = self.hosts[at].connection.poll_transmit(now, &mut out) {
            bursts += 1;
            if bursts > BURSTS_MAX {
                return Err("endless transmission".to_owned());
            }
            let mapping = match at {
                CLIENT => self.way.middle.mapping(now - self.began),
                _ => Middlebox::mapping_of(transmit.destination),
            };
            let envelope = self.way.middle.send(transmit.marking, mapping);
            for segment in out[..transmit.len].chunks(transmit.segment) {
                self.check_proof(at, segment)?;
                let Some(envelope) = envelope else { continue };
                let mut enter = |bytes: &[u8]| {
                    send(&envelope.wrap(bytes), bytes.len() as u32 + HEADER_BYTES);
                };
                match &mut self.way.meddler {
                    None => enter(segment),
                    Some(meddler) => {
                        let made = meddler.on_sent(now, side(at), segment.to_vec());
                        made.iter().for_each(|bytes| enter(bytes));
                    }
                }
            }
            // The application is fast enough that only the path limits the result.
            if at == CLIENT {
                self.write();
            }
        }
        self.application(at)?;
        let next = self.hosts[at].connection.poll_timeout().map(|(due, _)| due);
        self.hosts[at].wake = match next {
            Some(due) if due > now => due,
            // The timer is due although it was just handled, so it is retried a little later.
            Some(_) => now + Duration::from_micros(10),
            None => Instant::from_nanos(u64::MAX),
        };
        Ok(())
    }

    // spec: hs-3
    fn check_proof(&mut self, from: usize, bytes: &[u8]) -> Result<(), String> {
        if from == SERVER && !self.proof.given {
            self.proof.sent += bytes.len() as u64;
            if self.proof.sent > 3 * self.proof.received {
                return Err("more than three times the question before proof".to_owned());
            }
        }
        Ok(())
    }

    /// The applications: the client writes, the server reads and checks.
    fn application(&mut self, at: usize) -> Result<(), String> {
        while let Some((id, delivery)) = self.hosts[at].connection.poll_delivery() {
            let mut offset = delivery.offset;
            for piece in delivery.run.pieces() {
                self.pattern.verify(offset, piece).map_err(|error| error.to_string())?;
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
                Event::Closed(reason) => return Err(format!("host {at} closed: {reason}")),
                _ => {}
            }
        }
        if at == CLIENT {
            self.write();
        }
        Ok(())
    }

    fn write(&mut self) {
        let (total, kind) = match self.load {
            Load::Bytes(bytes, kind) => (bytes, kind),
            Load::For(_, kind) => (u64::MAX, kind),
        };
        let host = &mut self.hosts[CLIENT];
        if host.connection.is_handshaking() {
            return;
        }
        let id = match host.stream {
            Some(id) => id,
            None => match host.connection.open(kind) {
                Some(id) => *host.stream.insert(id),
                None => return,
            },
        };
        while self.sent < total
            && host.connection.unsent(id).is_some_and(|unsent| unsent < READY_BYTES)
        {
            let len = (total - self.sent).min(60_000) as usize;
            let bytes = self.pattern.bytes(self.sent, len);
            self.sent += bytes.len() as u64;
            host.connection.write(id, bytes);
        }
        if self.sent == total {
            host.connection.finish(id);
        }
    }
}

const fn side(host: usize) -> Side {
    if host == CLIENT { Side::Client } else { Side::Server }
}

fn address(host: usize) -> SocketAddr {
    match host {
        CLIENT => Middlebox::default().address(0),
        _ => SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 5000),
    }
}
