//! The thread that owns a socket and all connections over it.
//!
//! In each turn the driver receives datagrams, runs due timers, carries out commands, and serves every
//! connection that one of these concerned: its events go to the handles, its packets to the socket.
//! Each step does a bounded amount of work, so that the others get their turn. When nothing is left
//! to do, the driver sleeps until a datagram, a command or the next timer.
//!
//! It reads the clock after each system call that receives, and before each batch that it sends. The time of a turn's begin would
//! be wrong by up to a turn: a datagram would seem to arrive before it was sent, and the sender's smallest delay would be too small
//! for ten seconds.

mod commands;
mod door;
mod entry;
mod half_open;
mod lane;
mod news;
mod patience;
mod race;
mod receive;
mod seat;
mod serve;
mod sharers;
mod strays;
mod table;
mod transmit;
mod wakes;

pub(crate) use door::Door;
pub(crate) use race::{Attempt, ConnectRequest, Connected};
pub(crate) use seat::Seat;

use crate::clock::Clock;
use crate::ids::Ids;
use crate::load::Load;
use crate::mailbox::Mailbox;
use crate::paths::{Memory, Snapshot};
use crate::pool::Pool;
use crate::reply::Reply;
use entry::{Entry, Listed};
use hikyaku_udp::{Interest, Poller, RecvBatch, sharpen_timers};
use hikyaku_units::Instant;
use patience::Patience;
use race::{Race, RaceId};
use sharers::Sharers;
use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use table::Table;
use transmit::Outgoing;
use wakes::Wakes;

/// The arguments of [`Driver::new`].
pub(crate) struct Setup {
    pub(crate) socket: Seat,
    pub(crate) poller: Poller,
    pub(crate) mailbox: Arc<Mailbox>,
    /// The mailboxes of all drivers of the port, by their indices.
    pub(crate) peers: Arc<[Arc<Mailbox>]>,
    pub(crate) ids: Ids,
    /// The largest number of drivers of the endpoint.
    pub(crate) drivers: NonZeroU8,
    pub(crate) load: Arc<Load>,
    /// The beginning of time of all drivers of the port.
    pub(crate) start: std::time::Instant,
    pub(crate) door: Option<Door>,
    pub(crate) memory: Memory,
    pub(crate) device: Option<String>,
    pub(crate) linger: Duration,
    pub(crate) closing: Duration,
    /// Dropped when the driver has ended.
    pub(crate) ending: Reply<()>,
}

/// The state of one driver thread. The thread calls [`Driver::run`].
pub(crate) struct Driver {
    batch: RecvBatch,
    core: Core,
}

/// The state without the batch, which is borrowed while its messages are processed.
struct Core {
    socket: Seat,
    poller: Poller,
    mailbox: Arc<Mailbox>,
    peers: Arc<[Arc<Mailbox>]>,
    ids: Ids,
    load: Arc<Load>,
    clock: Clock,
    table: Table,
    timers: BTreeSet<(Instant, u32)>,
    /// Slots of the connections that are served in this turn.
    listed: VecDeque<u32>,
    pool: Pool,
    outgoing: Outgoing,
    sharers: Sharers,
    races: Vec<Race>,
    next_race: RaceId,
    door: Option<Door>,
    patience: Patience,
    wakes: Wakes,
    memory: Memory,
    remembered: Snapshot,
    writers: Vec<JoinHandle<()>>,
    device: Option<String>,
    linger: Duration,
    closing: Duration,
    overflows: Overflows,
    stage: Stage,
    /// Dropped after all other fields, the socket among them: the endpoint's `shutdown` waits for it.
    _ending: Reply<()>,
}

/// Datagrams that the kernel dropped because the socket's receive buffer was full.
#[derive(Default)]
struct Overflows {
    /// The last value of the kernel's counter, which wraps.
    last: u32,
    total: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Running,
    /// The endpoint was shut down or dropped. Until this time, connections deliver what was finished.
    Stopping(Instant),
}

/// Messages received in one system call: 512 KB together, so that they are in the processor's cache
/// when they are decrypted.
const MESSAGES: usize = 8;
/// Commands carried out in one turn.
const COMMANDS: usize = 256;
/// Bytes received in one turn from which on the driver does not sleep: more have probably arrived
/// meanwhile.
const BUSY: usize = 32 << 10;
/// The shortest sleep. Pacing makes up for a sender that wakes late.
const LEAST_SLEEP: Duration = Duration::from_micros(50);

impl Driver {
    pub(crate) fn new(setup: Setup) -> Self {
        let remembered = match &setup.memory {
            Memory::File(cache) if setup.door.is_some() => cache.snapshot(),
            _ => Snapshot::default(),
        };
        let core = Core {
            socket: setup.socket,
            poller: setup.poller,
            mailbox: setup.mailbox,
            peers: setup.peers,
            ids: setup.ids,
            load: setup.load,
            clock: Clock::since(setup.start),
            table: Table::default(),
            timers: BTreeSet::new(),
            listed: VecDeque::new(),
            pool: Pool::of(setup.drivers),
            outgoing: Outgoing::default(),
            sharers: Sharers::default(),
            races: Vec::new(),
            next_race: RaceId(0),
            door: setup.door,
            patience: Patience::new(),
            wakes: Wakes::default(),
            memory: setup.memory,
            remembered,
            writers: Vec::new(),
            device: setup.device,
            linger: setup.linger,
            closing: setup.closing,
            overflows: Overflows::default(),
            stage: Stage::Running,
            _ending: setup.ending,
        };
        Self { batch: RecvBatch::new(MESSAGES), core }
    }

    /// Runs until the endpoint was shut down or dropped and its connections have ended.
    pub(crate) fn run(mut self) {
        // If this fails, timers are late by up to 50 us, which pacing makes up for.
        let _ = sharpen_timers();
        loop {
            let received = self.core.receive(&mut self.batch) + self.core.take_strays();
            let now = self.core.clock.tick();
            self.core.run_timers(now);
            self.core.obey(now);
            self.core.run_races(now);
            self.core.serve();
            self.core.tell_load();
            if self.core.is_done(now) {
                break;
            }
            if received < BUSY && self.core.listed.is_empty() {
                self.core.sleep();
            } else {
                self.core.wakes.flush_if_due(now);
            }
        }
        self.core.finish();
    }
}

impl Core {
    /// Lists a connection to be served, if it is not listed already.
    fn list(&mut self, slot: u32) {
        if let Some(entry) = self.table.at(slot)
            && entry.listed == Listed::No
        {
            entry.listed = Listed::Yes;
            self.listed.push_back(slot);
        }
    }

    fn run_timers(&mut self, now: Instant) {
        while let Some(&(at, slot)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            if let Some(entry) = self.table.at(slot) {
                entry.due = None;
                entry.proto.handle_timeout(now);
                self.list(slot);
            }
        }
        let Stage::Stopping(until) = self.stage else { return };
        if until <= now {
            self.close_all();
        } else if !self.table.iter().any(|entry| entry.still_delivers()) {
            // Everything is delivered: only the closes are left to be sent.
            self.stage = Stage::Stopping(now);
        }
    }

    /// Sleeps until a datagram, a command or the next timer.
    fn sleep(&mut self) {
        self.wakes.flush();
        if self.races.iter().any(Race::is_restless) || !self.mailbox.lie_down() {
            return;
        }
        let now = self.clock.now();
        let races = self.races.iter().filter_map(Race::next_start);
        let stop = match self.stage {
            Stage::Stopping(until) if until > now => Some(until),
            Stage::Stopping(until) => Some(until + self.closing),
            _ => None,
        };
        let next =
            self.timers.first().map(|&(at, _)| at).into_iter().chain(races).chain(stop).min();
        let timeout = next.map(|at| (at - now).max(LEAST_SLEEP));
        let interest = if self.outgoing.is_stuck() { Interest::Both } else { Interest::Readable };
        // The wait fails only if the kernel has no memory; the next turn tries again.
        let _ = self.poller.wait(&*self.socket, interest, timeout);
        self.mailbox.get_up();
    }

    /// Closes the connections that are left after the time to deliver.
    fn close_all(&mut self) {
        let slots: Vec<u32> = self.table.iter().map(|entry| entry.key.slot).collect();
        for slot in slots {
            if let Some(entry) = self.table.at(slot) {
                entry.proto.close(hikyaku_proto::code::DONE, "");
                self.list(slot);
            }
        }
    }

    /// Publishes the number of connections, including those that begin.
    fn tell_load(&self) {
        self.load.set(self.table.len() + self.races.len());
    }

    fn is_done(&self, now: Instant) -> bool {
        match self.stage {
            Stage::Running => false,
            Stage::Stopping(until) => self.table.is_empty() || now > until + self.closing,
        }
    }

    fn finish(&mut self) {
        self.wakes.flush();
        if let Some(door) = &self.door {
            door.lobby.close();
            door.lobby.clear();
        }
        for entry in self.table.iter() {
            entry.end(hikyaku_proto::CloseReason::Local);
        }
        self.mailbox.close();
        for writer in self.writers.drain(..) {
            // A panic costs the entry of a path, which the next connection measures again.
            let _ = writer.join();
        }
    }

    /// Adds a new connection.
    fn adopt(&mut self, entry: Entry) {
        let slot = entry.key.slot;
        self.table.insert(entry);
        self.list(slot);
    }
}
