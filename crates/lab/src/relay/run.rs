//! The main loop of the relay thread.

use super::arena::Arena;
use super::arena::Slice;
use super::control::{Mailbox, PathState, Request, Snapshot, Target};
use super::cut::{Copies, Piece, cut};
use super::health::Health;
use super::line::Arrival;
use super::packet::{self, Layout};
use super::rebuild::{Corruption, Packet};
use super::routes::{CLIENT, Next, Routes, Topology, lines_of};
use super::translator::{Passage, Translator};
use super::waiting::Watch;
use hikyaku_link::{Direction, LinkSpec, PathSpec, Schedule, Setting};
use hikyaku_tun::{Header, Tun, prefer_this_thread};
use hikyaku_units::{Instant, Rate};
use rustix::event::Timespec;
use std::io;
use std::time::Duration;

/// Description of a relay.
#[derive(Clone, Debug)]
pub(crate) struct RelaySpec {
    pub(crate) topology: Topology,
    /// The links between the ports: one for a star, one for each pair of a mesh.
    pub(crate) paths: Vec<PathSpec>,
    pub(crate) schedule: Schedule,
    pub(crate) corruption: Corruption,
    /// Interval at which the NAT gives the client's UDP flows new ports.
    pub(crate) rebind_every: Option<Duration>,
    pub(crate) seed: u64,
}

/// The state of the relay thread.
#[derive(Debug)]
pub(crate) struct Relay {
    spec: RelaySpec,
    /// The current settings of the paths, after `lab set` and the schedule.
    paths: Vec<PathSpec>,
    schedule_done: usize,
    mailbox: Mailbox,
    epoch: std::time::Instant,
    ports: Vec<Tun>,
    watch: Watch,
    routes: Routes,
    translator: Option<Translator>,
    arena: Arena,
    pieces: Vec<Piece>,
    /// The next event when the last long sleep began. For events up to this time the thread wakes up
    /// earlier by `WAKE_UP_MARGIN`.
    awake: Instant,
    /// Whether any link has cross traffic, and until when it has been generated.
    has_background: bool,
    background_until: Instant,
    /// When the last packet was delivered.
    delivered: Instant,
    health: Health,
}

/// Number of packets read from a port before the next port is served.
const READ_BATCH: usize = 32;
/// Number of packets delivered before the ports are read again.
const DELIVER_BATCH: usize = 64;
/// Limit on the memory for packets in flight, in bytes.
const MEMORY_BYTES_MAX: u64 = 6 << 30;
/// Initial memory for a lab with several paths, in bytes, if no single path needs more.
const MANY_PATHS_MEMORY_BYTES: u64 = 256 << 20;
/// The thread busy-waits for packets due within this time, because sleeping takes longer.
const BUSY_WAIT_MAX: Duration = Duration::from_micros(5);
/// After a sleep longer than `LONG_SLEEP` a processor is slow to wake up, so the thread wakes up
/// earlier by `WAKE_UP_MARGIN`. It therefore busy-waits for at most a tenth of the time.
const LONG_SLEEP: Duration = Duration::from_millis(2);
const WAKE_UP_MARGIN: Duration = Duration::from_micros(200);
/// While packets follow each other within `BUSY_GAP`, the thread sleeps `COALESCED` longer, as network cards do with their
/// interrupts, and delivers several packets in one go: a sleep for each costs a whole processor at 100,000 packets a second.
const BUSY_GAP: Duration = Duration::from_micros(100);
const COALESCED: Duration = Duration::from_micros(40);
/// Interval at which cross traffic is generated if no packets arrive.
const BACKGROUND_INTERVAL: Duration = Duration::from_millis(1);

impl Relay {
    /// A relay between `ports`: those of the client and the servers, or one for each site.
    pub(crate) fn new(spec: RelaySpec, ports: Vec<Tun>, mailbox: Mailbox) -> io::Result<Self> {
        Ok(Self {
            paths: spec.paths.clone(),
            schedule_done: 0,
            mailbox,
            epoch: std::time::Instant::now(),
            routes: Routes::new(&spec.topology, &spec.paths, spec.seed),
            translator: spec.rebind_every.map(Translator::new),
            arena: Arena::new(expected_memory(&spec.paths), MEMORY_BYTES_MAX)?,
            pieces: Vec::new(),
            awake: Instant::ZERO,
            has_background: have_background(&spec.paths),
            background_until: Instant::ZERO,
            delivered: Instant::ZERO,
            health: Health::new(&ports),
            watch: Watch::new(&ports)?,
            ports,
            spec,
        })
    }

    /// Moves packets until it is told to stop.
    pub(crate) fn run(mut self) {
        request_precise_wakeups();
        // The clock starts in this thread, because its processor time is measured.
        self.restart();
        loop {
            let mut moved = self.deliver();
            self.follow_schedule();
            self.generate_background();
            let (count, ports) = self.watch.readable();
            for port in &ports[..count] {
                moved += self.read_port(*port);
            }
            if moved == 0 {
                self.wait();
            }
            if self.answer() == Flow::Stop {
                return;
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.epoch.elapsed()
    }

    /// Delivers the packets that are due. Returns how many.
    fn deliver(&mut self) -> usize {
        let mut now = self.now();
        for count in 0..DELIVER_BATCH {
            let Some((at, line)) = self.routes.earliest() else { return count };
            if at > now {
                return count;
            }
            let Some(arrival) = self.routes.lines[line].pop() else { return count };
            match self.routes.next(line, arrival.port) {
                Next::Line(next) => self.offer(next, at, arrival.packet, arrival.port),
                Next::Port => {
                    self.health.lateness.record(at, now);
                    self.write(arrival);
                    now = self.now();
                    self.delivered = now;
                }
            }
        }
        DELIVER_BATCH
    }

    fn write(&mut self, arrival: Arrival) {
        let Packet { head, body } = arrival.packet;
        let port = &self.ports[arrival.port as usize];
        let written = match &self.translator {
            Some(translator) if arrival.port == CLIENT => {
                // The head may be shared with a duplicate that is still in flight.
                let mut head = self.arena.get(head).to_vec();
                match translator.translate_inbound(self.now(), &mut head) {
                    Passage::Passes => port.write(&head, self.arena.get(body)),
                    Passage::Dropped => Ok(()),
                }
            }
            _ => port.write(self.arena.get(head), self.arena.get(body)),
        };
        if written.is_err() {
            self.health.refused += 1;
        }
        arrival.packet.release(&mut self.arena);
    }

    /// Reads packets that a namespace has sent. Returns how many.
    fn read_port(&mut self, port: usize) -> usize {
        for count in 0..READ_BATCH {
            let Some(space) = self.arena.space() else {
                self.health.no_memory += 1;
                let mut sink = vec![0; Tun::LARGEST];
                return usize::from(matches!(self.ports[port].read(&mut sink), Ok(Some(_))));
            };
            let Ok(Some(len)) = self.ports[port].read(space) else { return count };
            let now = Instant::ZERO + self.epoch.elapsed();
            if let (Some(translator), CLIENT) = (&mut self.translator, port as u32) {
                translator.translate_outbound(now, &mut space[..len]);
            }
            let head = self.arena.commit(len);
            let packet = Packet { head, body: Slice::EMPTY };
            let bytes = &self.arena.get(head)[Header::LEN.min(len)..];
            let first = packet::destination(bytes)
                .and_then(|destination| self.routes.first(port as u32, destination));
            match first {
                Some((line, to)) => self.offer(line, now, packet, to),
                None => {
                    self.health.stray += 1;
                    packet.release(&mut self.arena);
                }
            }
        }
        READ_BATCH
    }

    /// Offers a packet to a link, split as the link requires.
    fn offer(&mut self, line: usize, now: Instant, packet: Packet, port: u32) {
        let Some(layout) = Layout::parse(self.arena.get(packet.head), packet.len()) else {
            self.health.stray += 1;
            packet.release(&mut self.arena);
            return;
        };
        let head = &self.arena.get(packet.head)[Header::LEN..];
        let ecn = packet::ecn(head, layout.ip);
        let line = &mut self.routes.lines[line];
        cut(&mut line.link, now, &layout, ecn, &mut self.pieces);
        for piece in &self.pieces {
            let made = packet.piece(&mut self.arena, &layout, piece).and_then(|made| {
                let Some(choice) = piece.corrupt else { return Some(made) };
                let damaged = made.corrupted(&mut self.arena, self.spec.corruption, choice);
                made.release(&mut self.arena);
                damaged
            });
            let Some(made) = made else {
                self.health.no_memory += 1;
                continue;
            };
            let Piece { at, departs, order, copies, .. } = *piece;
            if copies == Copies::Two {
                let packet = made.share(&mut self.arena);
                line.push(Arrival { at, departs, packet, port }, order);
            }
            line.push(Arrival { at, departs, packet: made, port }, order);
        }
        packet.release(&mut self.arena);
    }

    /// Generates cross traffic up to the current time. In small steps, because a large one would
    /// delay other packets.
    fn generate_background(&mut self) {
        let now = self.now();
        if !self.has_background || now - self.background_until < BACKGROUND_INTERVAL {
            return;
        }
        self.background_until = now;
        // A packet that arrives from one link is offered to the next with its arrival time. Cross
        // traffic therefore must not advance a link beyond the earliest pending arrival.
        let until = self.routes.earliest().map_or(now, |(at, _)| at.min(now));
        for line in &mut self.routes.lines {
            line.link.advance(until);
        }
    }

    /// Applies the changes of the schedule that are due.
    fn follow_schedule(&mut self) {
        while let Some(step) = self.spec.schedule.steps().get(self.schedule_done).copied()
            && step.at <= self.now()
        {
            self.schedule_done += 1;
            self.change(&[(Target::All, step.setting)], step.at);
        }
    }

    fn change(&mut self, changes: &[(Target, Setting)], now: Instant) {
        for (index, path) in self.paths.iter_mut().enumerate() {
            let here = |target: Target| target == Target::All || target == Target::Path(index);
            let before = path.clone();
            for (_, setting) in changes.iter().filter(|(target, _)| here(*target)) {
                setting.apply(path, now);
            }
            if *path == before {
                continue;
            }
            let (up, down) = lines_of(index);
            self.routes.lines[up].set_spec(now, path.link(Direction::Up));
            self.routes.lines[down].set_spec(now, path.link(Direction::Down));
        }
        self.has_background = have_background(&self.paths);
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self) {
        let step = self.spec.schedule.steps().get(self.schedule_done).map(|step| step.at);
        let arrival = self.routes.earliest().map(|(at, _)| at);
        let next = [step, arrival].into_iter().flatten().min();
        let now = self.now();
        let background_wait = self.has_background.then_some(BACKGROUND_INTERVAL);
        let mut timeout = next.map(|next| next - now);
        if let Some(wait) = &mut timeout
            && (*wait).max(now - self.delivered) < BUSY_GAP
        {
            *wait += COALESCED;
        } else if let (Some(wait), Some(next)) = (&mut timeout, next) {
            if *wait > LONG_SLEEP {
                self.awake = next;
            }
            let awake_for = if next <= self.awake { WAKE_UP_MARGIN } else { BUSY_WAIT_MAX };
            if *wait <= awake_for {
                return;
            }
            if next <= self.awake {
                *wait -= WAKE_UP_MARGIN;
            }
        }
        let timeout = [timeout, background_wait].into_iter().flatten().min().map(timespec);
        if self.watch.sleep(&*self.mailbox.wake, timeout.as_ref()) {
            let _ = rustix::io::read(&*self.mailbox.wake, &mut [0; 8]);
        }
    }

    fn answer(&mut self) -> Flow {
        while let Ok(request) = self.mailbox.requests.try_recv() {
            match request {
                Request::Set(changes) => self.change(&changes, self.now()),
                Request::Restart => self.restart(),
                Request::Snapshot(reply) => {
                    // If this fails, the requester no longer waits.
                    let _ = reply.send(self.snapshot());
                }
                Request::Stop => return Flow::Stop,
            }
        }
        Flow::GoOn
    }

    fn restart(&mut self) {
        for line in &mut self.routes.lines {
            while let Some(arrival) = line.pop() {
                arrival.packet.release(&mut self.arena);
            }
        }
        self.paths = self.spec.paths.clone();
        self.schedule_done = 0;
        self.routes = Routes::new(&self.spec.topology, &self.spec.paths, self.spec.seed);
        self.health = Health::new(&self.ports);
        self.has_background = have_background(&self.paths);
        (self.awake, self.background_until) = (Instant::ZERO, Instant::ZERO);
        self.delivered = Instant::ZERO;
        self.epoch = std::time::Instant::now();
    }

    fn snapshot(&mut self) -> Snapshot {
        let at = self.now();
        let access = self.routes.access().to_vec();
        let mut counters = |line: usize| *self.routes.lines[line].link.counters_at(at);
        Snapshot {
            at,
            paths: self
                .paths
                .iter()
                .enumerate()
                .map(|(index, path)| {
                    let (up, down) = lines_of(index);
                    PathState { path: path.clone(), up: counters(up), down: counters(down) }
                })
                .collect(),
            access: access
                .into_iter()
                .map(|both| both.map(|(up, down)| (counters(up), counters(down))))
                .collect(),
            lateness: self.health.lateness.clone(),
            cpu: self.health.cpu(),
            own_drops: self.health.own_drops(&self.ports),
            stray: self.health.stray,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    GoOn,
    Stop,
}

/// Requests precise wake-ups of this thread from the kernel. If they are not permitted, the
/// lateness shows it.
fn request_precise_wakeups() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let _ = prefer_this_thread();
}

fn timespec(duration: Duration) -> Timespec {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: i64::from(duration.subsec_nanos()) }
}

fn have_background(paths: &[PathSpec]) -> bool {
    let has = |link: &LinkSpec| link.background.is_some();
    paths.iter().any(|path| has(&path.up) || has(&path.down))
}

/// Memory for the packets that the paths hold when they are full, plus a quarter for gaps. Many
/// paths are seldom full at the same time.
fn expected_memory(paths: &[PathSpec]) -> u64 {
    let each: Vec<u64> = paths.iter().map(held_by).collect();
    let largest = each.iter().copied().max().unwrap_or(0);
    each.iter().sum::<u64>().min(largest.max(MANY_PATHS_MEMORY_BYTES))
}

fn held_by(path: &PathSpec) -> u64 {
    let held = |direction| {
        let link = path.link(direction);
        let rate = link.rate.unwrap_or(Rate::ZERO);
        let packets = u64::from(link.queue_packets.unwrap_or(0));
        let queue = link.queue.map_or(packets * 1500, |queue| queue.bytes());
        let flight = rate.in_time(link.delay + link.jitter + link.reorder.extra).bytes();
        (flight + queue).min(MEMORY_BYTES_MAX / 4)
    };
    // Most traffic flows in one direction; the other carries mostly ACKs.
    held(Direction::Up).max(held(Direction::Down)) * 5 / 4
}
