//! Flows between two places, the links that they share, and one clock.

use crate::duo::Mark;
use crate::pair::{CLIENT, Pair, SERVER};
use crate::pattern::Pattern;
use crate::scenario::{FlowEnd, FlowKind, FlowSpec};
use crate::tcp::Tcp;
use crate::wire::{Cargo, Packet, Way, Wire};
use hikyaku_link::{Counters, LinkSpec};
use hikyaku_units::Instant;
use std::fmt;
use std::time::Duration;

/// Why a run failed. It can be repeated with `seed`.
#[derive(Debug)]
pub struct SimError {
    /// What happened.
    pub what: String,
    /// When it happened.
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

/// The specification of a world.
pub(crate) struct Plan {
    pub(crate) up: LinkSpec,
    pub(crate) down: LinkSpec,
    /// Changes of the links: (time, up, down).
    pub(crate) changes: Vec<(Instant, LinkSpec, LinkSpec)>,
    pub(crate) flows: Vec<FlowSpec>,
    /// When the world ends, or `None` if it ends with its flows.
    pub(crate) time: Option<Duration>,
    /// When the link's counters are recorded.
    pub(crate) mark: Duration,
    pub(crate) seed: u64,
    /// Maximum simulated time.
    pub(crate) limit: Duration,
}

/// The result of a world.
pub(crate) struct Ending {
    pub(crate) took: Duration,
    pub(crate) flows: Vec<FlowEnd>,
    pub(crate) up: Counters,
    pub(crate) up_at_mark: Counters,
}

/// A running simulation.
pub(crate) struct World {
    now: Instant,
    began: Instant,
    plan: Plan,
    flows: Vec<Flow>,
    wire: Wire,
    marked: Option<Counters>,
    steps: u64,
}

struct Flow {
    /// The one-way delay of its path in addition to that of the links.
    extra: Duration,
    kind: Kind,
}

enum Kind {
    Ours(Box<Pair>),
    Tcp(Box<Tcp>),
}

/// Maximum steps for each packet. More steps are a busy loop at any rate in use here.
const STEPS_PER_PACKET_MAX: u64 = 40;

impl World {
    /// A world whose clock starts at one second, so that earlier times exist.
    pub(crate) fn new(mut plan: Plan) -> Self {
        let now = Instant::from_millis(1000);
        let mut rng = fastrand::Rng::with_seed(plan.seed);
        let delay = plan.up.delay;
        let specs = std::mem::take(&mut plan.flows);
        let flows = (plan.seed..).zip(specs).map(|(seed, spec)| {
            let begins = now + spec.begins;
            let kind = match spec.kind {
                FlowKind::Ours { client, server, load, way } => {
                    let (configs, load) = ([&*client, &*server], (load, delay + spec.extra));
                    let pair = Pair::new(begins, configs, load, Pattern::new(seed), &mut rng);
                    Kind::Ours(Box::new(pair.beside(way)))
                }
                FlowKind::Tcp(congestion) => Kind::Tcp(Box::new(Tcp::new(begins, congestion))),
            };
            Flow { extra: spec.extra, kind }
        });
        let flows = flows.collect();
        let wire = Wire::new([&plan.up, &plan.down], &mut rng);
        Self { now, began: now, plan, flows, wire, marked: None, steps: 0 }
    }

    /// Runs to the end.
    pub(crate) fn run(mut self) -> Result<Ending, SimError> {
        while !self.is_done() {
            self.step()?;
        }
        let up = self.wire.counters(self.now);
        let end = |flow: Flow| match flow.kind {
            Kind::Ours(pair) => FlowEnd::Ours(Box::new(pair.end())),
            Kind::Tcp(tcp) => FlowEnd::Tcp(tcp.end()),
        };
        Ok(Ending {
            took: self.now - self.began,
            flows: self.flows.into_iter().map(end).collect(),
            up_at_mark: self.marked.unwrap_or(up),
            up,
        })
    }

    fn is_done(&self) -> bool {
        match self.plan.time {
            Some(time) => self.now - self.began >= time,
            None => self.flows.iter().all(Flow::is_over),
        }
    }

    fn step(&mut self) -> Result<(), SimError> {
        let packet = self.wire.next();
        let change = self.plan.changes.first().map(|change| change.0);
        let wakes = self.flows.iter().map(|flow| flow.wake(CLIENT).min(flow.wake(SERVER)));
        let next = [packet, change, wakes.min()].into_iter().flatten().min();
        let next = next.ok_or_else(|| self.error("nothing will ever happen"))?;
        self.advance(next)?;
        if change.is_some_and(|at| at <= self.now) {
            let (_, up, down) = self.plan.changes.remove(0);
            self.wire.set(self.now, [up, down]);
        }
        let mut touched = vec![[false; 2]; self.flows.len()];
        while let Some(packet) = self.wire.pop(self.now) {
            let (flow, to) = (packet.flow, packet.to);
            touched[flow][to] = true;
            for (later, bytes) in self.flows[flow].deliver(self.now, packet) {
                self.wire.hold(self.now + later, flow, to, bytes);
            }
        }
        for (flow, touched) in touched.into_iter().enumerate() {
            for host in [CLIENT, SERVER] {
                if touched[host] || self.flows[flow].wake(host) <= self.now {
                    self.turn(flow, host)?;
                }
            }
        }
        Ok(())
    }

    fn advance(&mut self, to: Instant) -> Result<(), SimError> {
        self.steps += 1;
        let allowed = 100_000 + self.wire.sent() * STEPS_PER_PACKET_MAX;
        if self.steps > allowed {
            return Err(self.error("busy loop"));
        }
        self.now = self.now.max(to);
        let elapsed = self.now - self.began;
        if elapsed > self.plan.limit {
            return Err(self.error("took too long"));
        }
        self.flows.iter_mut().for_each(|flow| flow.note(self.now));
        if self.marked.is_none() && elapsed >= self.plan.mark {
            self.marked = Some(self.wire.counters(self.now));
        }
        Ok(())
    }

    /// Lets one end of a flow do everything that it has to do now.
    fn turn(&mut self, flow: usize, from: usize) -> Result<(), SimError> {
        let (now, wire) = (self.now, &mut self.wire);
        let Flow { extra, kind } = &mut self.flows[flow];
        let way = Way { flow, from, extra: *extra };
        let done = match kind {
            Kind::Ours(pair) => pair.turn(now, from, &mut |bytes, ip_len| {
                wire.send(now, way, Cargo::Datagram(bytes.to_vec()), ip_len);
            }),
            Kind::Tcp(tcp) => {
                tcp.turn(now, from, &mut |number, ip_len| {
                    wire.send(now, way, Cargo::Segment(number), ip_len);
                });
                Ok(())
            }
        };
        done.map_err(|what| self.error(&format!("flow {flow}: {what}")))
    }

    fn error(&self, what: &str) -> SimError {
        SimError { what: what.to_owned(), at: self.now, seed: self.plan.seed }
    }
}

impl Flow {
    fn wake(&self, host: usize) -> Instant {
        match &self.kind {
            Kind::Ours(pair) => pair.wake(host),
            Kind::Tcp(tcp) => tcp.wake(host),
        }
    }

    fn is_over(&self) -> bool {
        matches!(&self.kind, Kind::Ours(pair) if pair.is_over())
    }

    fn note(&mut self, now: Instant) {
        match &mut self.kind {
            Kind::Ours(pair) => pair.note(now),
            Kind::Tcp(tcp) => tcp.note(now),
        }
    }

    /// Delivers a packet. Returns the datagrams that an attacker delivers instead, and their
    /// additional delays.
    fn deliver(&mut self, now: Instant, packet: Packet) -> Vec<(Duration, Vec<u8>)> {
        let Packet { to, cargo, mark, .. } = packet;
        match (&mut self.kind, cargo) {
            (Kind::Ours(pair), Cargo::Datagram(bytes)) => {
                return pair.arrive(now, to, bytes, mark);
            }
            (Kind::Ours(pair), Cargo::Meddled(bytes)) => pair.deliver(now, to, bytes, Mark::None),
            (Kind::Tcp(tcp), Cargo::Segment(number)) => tcp.deliver(now, to, number),
            // Packets go to the flow that sent them.
            _ => {}
        }
        Vec::new()
    }
}
