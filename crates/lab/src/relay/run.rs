//! The loop of the relay thread.

use super::arena::Arena;
use super::arena::Slice;
use super::control::{Mailbox, Request, Snapshot};
use super::cut::{Copies, Piece, cut};
use super::health::Health;
use super::line::Arrival;
use super::packet::{self, Layout};
use super::rebuild::{Corruption, Packet};
use super::routes::{MAIN_DOWN, MAIN_UP, Next, Routes};
use super::translator::{Passage, Translator};
use crate::lab::Access;
use hikyaku_link::{Direction, PathSpec, Schedule};
use hikyaku_tun::{Header, Tun, prefer_this_thread};
use hikyaku_units::{Instant, Rate};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::time::Duration;

/// What a relay does.
#[derive(Clone, Debug)]
pub(crate) struct RelaySpec {
    pub(crate) path: PathSpec,
    /// Each server's own line.
    pub(crate) access: Vec<Access>,
    pub(crate) schedule: Schedule,
    pub(crate) corruption: Corruption,
    /// How often the client's UDP flows get other ports.
    pub(crate) rebind_every: Option<Duration>,
    pub(crate) seed: u64,
}

/// The state of the relay thread.
#[derive(Debug)]
pub(crate) struct Relay {
    spec: RelaySpec,
    /// The path as settings and schedule have made it.
    path: PathSpec,
    schedule_done: usize,
    mailbox: Mailbox,
    epoch: std::time::Instant,
    ports: Vec<Tun>,
    routes: Routes,
    translator: Option<Translator>,
    arena: Arena,
    pieces: Vec<Piece>,
    /// What arrives by then has been slept for so long that waking takes time.
    awake: Instant,
    health: Health,
}

/// The client's port.
const CLIENT: u32 = 0;
/// How many packets are read from a port before the others have their turn.
const READ_BATCH: usize = 32;
/// How many packets are delivered before the ports are read.
const DELIVER_BATCH: usize = 64;
/// The most memory for packets in flight.
const MOST_MEMORY: u64 = 6 << 30;
/// Closer arrivals than this are waited for awake: sleeping takes longer.
const SPIN: Duration = Duration::from_micros(5);
/// A processor that has slept for longer than this is slow to wake, so it is woken earlier than
/// needed, by so much. At most a tenth of the time is spent awake in vain.
const LONG_SLEEP: Duration = Duration::from_millis(2);
const EARLY: Duration = Duration::from_micros(200);

impl Relay {
    /// A relay between `ports`: the client's first, then the servers'.
    pub(crate) fn new(spec: RelaySpec, ports: Vec<Tun>, mailbox: Mailbox) -> io::Result<Self> {
        Ok(Self {
            path: spec.path.clone(),
            schedule_done: 0,
            mailbox,
            epoch: std::time::Instant::now(),
            routes: Routes::new(&spec.path, &spec.access, spec.seed),
            translator: spec.rebind_every.map(Translator::new),
            arena: Arena::new(expected_memory(&spec.path), MOST_MEMORY)?,
            pieces: Vec::new(),
            awake: Instant::ZERO,
            health: Health::new(&ports),
            ports,
            spec,
        })
    }

    /// Moves packets until told to stop.
    pub(crate) fn run(mut self) {
        be_punctual();
        // The clock starts with the thread, whose processor time is counted.
        self.restart();
        loop {
            let mut moved = self.deliver();
            self.follow_schedule();
            for port in 0..self.ports.len() {
                moved += self.read_port(port);
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

    /// Delivers what has arrived. Returns how much.
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
                // The head may be shared with a copy that is still to come.
                let mut head = self.arena.get(head).to_vec();
                match translator.inward(self.now(), &mut head) {
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

    /// Takes packets that a namespace has sent. Returns how many.
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
                translator.outward(now, &mut space[..len]);
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

    /// Puts a packet on a link, cut as the link demands.
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

    /// Makes the changes whose time has come.
    fn follow_schedule(&mut self) {
        while let Some(step) = self.spec.schedule.steps().get(self.schedule_done).copied()
            && step.at <= self.now()
        {
            self.schedule_done += 1;
            step.setting.apply(&mut self.path, step.at);
            self.change_main(step.at);
        }
    }

    fn change_main(&mut self, now: Instant) {
        for (line, direction) in [(MAIN_UP, Direction::Up), (MAIN_DOWN, Direction::Down)] {
            self.routes.lines[line].set_spec(now, self.path.link(direction));
        }
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self) {
        let step = self.spec.schedule.steps().get(self.schedule_done).map(|step| step.at);
        let arrival = self.routes.earliest().map(|(at, _)| at);
        let next = [step, arrival].into_iter().flatten().min();
        let mut timeout = next.map(|next| next - self.now());
        if let (Some(wait), Some(next)) = (&mut timeout, next) {
            if *wait > LONG_SLEEP {
                self.awake = next;
            }
            let awake_for = if next <= self.awake { EARLY } else { SPIN };
            if *wait <= awake_for {
                return;
            }
            if next <= self.awake {
                *wait -= EARLY;
            }
        }
        let timeout = timeout.map(timespec);
        let mut fds = vec![PollFd::new(&*self.mailbox.wake, PollFlags::IN)];
        fds.extend(self.ports.iter().map(|port| PollFd::new(port, PollFlags::IN)));
        // An interruption is as good as a wake-up: the loop looks at everything anyway.
        let _ = poll(&mut fds, timeout.as_ref());
        if !fds[0].revents().is_empty() {
            let _ = rustix::io::read(&*self.mailbox.wake, &mut [0; 8]);
        }
    }

    fn answer(&mut self) -> Flow {
        while let Ok(request) = self.mailbox.requests.try_recv() {
            match request {
                Request::Set(settings) => {
                    let now = self.now();
                    for setting in settings {
                        setting.apply(&mut self.path, now);
                    }
                    self.change_main(now);
                }
                Request::Restart => self.restart(),
                Request::Snapshot(reply) => {
                    // Nobody waits for it any more if this fails.
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
        self.path = self.spec.path.clone();
        self.schedule_done = 0;
        self.routes = Routes::new(&self.spec.path, &self.spec.access, self.spec.seed);
        self.health = Health::new(&self.ports);
        self.awake = Instant::ZERO;
        self.epoch = std::time::Instant::now();
    }

    fn snapshot(&mut self) -> Snapshot {
        let at = self.now();
        let access: Vec<_> = self.routes.access().collect();
        let mut counters = |line: usize| *self.routes.lines[line].link.counters_at(at);
        Snapshot {
            at,
            path: self.path.clone(),
            up: counters(MAIN_UP),
            down: counters(MAIN_DOWN),
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

/// Asks the kernel to wake this thread on time. Where it may not, the lateness shows it.
fn be_punctual() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let _ = prefer_this_thread();
}

fn timespec(duration: Duration) -> Timespec {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: i64::from(duration.subsec_nanos()) }
}

/// The packets that the path holds when it is full, and a quarter more for the gaps between them.
fn expected_memory(path: &PathSpec) -> u64 {
    let held = |direction| {
        let link = path.link(direction);
        let rate = link.rate.unwrap_or(Rate::ZERO);
        let queue = link.queue.map_or(0, |queue| queue.bytes());
        let flight = rate.in_time(link.delay + link.jitter + link.reorder.extra).bytes();
        (flight + queue).min(MOST_MEMORY / 4)
    };
    // Most traffic goes one way; what goes the other is mostly acknowledgements.
    held(Direction::Up).max(held(Direction::Down)) * 5 / 4
}
