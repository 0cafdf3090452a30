//! A random world around one scheduler.

use crate::checker::{Checker, File, Segment, Told};
use hikyaku_spread::{
    AskId, Asking, Command, FileId, PoolId, SEGMENT_BYTES, ServerId, ServerSettings, Settings,
    Spread, Target, Work,
};
use hikyaku_units::{DataSize, Instant, Rate};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The kinds of events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No failures, and a cut arrives at once.
    Calm,
    /// Everything.
    Wild,
}

/// The number of steps after which a transfer counts as stuck.
const STEPS_MAX: u32 = 60_000;

/// The number of commands after which one poll counts as endless.
const COMMANDS_MAX: u32 = 10_000;

/// The behaviour of a server for its asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Working,
    Frozen,
    Dead,
}

struct Job {
    segments: Vec<Segment>,
    /// Positions in `segments` that were sent.
    sent: BTreeSet<usize>,
    /// Positions from here on are not sent.
    limit: usize,
    /// Segments that have arrived and are not reported as proven yet.
    unproven: Vec<Segment>,
    /// Whether the client has cut it off.
    is_cut: bool,
}

struct Server {
    mood: Mood,
    jobs: BTreeMap<AskId, Job>,
    /// Cuts on their way.
    cuts: Vec<(AskId, DataSize)>,
}

pub(crate) struct World {
    kind: Kind,
    rng: fastrand::Rng,
    spread: Spread,
    /// Some of the servers, and how many these are.
    pool: Option<(PoolId, usize)>,
    checker: Checker,
    servers: Vec<Server>,
    now: Instant,
    /// How often each segment has arrived.
    arrivals: BTreeMap<Segment, u32>,
}

impl World {
    pub(crate) fn new(kind: Kind, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let settings = Settings {
            planned_groups_max: if rng.bool() { 0 } else { 512 },
            begin_rate: Rate::from_bits_per_sec(rng.u64(1_000..400_000_000)),
        };
        let mut spread = Spread::new(settings);
        let count = rng.u16(1..=6);
        let limits: Vec<ServerSettings> = (0..count).map(|_| limits(&mut rng)).collect();
        for limits in &limits {
            spread.add_server(*limits).expect("six fit");
        }
        let members: Vec<ServerId> = (1..count).filter(|_| rng.bool()).map(ServerId).collect();
        let pool = (rng.bool() && !members.is_empty())
            .then(|| (spread.add_pool(&members, Instant::from_millis(1)), members.len()));
        if rng.bool() {
            spread.handle_capacity(Some(Rate::from_bits_per_sec(rng.u64(1_000..1_000_000_000))));
        }
        if rng.bool() {
            spread.handle_sink(Some(DataSize::from_bytes(rng.u64(1..100 << 20))));
        }
        let files: Vec<File> = (0..rng.usize(1..60)).map(|_| file(&mut rng, count)).collect();
        for file in &files {
            let replicas: Vec<ServerId> = file.replicas.iter().map(|&id| ServerId(id)).collect();
            spread.add_file(DataSize::from_bytes(file.size), &replicas).expect("it fits");
        }
        let server = |_| Server { mood: Mood::Working, jobs: BTreeMap::new(), cuts: Vec::new() };
        Self {
            kind,
            rng,
            spread,
            pool,
            checker: Checker::new(seed, files, limits),
            servers: (0..count).map(server).collect(),
            now: Instant::from_millis(1),
            arrivals: BTreeMap::new(),
        }
    }

    /// To the end of all files.
    pub(crate) fn run(mut self) {
        for server in 0..self.servers.len() {
            self.up(server);
        }
        let mut steps = 0;
        while self.spread.unfinished() > 0 {
            let jump = if self.wild(500) { 5_000 } else { self.rng.u64(1..100) };
            self.now += Duration::from_millis(jump);
            for server in 0..self.servers.len() {
                self.change_mood(server);
                self.hear_cuts(server);
                self.work(server);
            }
            self.disturb();
            self.obey();
            steps += 1;
            assert!(steps < STEPS_MAX, "seed {}: stuck", self.checker.seed);
        }
        self.obey();
        self.check_end();
    }

    /// True with a probability of one in `one_in`, in a wild world.
    fn wild(&mut self, one_in: u32) -> bool {
        self.kind == Kind::Wild && self.rng.u32(0..one_in) == 0
    }

    fn up(&mut self, server: usize) {
        let rtt = Duration::from_millis(self.rng.u64(1..400));
        self.checker.told[server] = Told::Up;
        self.checker.retried.remove(&(server as u16));
        self.spread.handle_up(ServerId(server as u16), rtt, self.now);
    }

    fn lose(&mut self, server: usize) {
        self.checker.told[server] = Told::Away;
        self.checker.retried.remove(&(server as u16));
        let found = &mut self.servers[server];
        for (ask, job) in core::mem::take(&mut found.jobs) {
            self.checker.release(ask, &job.segments);
        }
        found.cuts.clear();
        self.spread.handle_lost(ServerId(server as u16), self.now);
    }

    /// Server 0 is the one that lives; it has every file.
    fn change_mood(&mut self, server: usize) {
        if server == 0 || !self.wild(60) {
            return;
        }
        // A server that keeps its work is given up by its client.
        let frozen = match self.checker.limits[server].asking {
            Asking::Timed => Mood::Frozen,
            Asking::Pieces(_) | Asking::Ranges(_) => Mood::Dead,
        };
        let mood = [Mood::Working, Mood::Working, frozen, Mood::Dead][self.rng.usize(0..4)];
        let old = core::mem::replace(&mut self.servers[server].mood, mood);
        match (old, mood) {
            (Mood::Dead, Mood::Working | Mood::Frozen) => self.up(server),
            (Mood::Working | Mood::Frozen, Mood::Dead) => self.lose(server),
            _ => {}
        }
    }

    fn hear_cuts(&mut self, server: usize) {
        let is_calm = self.kind == Kind::Calm;
        let rng = &mut self.rng;
        let found = &mut self.servers[server];
        let cuts = core::mem::take(&mut found.cuts);
        for (ask, from) in cuts {
            if !is_calm && rng.u8(0..3) > 0 {
                found.cuts.push((ask, from));
                continue;
            }
            let Some(job) = found.jobs.get_mut(&ask) else { continue };
            job.limit = job.limit.min(self.checker.position(&job.segments, from.bytes()));
        }
    }

    /// A server sends some segments, from any of its asks, in any order.
    fn work(&mut self, server: usize) {
        if self.servers[server].mood != Mood::Working {
            return;
        }
        for _ in 0..self.rng.u32(1..4) {
            let asks: Vec<AskId> = self.servers[server].jobs.keys().copied().collect();
            let Some(&ask) = asks.get(self.rng.usize(0..asks.len().max(1))) else { return };
            self.send_segment(server, ask);
            if self.wild(30) {
                self.end(server, ask);
            }
        }
    }

    fn send_segment(&mut self, server: usize, ask: AskId) {
        let Some(job) = self.servers[server].jobs.get_mut(&ask) else { return };
        let left: Vec<usize> = (0..job.limit).filter(|at| !job.sent.contains(at)).collect();
        if left.is_empty() {
            return self.end(server, ask);
        }
        // A calm server sends in order, so that a cut never crosses what it has sent.
        let at =
            if self.kind == Kind::Calm { left[0] } else { left[self.rng.usize(0..left.len())] };
        job.sent.insert(at);
        let segment = job.segments[at];
        let range = self.checker.files[segment.0 as usize].range(segment.1);
        let is_right = self.kind == Kind::Calm || self.rng.u8(0..20) > 0;
        if is_right {
            job.unproven.push(segment);
        }
        *self.arrivals.entry(segment).or_default() += 1;
        self.checker.retried.remove(&(server as u16));
        let size = range.end - range.start;
        let first = self.rng.u64(0..=size);
        for bytes in [first, size - first] {
            let bytes = DataSize::from_bytes(bytes);
            self.spread.handle_progress(ServerId(server as u16), ask, bytes, self.now);
        }
        if self.rng.bool() {
            self.prove(server, ask);
        }
    }

    /// The hashes of what has arrived match.
    fn prove(&mut self, server: usize, ask: AskId) {
        let Some(job) = self.servers[server].jobs.get_mut(&ask) else { return };
        for (file, segment) in core::mem::take(&mut job.unproven) {
            let found = &mut self.checker.files[file as usize];
            let range = found.range(segment);
            found.proven.insert(segment);
            self.checker.owners.remove(&(file, segment));
            self.spread.handle_proven(FileId(file), range);
        }
    }

    fn end(&mut self, server: usize, ask: AskId) {
        self.prove(server, ask);
        let Some(job) = self.servers[server].jobs.remove(&ask) else { return };
        self.checker.release(ask, &job.segments);
        self.checker.retried.remove(&(server as u16));
        self.spread.handle_end(ServerId(server as u16), ask, self.now);
    }

    fn disturb(&mut self) {
        if let Some((pool, members)) = self.pool
            && self.rng.u8(0..30) == 0
        {
            self.spread.wake(pool, self.rng.usize(0..=members + 1), self.now);
        }
        let server = self.rng.usize(0..self.servers.len());
        let (id, file) =
            (ServerId(server as u16), self.rng.u32(0..self.checker.files.len() as u32));
        if server > 0 && self.wild(80) {
            self.checker.files[file as usize].replicas.remove(&id.0);
            for (&ask, job) in &self.servers[server].jobs {
                let of_file = |segment: &&Segment| segment.0 == file;
                let gone: Vec<Segment> = job.segments.iter().filter(of_file).copied().collect();
                self.checker.release(ask, &gone);
            }
            self.spread.handle_missing(id, FileId(file));
        }
        if self.wild(150) {
            self.void(file);
        }
        if self.wild(40) {
            let (ask, bytes) = (AskId(self.rng.u64(..)), DataSize::from_bytes(self.rng.u64(..)));
            self.spread.handle_end(ServerId(self.rng.u16(6..)), ask, self.now);
            self.spread.handle_progress(ServerId(self.rng.u16(6..)), ask, bytes, self.now);
            self.spread.handle_proven(FileId(self.rng.u32(60..)), 0..self.rng.u64(..));
            // Less than a segment proves nothing.
            self.spread.handle_proven(FileId(file), 1..SEGMENT_BYTES + 1);
        }
        if self.wild(100) {
            let target = if self.rng.u8(0..4) == 0 { Target::Busy } else { Target::Ready };
            self.spread.handle_target(target, self.now);
        }
        if self.wild(100) {
            let rate = Rate::from_bits_per_sec(self.rng.u64(0..1_000_000_000));
            self.spread.handle_ceiling(self.rng.bool().then_some(rate));
        }
    }

    /// A file has changed: what has come of it and what is on its way is of no use.
    fn void(&mut self, file: u32) {
        let found = &mut self.checker.files[file as usize];
        found.proven.clear();
        found.done = found.size == 0 && found.done;
        self.checker.owners.retain(|segment, _| segment.0 != file);
        for job in self.servers.iter_mut().flat_map(|server| server.jobs.values_mut()) {
            job.unproven.retain(|segment| segment.0 != file);
        }
        self.spread.handle_void(FileId(file));
    }

    fn obey(&mut self) {
        let mut count = 0;
        while let Some(command) = self.spread.poll_command(self.now) {
            count += 1;
            assert!(count < COMMANDS_MAX, "seed {}: commands without end", self.checker.seed);
            match command {
                Command::Ask { server, ask, work } => self.take(server, ask, &work),
                Command::Cut { server, ask, from } => self.cut(server, ask, from),
                Command::Cap { rate, .. } => {
                    assert_ne!(rate, Some(Rate::from_bits_per_sec(u64::MAX)))
                }
                Command::Retry { server } => {
                    if self.checker.told[usize::from(server.0)] == Told::Up {
                        self.checker.retried.insert(server.0);
                    }
                }
                Command::Rest { server } => assert_ne!(server, ServerId(0), "it is in no pool"),
                Command::Done { file } => self.checker.done(file),
            }
        }
        let wake = self.spread.poll_timeout();
        let is_later = wake.is_none_or(|wake| wake.at > self.now);
        assert!(is_later, "seed {}: it wants to be polled again at once", self.checker.seed);
    }

    fn take(&mut self, server: ServerId, ask: AskId, work: &Work) {
        let segments = self.checker.ask(server, ask, work);
        let (limit, sent, unproven) = (segments.len(), BTreeSet::new(), Vec::new());
        let job = Job { segments, sent, limit, unproven, is_cut: false };
        let jobs = &mut self.servers[usize::from(server.0)].jobs;
        jobs.insert(ask, job);
        let count = jobs.values().filter(|job| !job.is_cut).count();
        self.checker.count(server, count);
    }

    fn cut(&mut self, server: ServerId, ask: AskId, from: DataSize) {
        let found = &mut self.servers[usize::from(server.0)];
        found.cuts.push((ask, from));
        if let Some(job) = found.jobs.get_mut(&ask) {
            let at = self.checker.position(&job.segments, from.bytes());
            let (kept, gone) = job.segments.split_at(at);
            self.checker.release(ask, gone);
            job.is_cut |= kept.is_empty();
        }
        if self.kind == Kind::Calm {
            self.hear_cuts(usize::from(server.0));
        }
    }

    fn check_end(&self) {
        let seed = self.checker.seed;
        for (index, file) in self.checker.files.iter().enumerate() {
            assert!(file.done, "seed {seed}: no end of {index}");
        }
        for job in self.servers.iter().flat_map(|server| server.jobs.values()) {
            let all_sent = (0..job.limit).all(|at| job.sent.contains(&at));
            assert!(job.is_cut || all_sent, "seed {seed}: an ask goes on after the end");
        }
        if self.kind == Kind::Calm {
            let twice = self.arrivals.iter().find(|(_, count)| **count > 1);
            assert_eq!(twice, None, "seed {seed}");
        }
    }
}

fn limits(rng: &mut fastrand::Rng) -> ServerSettings {
    let asking = match rng.u8(0..4) {
        0 => Asking::Pieces(DataSize::from_bytes(rng.u64(1..10 << 20))),
        1 => Asking::Ranges(DataSize::from_bytes(rng.u64(1..10 << 20))),
        _ => Asking::Timed,
    };
    let small_file = DataSize::from_bytes([0, 10 << 10, 256 << 10, 9 << 20][rng.usize(0..4)]);
    ServerSettings { small_file, asking, asks_max: [1, 2, 5, usize::MAX][rng.usize(0..4)] }
}

fn file(rng: &mut fastrand::Rng, servers: u16) -> File {
    let size = match rng.u8(0..10) {
        0 => 0,
        1..=5 => rng.u64(1..300 << 10),
        6..=8 => rng.u64(1..5 << 20),
        _ => rng.u64(1..30 << 20),
    };
    let mut replicas: BTreeSet<u16> = (1..servers).filter(|_| rng.bool()).collect();
    replicas.insert(0);
    File { size, replicas, proven: BTreeSet::new(), done: false }
}
