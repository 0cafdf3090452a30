//! The loop that asks the scheduler, and the threads that do what it says.

use super::asked::{reach, server_id, settings};
use super::judge;
use super::pools::Steered;
use super::rest::{LeftOut, Rest};
use super::threads::{Line, Request};
use super::{AfterFailure, FetchError, Fetched, Job};
use crate::bottleneck::Gauge;
use crate::census::ServerId;
use crate::target::Target;
use hikyaku_spread::{AskId, Command, FileId, Settings, Spread, Target as Sink, Work};
use hikyaku_store::{Begins, Cut, Fetcher};
use hikyaku_units::{DataSize, Instant as SpreadInstant, Rate};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// How often the goodput of pools of connections is looked at.
const POOL_LOOK: Duration = Duration::from_millis(20);
/// Whether the user has stopped it is looked for this often, and whether nothing can come any more.
const LOOK: Duration = Duration::from_millis(100);
/// A server that was told that nothing more is wanted stops within this.
const STOP_TIME: Duration = Duration::from_secs(1);

/// A transfer under way.
pub(super) struct Run<'a> {
    pub(super) job: &'a Job<'a>,
    /// By the number of the file in the plan; `None` for one that is not wanted.
    pub(super) targets: Vec<Option<Target<'a>>>,
    /// The number in the plan of each file that the scheduler knows, in ascending order: the scheduler counts files in
    /// the order in which they were added.
    pub(super) numbers: Vec<usize>,
    pub(super) state: Mutex<State<'a>>,
    changed: Condvar,
    /// Files are whole, or all is over: for the threads that name.
    pub(super) to_name: Condvar,
    /// Small files have got their names: for the threads that bring others.
    pub(super) has_room: Condvar,
    /// All is over: for the thread that syncs.
    pub(super) to_sync: Condvar,
    /// Files that the next run can continue.
    pub(super) continued: Vec<usize>,
    /// A server has a request, or all is over: for its threads.
    pub(super) to_carry_out: Vec<Condvar>,
    /// Calls of the store under way that write, and calls that have ended.
    pub(super) writes: (AtomicUsize, AtomicU64),
    /// Nanoseconds that these calls took.
    pub(super) writing: AtomicU64,
    /// Bytes that have come.
    pub(super) come: AtomicU64,
    /// Files whose targets take bytes in order and have room for others. A thread that writes holds the stage of its target, and
    /// must not wait for the state.
    pub(super) roomy: Mutex<BTreeSet<usize>>,
    begin: Instant,
}

pub(super) struct State<'a> {
    pub(super) spread: Spread,
    pub(super) fetched: Fetched,
    pub(super) servers: Vec<Arc<dyn Fetcher>>,
    pub(super) pools: Vec<Steered<'a>>,
    /// The index of the pool of each server that is in one.
    pub(super) pool_of: Vec<Option<usize>>,
    /// The requests and threads of each.
    pub(super) lines: Vec<Line>,
    /// What each server may send, as the scheduler said last.
    caps: Vec<Option<Rate>>,
    /// The requests that have not ended.
    pub(super) requests: HashMap<AskId, UnderWay>,
    pub(super) damaged: HashMap<usize, u32>,
    /// Requests to a store that failed, by the number of the file and the begin of the range.
    pub(super) attempts: HashMap<(usize, u64), u32>,
    /// Servers that had a file when they were asked for all, and have it no more.
    pub(super) lacking: HashMap<usize, Vec<ServerId>>,
    /// Files that are whole and wait for their names.
    pub(super) whole: Vec<usize>,
    /// Bytes of small files that wait for their names in memory.
    pub(super) held: u64,
    /// Groups of small files that are being named.
    pub(super) groups: usize,
    /// By the number in the plan.
    pub(super) stages: Vec<Stage>,
    /// Files of which bytes are missing.
    pub(super) open: usize,
    /// Files that are whole and have no names yet: the place of each may still be lost.
    pub(super) unnamed: usize,
    /// Since when only files are left that no server has.
    gone_since: Option<Instant>,
    /// Since when all files are there.
    pub(super) done_since: Option<Instant>,
    /// Servers that have begun.
    begun: usize,
    /// Calls that had ended when the store was looked at while a thread wrote to it, and since when it is so.
    pub(super) held_up: Option<(u64, Instant)>,
    sink: Sink,
    pub(super) gauge: Gauge,
    /// Time of all requests, and when it was added up last.
    pub(super) busy: (Duration, Instant),
    pub(super) is_over: bool,
}

/// A request that has not ended.
pub(super) struct UnderWay {
    pub(super) server: ServerId,
    cut: Arc<Cut>,
    left_out: LeftOut,
}

/// How far a file has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Bytes are missing.
    Open,
    /// All of it has come.
    Whole,
    /// It has its name, or never will, or was not wanted.
    Over,
}

impl<'a> Run<'a> {
    /// Files without a target are not wanted.
    pub(super) fn new(
        job: &'a Job<'a>,
        targets: Vec<Option<Target<'a>>>,
        fetched: Fetched,
    ) -> Self {
        let begin = Instant::now();
        let mut spread = Spread::new(Settings::default());
        spread.handle_ceiling(job.parameters.client.rate);
        let (mut numbers, mut whole, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut stages, mut continued) = (vec![Stage::Over; targets.len()], Vec::new());
        let settings = job.servers.iter().map(|server| settings(server.traits()));
        let servers: Vec<_> = settings.map_while(|one| spread.add_server(one).ok()).collect();
        let pools: Vec<_> =
            job.pools.iter().map(|pool| Steered::new(pool, job.servers, &mut spread)).collect();
        for (number, file) in job.plan.files.iter().enumerate() {
            let Some(target) = &targets[number] else { continue };
            if file.seen.size == 0 {
                stages[number] = Stage::Whole;
                whole.push(number);
                continue;
            }
            if target.is_continued() {
                continued.push(number);
            }
            if target.is_proven() {
                stages[number] = Stage::Whole;
                whole.push(number);
                continue;
            }
            stages[number] = Stage::Open;
            let at: Vec<_> = file.at.iter().filter_map(|at| servers.get(at.0).copied()).collect();
            match spread.add_file(DataSize::from_bytes(file.seen.size), &at) {
                Ok(id) => {
                    numbers.push(number);
                    if let Some(end) = reach(job, target) {
                        spread.handle_reach(id, end);
                    }
                    for range in target.proven_ranges() {
                        spread.handle_proven(id, range);
                    }
                }
                Err(_) => failed.push((number, FetchError::TooLarge)),
            }
        }
        let all = job.servers.to_vec();
        let caps = vec![job.parameters.servers.rate; all.len()];
        let pool = |number| job.pools.iter().position(|pool| pool.servers.contains(&number));
        let state = State {
            pools,
            pool_of: (0..all.len()).map(|number| pool(ServerId(number))).collect(),
            spread,
            fetched,
            lines: all.iter().map(|_| Line::default()).collect(),
            servers: all,
            caps,
            requests: HashMap::new(),
            damaged: HashMap::new(),
            attempts: HashMap::new(),
            lacking: HashMap::new(),
            unnamed: whole.len(),
            whole,
            held: 0,
            groups: 0,
            open: numbers.len() + failed.len(),
            stages,
            gone_since: None,
            done_since: None,
            begun: 0,
            held_up: None,
            sink: Sink::Ready,
            gauge: judge::gauge(job),
            busy: (Duration::ZERO, begin),
            is_over: false,
        };
        let (changed, to_name, has_room) = (Condvar::new(), Condvar::new(), Condvar::new());
        let to_sync = Condvar::new();
        let to_carry_out = job.servers.iter().map(|_| Condvar::new()).collect();
        let (state, writes) = (Mutex::new(state), (AtomicUsize::new(0), AtomicU64::new(0)));
        let run = Self {
            job,
            targets,
            numbers,
            state,
            changed,
            to_name,
            has_room,
            to_sync,
            continued,
            to_carry_out,
            writes,
            writing: AtomicU64::new(0),
            come: AtomicU64::new(0),
            roomy: Mutex::default(),
            begin,
        };
        for (number, error) in failed {
            run.give_up(&mut run.state(), number, error);
        }
        run
    }

    pub(super) fn all(self) -> std::io::Result<Fetched> {
        thread::scope(|scope| self.serve(scope))?;
        self.leave_heads();
        self.sync();
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if self.job.parameters.client.rate.is_some() {
            state.servers.iter().for_each(|server| server.limit(self.job.parameters.servers.rate));
        }
        Ok(state.fetched)
    }

    /// The servers begin, each a while after the one before it.
    fn begin(&self, state: &mut State<'_>) {
        let is_lost = |server: ServerId| self.job.plan.lost.iter().any(|(lost, _)| *lost == server);
        while let Some(server) = self.job.servers.get(state.begun) {
            let id = ServerId(state.begun);
            let after = self
                .job
                .parameters
                .client
                .stagger
                .saturating_mul(u32::try_from(id.0).unwrap_or(u32::MAX));
            if self.begin.elapsed() < after {
                return;
            }
            if !is_lost(id) {
                state.spread.handle_up(server_id(id), server.round_trip(), self.now());
            }
            state.begun += 1;
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> SpreadInstant {
        SpreadInstant::ZERO + self.begin.elapsed()
    }

    /// Wakes the loop: something has changed.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    fn serve<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> std::io::Result<()> {
        let served = self
            .begin_sync(scope)
            .and_then(|()| self.name(scope))
            .and_then(|()| self.decide(scope));
        let mut state = self.state();
        state.is_over = true;
        if served.is_err() {
            // Threads that wait for servers end by this.
            self.stop(&mut state);
        }
        drop(state);
        self.to_name.notify_all();
        self.has_room.notify_all();
        self.to_sync.notify_all();
        self.to_carry_out.iter().for_each(Condvar::notify_all);
        served
    }

    fn decide<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> std::io::Result<()> {
        loop {
            let mut state = self.state();
            let is_stopped = self.job.stop.load(Ordering::Relaxed);
            if is_stopped || self.job.store.lost().is_some() || self.has_failed(&state) {
                self.stop(&mut state);
            }
            self.begin(&mut state);
            self.steer(&mut state);
            self.announce_room(&mut state);
            let now = self.now();
            self.look_at_target(&mut state);
            self.judge(&mut state);
            while let Some(command) = state.spread.poll_command(now) {
                self.obey(&mut state, scope, command)?;
            }
            if state.open == 0 {
                if !state.requests.is_empty() {
                    self.hang_up(&mut state);
                } else if state.unnamed == 0 {
                    return Ok(());
                }
            }
            let have_all_begun = state.begun == self.job.servers.len();
            if state.requests.is_empty() && have_all_begun && self.is_out_of_reach(&mut state) {
                continue;
            }
            let look = if self.job.pools.is_empty() { LOOK } else { POOL_LOOK };
            let due = state
                .spread
                .poll_timeout()
                .map_or(look, |wake| (wake.at - now).clamp(Duration::from_millis(1), look));
            drop(self.changed.wait_timeout(state, due).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Tells the scheduler whether the store takes nothing for a while: servers look quiet then and are not.
    fn look_at_target(&self, state: &mut State<'_>) {
        let (under_way, ended) =
            (self.writes.0.load(Ordering::Relaxed), self.writes.1.load(Ordering::Relaxed));
        state.held_up = match state.held_up {
            Some((before, since)) if under_way > 0 && before == ended => Some((before, since)),
            _ => (under_way > 0).then(|| (ended, Instant::now())),
        };
        let is_busy = state.held_up.is_some_and(|(_, since)| since.elapsed() >= LOOK);
        let sink = if is_busy { Sink::Busy } else { Sink::Ready };
        if std::mem::replace(&mut state.sink, sink) != sink {
            let now = self.now();
            state.spread.handle_target(sink, now);
        }
    }

    /// All is there. A server that still has something to send was told to stop; one that does not answer is dead, and
    /// its connection would end by itself much later.
    fn hang_up(&self, state: &mut State<'_>) {
        if state.done_since.get_or_insert_with(Instant::now).elapsed() < STOP_TIME {
            return;
        }
        for UnderWay { server, .. } in state.requests.values() {
            state.servers[server.0].close("the transfer is over");
        }
    }

    /// Gives up what no server has any more, after it was waited for.
    fn is_out_of_reach(&self, state: &mut State<'_>) -> bool {
        let stranded = state.spread.stranded().map(|file| self.numbers[file.0 as usize]);
        let is_open = |number: &usize| state.stages[*number] == Stage::Open;
        let stranded: Vec<usize> = stranded.filter(is_open).collect();
        if stranded.len() < state.open {
            state.gone_since = None;
            return false;
        }
        if state.gone_since.get_or_insert_with(Instant::now).elapsed() < self.job.patience {
            return false;
        }
        for number in stranded {
            self.give_up(state, number, FetchError::OutOfReach);
        }
        true
    }

    fn obey<'scope>(
        &'scope self,
        state: &mut State<'_>,
        scope: &'scope Scope<'scope, '_>,
        command: Command,
    ) -> std::io::Result<()> {
        match command {
            Command::Ask { server, ask, work } => {
                let server = ServerId(usize::from(server.0));
                let (fetcher, cut) = (state.servers[server.0].clone(), Arc::new(Cut::default()));
                let (rest, left_out) = self.rest(&*fetcher, &work);
                let bytes = DataSize::from_bytes(left_out.bytes());
                state.spread.handle_left_out(server_id(server), ask, bytes);
                state.requests.insert(ask, UnderWay { server, cut: cut.clone(), left_out });
                state.works(server);
                let request = Request { fetcher, server, ask, cut, work, rest };
                self.give(&mut state.lines[server.0], scope, request)
            }
            Command::Cut { ask, from, .. } => {
                if let Some(UnderWay { cut, left_out, .. }) = state.requests.get(&ask) {
                    cut.at(left_out.fetched(from.bytes()));
                }
                Ok(())
            }
            Command::Cap { server, rate } => {
                let rate = [rate, self.job.parameters.servers.rate].into_iter().flatten().min();
                state.caps[usize::from(server.0)] = rate;
                state.servers[usize::from(server.0)].limit(rate);
                Ok(())
            }
            Command::Retry { server } => {
                let server = ServerId(usize::from(server.0));
                let tried = state.servers[server.0].clone();
                let named = thread::Builder::new().name("mover-retry".to_owned());
                named.spawn_scoped(scope, move || self.retry(server, &tried)).map(drop)
            }
            Command::Rest { server } => {
                let server = ServerId(usize::from(server.0));
                state.rests(server);
                state.servers[server.0].rest();
                Ok(())
            }
            // What is whole is known from its target.
            Command::Done { .. } => Ok(()),
        }
    }

    /// The part of the work of a request that is fetched.
    fn rest(&self, fetcher: &dyn Fetcher, work: &Work) -> (Rest, LeftOut) {
        let Work::Ranges { file, ranges } = work else { return Default::default() };
        let target = self.targets[self.numbers[file.0 as usize]].as_ref();
        match (target, fetcher.traits().begins) {
            (Some(target), Begins::Anywhere) => Rest::of(ranges, &target.heads()),
            _ => (Rest { ranges: ranges.clone(), heads: None }, LeftOut::default()),
        }
    }

    /// Asks a quiet server for a sign of life; connects again to one whose connection is lost.
    fn retry(&self, server: ServerId, tried: &Arc<dyn Fetcher>) {
        let again = if tried.is_alive() { Some(tried.clone()) } else { (self.job.redial)(server) };
        let rtt = again.as_ref().map(|again| again.round_trip());
        let mut state = self.state();
        match again.zip(rtt) {
            Some((again, rtt)) => {
                // A new connection knows nothing of the limit of the lost one.
                again.limit(state.caps[server.0]);
                state.servers[server.0] = again;
                state.spread.handle_up(server_id(server), rtt, self.now());
                self.job.meter.set_lost(server, false);
            }
            None => state.spread.handle_lost(server_id(server), self.now()),
        }
        drop(state);
        self.wake();
    }

    /// The scheduler's id of a file.
    pub(super) fn id(&self, number: usize) -> Option<FileId> {
        self.numbers.binary_search(&number).ok().map(|at| FileId(at as u32))
    }

    /// All bytes of a file have come.
    pub(super) fn on_whole(&self, state: &mut State<'_>, number: usize) {
        if state.stages[number] == Stage::Open {
            state.stages[number] = Stage::Whole;
            state.open -= 1;
            state.unnamed += 1;
        }
        // One that was given up meanwhile is cleared away by the threads that name.
        state.whole.push(number);
        self.wake_namer(state, number);
    }

    /// A server's connection is lost.
    pub(super) fn lose(&self, state: &mut State<'_>, server: ServerId, error: String) {
        state.stands(server);
        state.spread.handle_lost(server_id(server), self.now());
        // All is here: this end may have ended the connection itself, because the server still had something to send.
        if state.open == 0 {
            return;
        }
        self.job.meter.set_lost(server, true);
        if state.fetched.lost.iter().all(|(lost, _)| *lost != server) {
            state.fetched.lost.push((server, error));
        }
    }

    /// Whether a file has failed after which no other one is wanted.
    fn has_failed(&self, state: &State<'_>) -> bool {
        self.job.after_failure == AfterFailure::Stop && !state.fetched.failed.is_empty()
    }

    /// Nothing more is wanted: a user has stopped the transfer, the target is lost, or a file has failed.
    fn stop(&self, state: &mut State<'_>) {
        for number in 0..self.targets.len() {
            if state.stages[number] == Stage::Open {
                self.give_up(state, number, FetchError::Stopped);
            }
        }
        state.servers.iter().for_each(|server| server.close("the transfer was stopped"));
    }
}
