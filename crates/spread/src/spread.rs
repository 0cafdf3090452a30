//! The scheduler: its input, and its commands.

use crate::ask::{Ask, Hold, Part};
use crate::command::{Command, Wake, WakeReason, Work};
use crate::flow::Network;
use crate::ids::{AskId, FileId, SERVERS_MAX, ServerId, ServerSet};
use crate::meter::Meter;
use crate::segments::{Run, SEGMENT_BYTES};
use crate::server::{Duty, Retries, Server, State};
use crate::settings::{ServerSettings, Settings};
use crate::stock::{Piece, Proof, Stock};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Rate};

mod end;
mod hand_out;
mod plan;
mod pool;
mod watch;

use plan::Plan;
use pool::Pool;

/// The scheduler of one download from many servers.
///
/// The caller adds servers and files, and reports what happens with the `handle_` methods. After each report, and
/// at the time of [`Spread::poll_timeout`], it calls [`Spread::poll_command`] until that returns `None`, and executes
/// the commands. For each [`Command::Ask`] it reports in this order: arrivals as they come
/// ([`Spread::handle_progress`]), ranges once their hashes match ([`Spread::handle_proven`]), and the end of the
/// ask ([`Spread::handle_end`]), also when the server cut it short or failed. Parts that were not proven until the end of
/// their ask are requested again. A caller that reports ends late because it is busy itself must report that as well
/// ([`Spread::handle_target`]); otherwise their servers are called quiet. Ids that the scheduler does not know, and reports of asks that it has taken back,
/// are ignored, so no message of a server can make it panic or forget a range.
///
/// `now` never decreases. A file that no living server has waits; see [`Spread::stranded`].
#[derive(Debug)]
pub struct Spread {
    settings: Settings,
    servers: Vec<Server>,
    /// Those that answer and get work.
    up: ServerSet,
    pools: Vec<Pool>,
    stock: Stock,
    network: Network,
    plan: Plan,
    commands: VecDeque<Command>,
    next_ask: u64,
    client: Client,
    /// Whether something was reported since the last decision.
    news: News,
    /// When the scheduler last decided something.
    decided: Instant,
}

/// The longest round-trip time that is believed. A longer one would make a server busy for hours.
const RTT_MAX: Duration = Duration::from_secs(60);

/// The capacity of the client.
#[derive(Debug)]
struct Client {
    capacity: Option<Rate>,
    ceiling: Option<Rate>,
    sink: Option<DataSize>,
    target: Target,
}

/// Whether the client puts away what arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// It does.
    Ready,
    /// It is the slowest of all: its disk is full of work. Servers look slow then and are not, so no plan is made,
    /// no work is taken from a server, and none is called quiet.
    Busy,
}

/// Whether there is something to decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum News {
    Some,
    None,
}

/// A file that cannot be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddFileError {
    /// Too much for one scheduler.
    #[error(
        "the file does not fit: there are at most 2^32 segments a file, 2^32 files and 2^64 bytes in all; try: \
         divide the files among several runs"
    )]
    TooMuch,
    /// A replica is on a server that was not added.
    #[error("there is no server {}; try: add it first", .0.0)]
    NoServer(ServerId),
}

/// There are [`SERVERS_MAX`] servers already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there are {SERVERS_MAX} servers already; try: name fewer hosts")]
pub struct TooManyServersError;

impl Spread {
    /// A scheduler without servers and files.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            servers: Vec::new(),
            up: ServerSet::default(),
            pools: Vec::new(),
            stock: Stock::default(),
            network: Network::default(),
            plan: Plan::default(),
            commands: VecDeque::new(),
            next_ask: 0,
            client: Client { capacity: None, ceiling: None, sink: None, target: Target::Ready },
            news: News::Some,
            decided: Instant::ZERO,
        }
    }

    /// Adds a server. It is asked for nothing until [`Spread::handle_up`]. Fails above [`SERVERS_MAX`].
    pub fn add_server(
        &mut self,
        settings: ServerSettings,
    ) -> Result<ServerId, TooManyServersError> {
        if self.servers.len() == SERVERS_MAX {
            return Err(TooManyServersError);
        }
        self.servers.push(Server::new(settings, self.settings.begin_rate));
        self.stock.allow_small(self.small_file(self.servers.len() - 1));
        Ok(ServerId(self.servers.len() as u16 - 1))
    }

    /// Adds a file with the servers that have a replica of it. An empty file is done at once. Of a file that is
    /// partly there from an earlier run, [`Spread::handle_proven`] may be called before anything is requested.
    pub fn add_file(
        &mut self,
        size: DataSize,
        replicas: &[ServerId],
    ) -> Result<FileId, AddFileError> {
        let mut set = ServerSet::default();
        for &server in replicas {
            let known = usize::from(server.0);
            if known >= self.servers.len() {
                return Err(AddFileError::NoServer(server));
            }
            set.insert(known);
        }
        let file = self.stock.add(size, set).ok_or(AddFileError::TooMuch)?;
        if self.stock.is_empty_file(file) {
            self.commands.push_back(Command::Done { file });
        }
        self.news = News::Some;
        self.plan.is_stale = true;
        Ok(file)
    }

    /// The client's link, as a limit of the sum of all servers. Without it the plan knows only what the servers
    /// can send.
    pub fn handle_capacity(&mut self, capacity: Option<Rate>) {
        self.client.capacity = capacity;
        self.plan.is_stale = true;
        self.news = News::Some;
    }

    /// The user's ceiling for the sum of all servers; `None`, the default, lifts it. It is divided among the
    /// servers twice a second, see [`crate::divide`].
    pub fn handle_ceiling(&mut self, ceiling: Option<Rate>) {
        self.client.ceiling = ceiling;
        self.plan.is_stale = true;
        self.news = News::Some;
    }

    /// The bytes that may be asked for at once in all, because the client can put away that much. One segment or one
    /// small file is asked for in any case. Without a sink, the default, servers are asked for what they send in a
    /// round trip and half a second.
    pub fn handle_sink(&mut self, sink: Option<DataSize>) {
        self.client.sink = sink;
        self.news = News::Some;
    }

    /// Nothing of a file at and behind `end`, rounded up to a whole segment, is requested until a call with a later `end`: the
    /// client stores the file in order, and has room for a limited number of early bytes. The first call must precede all
    /// requests for the file. An earlier `end` than before has no effect.
    pub fn handle_reach(&mut self, file: FileId, end: DataSize) {
        self.stock.reach(file.0, end);
        self.plan.is_stale = true;
        self.news = News::Some;
    }

    /// Whether the client's target is the slowest of all. It is [`Target::Ready`] at the start.
    pub fn handle_target(&mut self, target: Target, now: Instant) {
        self.client.target = target;
        // A silence until now was not the servers'.
        self.servers.iter_mut().for_each(|server| server.forgive_silence(now));
        self.news = News::Some;
    }

    /// A server is connected, with this round-trip time. More than a minute counts as a minute.
    pub fn handle_up(&mut self, server: ServerId, rtt: Duration, now: Instant) {
        let index = usize::from(server.0);
        let Some(found) = self.servers.get_mut(index) else { return };
        found.rtt = rtt.min(RTT_MAX);
        if !found.is_up() {
            self.revive(index, now);
        }
    }

    /// The round-trip time of a server's connection has changed.
    pub fn handle_rtt(&mut self, server: ServerId, rtt: Duration) {
        if let Some(server) = self.servers.get_mut(usize::from(server.0)) {
            server.rtt = rtt.min(RTT_MAX);
        }
    }

    /// A server lost its connection, or could not be reached. Its requested parts return to the stock, without a
    /// [`Command::Cut`]. It is to be tried again after 5, 10, 20, 40 and then every 60 seconds.
    pub fn handle_lost(&mut self, server: ServerId, now: Instant) {
        let index = usize::from(server.0);
        let Some(found) = self.servers.get(index) else { return };
        let retries = match found.state {
            State::Lost(retries) => retries,
            State::Quiet(retries) => Retries { next: retries.next.max(now), ..retries },
            State::New | State::Up => Retries::start(now),
        };
        self.leave(index, State::Lost(retries), now);
    }

    /// A server has no replica of the file after all. Its requested parts of the file are requested elsewhere.
    pub fn handle_missing(&mut self, server: ServerId, file: FileId) {
        let index = usize::from(server.0);
        let Some(found) = self.servers.get_mut(index) else { return };
        self.stock.remove_replica(file.0, index);
        for part in found.asks.iter_mut().flat_map(|ask| &mut ask.parts) {
            if part.file == file.0 && part.hold == Hold::Owned {
                part.hold = Hold::Copy;
                self.stock.give_back(part.file, part.run);
            }
        }
        self.plan.is_stale = true;
        self.news = News::Some;
    }

    /// Bytes of an ask arrived from a server, proven or not.
    pub fn handle_progress(&mut self, server: ServerId, ask: AskId, bytes: DataSize, now: Instant) {
        let index = usize::from(server.0);
        let Some(found) = self.servers.get_mut(index) else { return };
        found.arrive(ask, bytes.bytes(), now);
        if matches!(found.state, State::Quiet(_)) {
            self.revive(index, now);
        }
        self.news = News::Some;
    }

    /// The caller requests these bytes of an ask from no server: they came before, over a connection that did not bring the
    /// rest of their segments.
    pub fn handle_left_out(&mut self, server: ServerId, ask: AskId, bytes: DataSize) {
        if let Some(found) = self.servers.get_mut(usize::from(server.0)) {
            found.leave_out(ask, bytes.bytes());
        }
    }

    /// A server answered something other than bytes: a sign of life.
    pub fn handle_word(&mut self, server: ServerId, now: Instant) {
        self.handle_progress(server, AskId(u64::MAX), DataSize::ZERO, now);
    }

    /// A range of a file has arrived from any server and its hash matched. Parts of segments do not count.
    pub fn handle_proven(&mut self, file: FileId, bytes: Range<u64>) {
        if self.stock.prove(file.0, &bytes) == Proof::Whole {
            self.commands.push_back(Command::Done { file });
            if self.stock.unfinished() == 0 {
                self.cut_all();
            }
        }
        self.news = News::Some;
    }

    /// The proven parts of a file are void: its version has changed, or a sync failed. The file begins anew with all of it in
    /// reach. Parts that are under way count only if they are proven again.
    pub fn handle_void(&mut self, file: FileId) {
        let parts = self
            .servers
            .iter_mut()
            .flat_map(|server| &mut server.asks)
            .flat_map(|ask| &mut ask.parts);
        parts.filter(|part| part.file == file.0).for_each(|part| part.hold = Hold::Copy);
        self.stock.void(file.0);
        if self.stock.is_unfinished(file.0) {
            self.commands.retain(|command| *command != Command::Done { file });
        }
        self.plan.is_stale = true;
        self.news = News::Some;
    }

    /// An ask is over: everything of it that comes has come, and what could be proven was reported.
    pub fn handle_end(&mut self, server: ServerId, ask: AskId, now: Instant) {
        self.handle_word(server, now);
        let Some(found) = self.servers.get_mut(usize::from(server.0)) else { return };
        let Some(ask) = found.remove(ask) else { return };
        self.give_back(&ask);
    }

    /// The number of files that are not done.
    pub const fn unfinished(&self) -> usize {
        self.stock.unfinished()
    }

    /// The bytes that have not come.
    pub fn missing_bytes(&self) -> DataSize {
        let asked = self.servers.iter().map(|server| server.left);
        DataSize::from_bytes(asked.fold(self.stock.free_bytes(), u64::saturating_add))
    }

    /// Whether all bytes have come or are asked for.
    pub const fn is_all_asked(&self) -> bool {
        self.stock.free_bytes() == 0
    }

    /// Files that are not done and have no replica on a server that is up. They wait until one is up again. This
    /// looks at every file.
    pub fn stranded(&self) -> impl Iterator<Item = FileId> {
        let open = self.stock.open_files();
        open.filter(|(_, replicas)| replicas.common(&self.up) == 0).map(|(file, _)| file)
    }

    /// The rate of a server: bytes of the last second in which it had work.
    pub fn rate(&self, server: ServerId, now: Instant) -> Option<Rate> {
        let server = self.servers.get(usize::from(server.0))?;
        Some(Rate::from_bytes_per_sec(server.rate(now)))
    }

    /// The next command, or `None` if there is nothing to do until the next report or the next timeout.
    pub fn poll_command(&mut self, now: Instant) -> Option<Command> {
        if self.commands.is_empty() && self.must_decide(now) {
            self.news = News::None;
            self.watch(now);
            self.plan_if_due(now);
            self.hand_out(now);
            self.end(now);
        }
        self.commands.pop_front()
    }

    fn must_decide(&self, now: Instant) -> bool {
        self.news == News::Some || self.poll_timeout().is_some_and(|wake| wake.at <= now)
    }

    /// When [`Spread::poll_command`] is to be called at the latest. `None`: not before the next report.
    pub fn poll_timeout(&self) -> Option<Wake> {
        if self.stock.unfinished() == 0 {
            return None;
        }
        let is_working = self.servers.iter().any(|server| server.is_up());
        let plan = is_working.then(|| (self.plan.next_at(), WakeReason::Plan));
        let quiet = self.servers.iter().filter_map(Server::quiet_at);
        let quiet = quiet.map(|at| (at, WakeReason::Quiet));
        let quiet = quiet.filter(|_| self.client.target == Target::Ready);
        let retry = self.servers.iter().filter_map(|server| match server.state {
            State::Lost(retries) | State::Quiet(retries) => Some((retries.next, WakeReason::Retry)),
            State::New | State::Up => None,
        });
        let first = plan.into_iter().chain(quiet).chain(retry).min_by_key(|&(at, _)| at);
        first.map(|(at, reason)| Wake { at, reason })
    }

    /// The size up to which a server is asked for files in batches: a batch has one segment of each file.
    fn small_file(&self, server: usize) -> DataSize {
        self.servers[server].settings.small_file.min(DataSize::from_bytes(SEGMENT_BYTES))
    }

    /// Sends the command for a taken piece, and notes it with the server.
    fn ask(&mut self, server: usize, pieces: Vec<Piece>, hold: Hold, now: Instant) {
        for piece in pieces {
            let (work, runs): (Work, Vec<(u32, Run)>) = match piece {
                Piece::Part(file, run) => {
                    let ranges = vec![self.stock.range(file, run)];
                    (Work::Ranges { file: FileId(file), ranges }, vec![(file, run)])
                }
                Piece::Batch(files) => (
                    Work::Files(files.iter().map(|&file| FileId(file)).collect()),
                    files.into_iter().map(|file| (file, Run::new(0, 1))).collect(),
                ),
            };
            let id = AskId(self.next_ask);
            self.next_ask += 1;
            let bytes = |file, run| self.stock.bytes(file, run);
            let part = |(file, run)| Part { file, run, bytes: bytes(file, run), hold };
            let parts = runs.into_iter().map(part).collect();
            let found = &mut self.servers[server];
            found.push(Ask::new(id, parts, now, found.rtt), now);
            self.commands.push_back(Command::Ask { server: server_id(server), ask: id, work });
        }
    }

    /// Unproven parts that an ask owns return to the stock.
    fn give_back(&mut self, ask: &Ask) {
        for part in ask.parts.iter().filter(|part| part.hold == Hold::Owned) {
            self.stock.give_back(part.file, part.run);
        }
        // Without a plan, a group that was used up is looked at again with the next list only.
        self.plan.is_stale |= self.plan.scarce_first.is_some();
        self.news = News::Some;
    }

    /// A server is up, and its rate is unknown.
    fn revive(&mut self, index: usize, now: Instant) {
        let begin = self.settings.begin_rate;
        let server = &mut self.servers[index];
        server.state = State::Up;
        server.meter = Meter::new(begin);
        server.heard = now;
        if server.duty == Duty::Awake {
            self.up.insert(index);
        }
        self.settle_pool_of(index, now);
        self.plan.is_stale = true;
        self.news = News::Some;
    }

    /// A server is not up any more: what it was asked for goes back.
    fn leave(&mut self, index: usize, state: State, now: Instant) {
        let server = &mut self.servers[index];
        server.state = state;
        server.left = 0;
        server.current = None;
        let asks = core::mem::take(&mut server.asks);
        self.up.remove(index);
        asks.iter().for_each(|ask| self.give_back(ask));
        self.settle_pool_of(index, now);
        self.plan.is_stale = true;
        self.news = News::Some;
    }

    /// Everything is proven, so nothing under way is wanted.
    fn cut_all(&mut self) {
        for (server, found) in self.servers.iter_mut().enumerate() {
            found.left = 0;
            for ask in found.asks.drain(..) {
                let (server, from) = (server_id(server), DataSize::ZERO);
                self.commands.push_back(Command::Cut { server, ask: ask.id, from });
            }
        }
    }
}

/// The id of a server by its index, which is below [`SERVERS_MAX`].
const fn server_id(index: usize) -> ServerId {
    ServerId(index as u16)
}

#[cfg(test)]
mod tests;
