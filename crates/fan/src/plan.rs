//! Which server is asked for what.
//!
//! A server with less asked of it than it sends in half a second is asked for more: of the files that it has, those with
//! the fewest replicas first. A server that has nothing left takes over what the slowest other one has not sent.

use crate::census::{File, ServerId};
use hikyaku_transfer::{Geometry, SEGMENT, SegmentIndex};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// The number of a request to a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct AskId(pub(crate) u64);

/// What is to be done now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// Ask for ranges of a file.
    Ranges { ask: AskId, server: ServerId, file: usize, ranges: Vec<(u64, u64)> },
    /// Ask for whole small files.
    Many { ask: AskId, server: ServerId, files: Vec<usize> },
    /// Take back what a request has not sent.
    Cut { ask: AskId },
}

/// The plan of one transfer.
pub(crate) struct Plan {
    servers: Vec<Server>,
    /// What is yet to be asked for, by the servers that have it; the fewest first.
    pools: BTreeMap<(usize, Vec<ServerId>), VecDeque<Piece>>,
    asks: BTreeMap<AskId, Ask>,
    next: u64,
}

/// A part of a file that nobody has been asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Piece {
    file: usize,
    /// Segments; the whole of a small file.
    first: u64,
    end: u64,
    size: u64,
}

struct Server {
    is_up: bool,
    /// Bytes per second, once some have come.
    rate: f64,
    /// Bytes that came since `since`.
    came: u64,
    since: Instant,
}

struct Ask {
    server: ServerId,
    at: Vec<ServerId>,
    pieces: Vec<Piece>,
    left: u64,
    is_cut: bool,
}

/// Small files are asked for whole, so many bytes and so many files at a time.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_FILES: usize = 512;
/// A server of which nothing is known yet is taken for one of this rate, in bytes per second.
const FIRST_RATE: f64 = 8e6;
/// A server has this much time's worth asked of it, beside a round trip.
const AHEAD: Duration = Duration::from_millis(700);
/// A request is for this much time's worth.
const PIECE_TIME: f64 = 0.25;
const PIECE_BYTES_MAX: u64 = 64 << 20;
/// The rate is that of so long.
const WINDOW: Duration = Duration::from_millis(500);
/// What takes less than this is not taken over.
const WORTH: f64 = 0.4;

impl Plan {
    /// These files, with their numbers, are to be fetched from so many servers.
    pub(crate) fn new<'a>(
        files: impl Iterator<Item = (usize, &'a File)>,
        servers: usize,
        now: Instant,
    ) -> Self {
        let server = || Server { is_up: true, rate: 0.0, came: 0, since: now };
        let mut plan = Self {
            servers: (0..servers).map(|_| server()).collect(),
            pools: BTreeMap::new(),
            asks: BTreeMap::new(),
            next: 0,
        };
        for (number, file) in files {
            let segments = Geometry::new(file.seen.size).map_or(0, Geometry::segments);
            if segments > 0 {
                let piece = Piece { file: number, first: 0, end: segments, size: file.seen.size };
                plan.put(&file.at, piece, Place::Back);
            }
        }
        plan
    }

    /// Whether nothing is left to be asked for or to come.
    pub(crate) fn is_done(&self) -> bool {
        self.asks.is_empty() && self.pools.values().all(VecDeque::is_empty)
    }

    /// Files of which a part can be had from no server that is up.
    pub(crate) fn out_of_reach(&mut self) -> Vec<usize> {
        let servers = &self.servers;
        let is_dead = |at: &[ServerId]| at.iter().all(|server| !servers[server.0].is_up);
        let dead = self.pools.iter_mut().filter(|((_, at), _)| is_dead(at));
        let mut files: Vec<usize> =
            dead.flat_map(|(_, pool)| pool.drain(..)).map(|piece| piece.file).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    fn put(&mut self, at: &[ServerId], piece: Piece, place: Place) {
        let pool = self.pools.entry((at.len(), at.to_vec())).or_default();
        match place {
            Place::Front => pool.push_front(piece),
            Place::Back => pool.push_back(piece),
        }
    }

    /// What is to be done now.
    pub(crate) fn next(&mut self, now: Instant) -> Vec<Command> {
        let mut commands = Vec::new();
        self.measure(now);
        for number in 0..self.servers.len() {
            let server = ServerId(number);
            while self.servers[number].is_up && self.asked_of(server) < self.wanted_of(server) {
                match self.take(server).or_else(|| self.take_over(server)) {
                    Some(command) => commands.push(command),
                    None => break,
                }
            }
        }
        commands
    }

    /// Bytes that were asked of a server and have not come.
    fn asked_of(&self, server: ServerId) -> u64 {
        let asks = self.asks.values().filter(|ask| ask.server == server);
        asks.map(|ask| ask.left).sum()
    }

    fn rate_of(&self, server: ServerId) -> f64 {
        let rate = self.servers[server.0].rate;
        if rate > 0.0 { rate } else { FIRST_RATE }
    }

    fn wanted_of(&self, server: ServerId) -> u64 {
        ((self.rate_of(server) * AHEAD.as_secs_f64()) as u64).max(SEGMENT)
    }

    fn measure(&mut self, now: Instant) {
        for server in &mut self.servers {
            let time = now.saturating_duration_since(server.since);
            if time >= WINDOW {
                if server.came > 0 {
                    server.rate = server.came as f64 / time.as_secs_f64();
                }
                (server.came, server.since) = (0, now);
            }
        }
    }

    /// The next request to `server`.
    fn take(&mut self, server: ServerId) -> Option<Command> {
        let is_of = |at: &[ServerId]| at.contains(&server);
        let mut pools = self.pools.iter_mut();
        let found = pools.find(|((_, at), pool)| is_of(at) && !pool.is_empty());
        let ((_, at), _) = found?;
        let key = (at.len(), at.clone());
        let most = ((self.rate_of(server) * PIECE_TIME) as u64).clamp(SEGMENT, PIECE_BYTES_MAX);
        let pool = self.pools.get_mut(&key)?;
        let mut piece = pool.pop_front()?;
        let mut pieces = Vec::new();
        if piece.size <= hikyaku_remote::SMALL_BYTES_MAX {
            let mut bytes = piece.size;
            pieces.push(piece);
            while bytes < BATCH_BYTES.min(most.max(SEGMENT))
                && pieces.len() < BATCH_FILES
                && let Some(next) = pool.front()
                && next.size <= hikyaku_remote::SMALL_BYTES_MAX
            {
                bytes += next.size;
                pieces.extend(pool.pop_front());
            }
        } else {
            let most_segments = most.div_ceil(SEGMENT);
            if piece.end - piece.first > most_segments {
                let rest = Piece { first: piece.first + most_segments, ..piece.clone() };
                piece.end = piece.first + most_segments;
                pool.push_front(rest);
            }
            pieces.push(piece);
        }
        Some(self.ask(server, key.1, pieces))
    }

    fn ask(&mut self, server: ServerId, at: Vec<ServerId>, pieces: Vec<Piece>) -> Command {
        let ask = AskId(self.next);
        self.next += 1;
        let left = pieces.iter().map(Piece::bytes).sum();
        let command = match pieces.as_slice() {
            [piece] if piece.size > hikyaku_remote::SMALL_BYTES_MAX => {
                let ranges = vec![piece.range()];
                Command::Ranges { ask, server, file: piece.file, ranges }
            }
            pieces => {
                let files = pieces.iter().map(|piece| piece.file).collect();
                Command::Many { ask, server, files }
            }
        };
        self.asks.insert(ask, Ask { server, at, pieces, left, is_cut: false });
        command
    }

    /// Takes back the rest of the request that would take longest, for `server`, which has nothing left.
    fn take_over(&mut self, server: ServerId) -> Option<Command> {
        if self.asked_of(server) > 0 {
            return None;
        }
        let can_be_cut = |ask: &&mut Ask| {
            let is_large = matches!(ask.pieces.as_slice(), [piece] if piece.end - piece.first > 1);
            is_large && !ask.is_cut && ask.server != server && ask.at.contains(&server)
        };
        let rates: Vec<f64> = (0..self.servers.len()).map(|n| self.rate_of(ServerId(n))).collect();
        let time = |ask: &Ask| ask.left as f64 / rates[ask.server.0];
        let asks = self.asks.iter_mut().map(|(id, ask)| (*id, ask));
        let slowest = asks
            .filter(|(_, ask)| can_be_cut(ask))
            .max_by(|(_, a), (_, b)| time(a).total_cmp(&time(b)))?;
        let (id, ask) = slowest;
        (time(ask) > WORTH).then(|| {
            ask.is_cut = true;
            Command::Cut { ask: id }
        })
    }

    /// Bytes have come.
    pub(crate) fn arrived(&mut self, id: AskId, bytes: u64) {
        if let Some(ask) = self.asks.get_mut(&id) {
            ask.left = ask.left.saturating_sub(bytes);
            self.servers[ask.server.0].came += bytes;
        }
    }

    /// A request for ranges has ended; these segments of it have not come as they should.
    pub(crate) fn ended(&mut self, id: AskId, missing: &[SegmentIndex]) {
        let Some(Ask { at, pieces, .. }) = self.asks.remove(&id) else { return };
        let Some(piece) = pieces.first() else { return };
        for run in missing.chunk_by(|a, b| a.0.checked_add(1) == Some(b.0)) {
            let (first, end) = (u64::from(run[0].0), u64::from(run[run.len() - 1].0) + 1);
            self.put(&at, Piece { first, end, ..piece.clone() }, Place::Front);
        }
    }

    /// A request for small files has ended; these of them have not come.
    pub(crate) fn ended_many(&mut self, id: AskId, missing: &[usize]) {
        let Some(Ask { at, pieces, .. }) = self.asks.remove(&id) else { return };
        for piece in pieces.into_iter().filter(|piece| missing.contains(&piece.file)) {
            self.put(&at, piece, Place::Front);
        }
    }

    /// A server is gone. What was asked of it is told to have ended by who asked.
    pub(crate) fn lost(&mut self, server: ServerId) {
        self.servers[server.0].is_up = false;
    }

    /// Nothing more of a file is wanted.
    pub(crate) fn forget(&mut self, file: usize) {
        for pool in self.pools.values_mut() {
            pool.retain(|piece| piece.file != file);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Front,
    Back,
}

impl Piece {
    fn range(&self) -> (u64, u64) {
        (self.first * SEGMENT, self.size.min(self.end * SEGMENT))
    }

    fn bytes(&self) -> u64 {
        let (from, to) = self.range();
        to - from
    }
}
