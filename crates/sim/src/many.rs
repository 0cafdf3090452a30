//! Many streams on one connection: the rate of bulk streams, and the delay of small messages.

use crate::duo::{Duo, index};
use crate::wire::{Cargo, Way, Wire};
use hikyaku_link::LinkSpec;
use hikyaku_proto::{Config, Event, Priority, Side, StreamId, StreamKind};
use hikyaku_units::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The workload of one connection. Bulk streams always have data to send.
#[derive(Clone, Debug)]
pub struct Many {
    /// The link of both directions.
    pub link: LinkSpec,
    /// The settings of both ends.
    pub config: Config,
    /// The number of bulk streams that the server reads.
    pub read: u32,
    /// The number of bulk streams that the server does not read.
    pub unread: u32,
    /// The kind of the bulk streams.
    pub kind: StreamKind,
    /// The interval of messages of 100 bytes on one stream, which the server echoes.
    pub echo_every: Option<Duration>,
    /// The interval at which a new stream is opened, with a message of 100 bytes that the server
    /// echoes.
    pub fresh_every: Option<Duration>,
    /// The interval at which an urgent object is opened, and its bytes.
    pub urgent_every: Option<(Duration, usize)>,
    /// The duration.
    pub time: Duration,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The result of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ManyOutcome {
    /// Bytes delivered on each bulk stream. Those that the server reads come first.
    pub delivered: Vec<u64>,
    /// The time from each message to its echo.
    pub echoes: Vec<Duration>,
    /// The time from the opening of each new stream to the last byte of its echo.
    pub fresh: Vec<Duration>,
    /// The time from the first written byte of each urgent object to its last delivered byte.
    pub urgent: Vec<Duration>,
    /// The mean and the maximum queueing delay of the link.
    pub queue: [Duration; 2],
    /// Maximum bytes that the server held for its application.
    pub most_unread: u64,
    /// The number of stopped streams.
    pub stopped: u32,
}

const ECHO_BYTES: usize = 100;
/// Unsent bytes that the bulk streams keep ready together, and the minimum for each.
const READY_BYTES: u64 = 4_000_000;
const STREAM_READY_BYTES_MIN: u64 = 64_000;
const PIECE_BYTES: usize = 32_000;
/// Bytes of IP and UDP headers of a datagram.
const HEADER_BYTES: u32 = 28;

impl Many {
    /// Runs the workload.
    pub fn run(&self) -> Result<ManyOutcome, String> {
        let mut run = Run::new(self);
        while run.duo.now - run.began < self.time {
            run.turn(Side::Client)?;
            run.turn(Side::Server)?;
            run.advance()?;
        }
        let mut outcome = run.outcome;
        let delivered = |id: &StreamId| run.got.get(id).copied().unwrap_or(0);
        outcome.delivered = run.bulk.iter().map(delivered).collect();
        let counters = run.wire.counters(run.duo.now);
        outcome.queue = [counters.mean_wait_since(&Default::default()), counters.largest_wait];
        Ok(outcome)
    }
}

struct Run<'a> {
    plan: &'a Many,
    duo: Duo,
    wire: Wire,
    began: Instant,
    bulk: Vec<StreamId>,
    unread: BTreeSet<StreamId>,
    got: BTreeMap<StreamId, u64>,
    echo: Echo,
    /// New streams without a complete echo: their start, and the bytes that have come back.
    fresh: BTreeMap<StreamId, (Instant, usize)>,
    next_fresh: Instant,
    urgent: BTreeMap<StreamId, Instant>,
    next_urgent: Instant,
    served: Vec<StreamId>,
    outcome: ManyOutcome,
}

struct Echo {
    stream: Option<StreamId>,
    next: Instant,
    /// The sending times of messages without an echo.
    sent: Vec<Instant>,
    came: usize,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Many) -> Self {
        let mut rng = fastrand::Rng::with_seed(plan.seed);
        let duo = Duo::apart(&plan.config, &plan.config);
        let wire = Wire::new([&plan.link, &plan.link], &mut rng);
        let began = duo.now;
        let echo = Echo { stream: None, next: began, sent: Vec::new(), came: 0 };
        Self {
            plan,
            duo,
            wire,
            began,
            bulk: Vec::new(),
            unread: BTreeSet::new(),
            got: BTreeMap::new(),
            echo,
            fresh: BTreeMap::new(),
            next_fresh: began,
            urgent: BTreeMap::new(),
            next_urgent: began,
            served: Vec::new(),
            outcome: ManyOutcome::default(),
        }
    }

    fn turn(&mut self, side: Side) -> Result<(), String> {
        while let Some(event) = self.duo.end(side).poll_event() {
            match event {
                Event::Closed(reason) => return Err(format!("{side:?} ended: {reason}")),
                Event::Stopped(..) => self.outcome.stopped += 1,
                Event::Reset(id, _) => {
                    // The application has dropped the bytes that it was given.
                    let held = self.got.get(&id).copied().unwrap_or(0);
                    self.duo.end(side).consumed(id, held);
                }
                _ => {}
            }
        }
        match side {
            Side::Client => self.write(),
            Side::Server => self.read(),
        }
        for packet in self.duo.take(side) {
            let way = Way { flow: 0, from: index(side), extra: Duration::ZERO };
            let len = packet.len() as u32 + HEADER_BYTES;
            self.wire.send(self.duo.now, way, Cargo::Datagram(packet), len);
        }
        Ok(())
    }

    fn write(&mut self) {
        if self.duo.end(Side::Client).is_handshaking() {
            return;
        }
        self.fill_bulk();
        self.send_echo();
        self.open_fresh();
        self.send_urgent();
        self.handle_echoes();
    }

    /// Handles the echoes that arrive.
    fn handle_echoes(&mut self) {
        while let Some((id, delivery)) = self.duo.end(Side::Client).poll_delivery() {
            let len = delivery.run.len();
            self.duo.end(Side::Client).consumed(id, len as u64);
            if let Some((since, came)) = self.fresh.get_mut(&id) {
                *came += len;
                if *came == ECHO_BYTES {
                    self.outcome.fresh.push(self.duo.now - *since);
                    self.fresh.remove(&id);
                }
                continue;
            }
            self.echo.came += len;
            while self.echo.came >= ECHO_BYTES && !self.echo.sent.is_empty() {
                self.echo.came -= ECHO_BYTES;
                let sent = self.echo.sent.remove(0);
                self.outcome.echoes.push(self.duo.now - sent);
            }
        }
    }

    fn fill_bulk(&mut self) {
        let count = self.plan.read + self.plan.unread;
        let end = self.duo.end(Side::Client);
        let mut lacking = std::mem::take(&mut self.served);
        while self.bulk.len() < count as usize {
            let Some(id) = end.open(self.plan.kind) else { break };
            if self.bulk.len() >= self.plan.read as usize {
                self.unread.insert(id);
            }
            self.bulk.push(id);
            lacking.push(id);
        }
        end.take_served(&mut lacking);
        let ready = (READY_BYTES / u64::from(count).max(1)).max(STREAM_READY_BYTES_MIN);
        for id in lacking.drain(..) {
            // The other streams have nothing more to send.
            if !self.bulk.contains(&id) {
                continue;
            }
            while end.unsent(id).is_some_and(|unsent| unsent < ready) {
                end.write(id, vec![7; PIECE_BYTES].into());
            }
        }
        self.served = lacking;
    }

    fn send_echo(&mut self) {
        let (Some(every), now) = (self.plan.echo_every, self.duo.now) else { return };
        let end = self.duo.end(Side::Client);
        if now < self.echo.next {
            return;
        }
        if self.echo.stream.is_none() {
            self.echo.stream = end.open(StreamKind::Ordered);
        }
        if let Some(id) = self.echo.stream {
            end.write(id, vec![9; ECHO_BYTES].into());
            self.echo.sent.push(now);
            self.echo.next = now + every;
        }
    }

    fn open_fresh(&mut self) {
        let (Some(every), now) = (self.plan.fresh_every, self.duo.now) else { return };
        let end = self.duo.end(Side::Client);
        if now < self.next_fresh {
            return;
        }
        if let Some(id) = end.open(StreamKind::Ordered) {
            end.write(id, vec![5; ECHO_BYTES].into());
            end.finish(id);
            self.fresh.insert(id, (now, 0));
            self.next_fresh = now + every;
        }
    }

    fn send_urgent(&mut self) {
        let (Some((every, len)), now) = (self.plan.urgent_every, self.duo.now) else { return };
        let end = self.duo.end(Side::Client);
        if now < self.next_urgent {
            return;
        }
        if let Some(id) = end.open(StreamKind::Object) {
            end.set_priority(id, Priority::Urgent);
            end.write(id, vec![3; len].into());
            end.finish(id);
            self.urgent.insert(id, now);
            self.next_urgent = now + every;
        }
    }

    fn read(&mut self) {
        while let Some((id, delivery)) = self.duo.end(Side::Server).poll_delivery() {
            let len = delivery.run.len() as u64;
            let got = self.got.entry(id).or_insert(0);
            *got += len;
            let end = self.duo.end(Side::Server);
            if self.unread.contains(&id) {
                continue;
            }
            end.consumed(id, len);
            let is_fresh = self.fresh.contains_key(&id);
            if Some(id) == self.echo.stream || is_fresh {
                end.write(id, delivery.run.to_vec().into());
            }
            if is_fresh && *got == ECHO_BYTES as u64 {
                end.finish(id);
            }
            if let (Some(began), Some((_, all))) = (self.urgent.get(&id), self.plan.urgent_every)
                && *got == all as u64
            {
                self.outcome.urgent.push(self.duo.now - *began);
            }
        }
        let unread = self.duo.end(Side::Server).stats().unread.bytes();
        self.outcome.most_unread = self.outcome.most_unread.max(unread);
    }

    fn advance(&mut self) -> Result<(), String> {
        let now = self.duo.now;
        let due = self.duo.next_timeout().map(|due| due.max(now + Duration::from_micros(10)));
        let echo = self.plan.echo_every.map(|_| self.echo.next);
        let urgent = self.plan.urgent_every.map(|_| self.next_urgent);
        let fresh = self.plan.fresh_every.map(|_| self.next_fresh);
        let apps = [echo, fresh, urgent].map(|at| at.filter(|at| *at > now));
        let all = [due, self.wire.next()].into_iter().chain(apps);
        let next = all.flatten().min().ok_or("nothing will ever happen")?;
        self.duo.now = now.max(next);
        while let Some(packet) = self.wire.pop(self.duo.now) {
            let Cargo::Datagram(bytes) = packet.cargo else { continue };
            let to = if packet.to == index(Side::Client) { Side::Client } else { Side::Server };
            self.duo.give(to, [bytes]);
        }
        Ok(())
    }
}
