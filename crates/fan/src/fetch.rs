//! Carries out the plan.

use crate::census::{Census, File, ServerId};
use crate::meter::Meter;
use crate::plan::{AskId, Command, Plan};
use crate::target::{Next, Target};
use hikyaku_fs::PeerPath;
use hikyaku_remote::{Class, Client, Give, Outcome, RemoteError, RequestId, Seen, Wanted};
use hikyaku_store::{ErrorKind, Kind, Result as StoreResult, Store, StoreError, StorePath};
use hikyaku_transfer::{Geometry, SegmentHash, SegmentIndex};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// What is to be fetched, and whereto.
pub struct Job<'a> {
    /// The servers, in the order of the census.
    pub servers: &'a [Client],
    /// What they have.
    pub census: &'a Census,
    /// Where the files go.
    pub store: Arc<dyn Store>,
    /// The path in the store for a path of the census; `None` for one that is the target itself.
    pub place: &'a (dyn Fn(&PeerPath) -> Option<StorePath> + Sync),
    /// Permission bits that new files and directories do not get.
    pub umask: u32,
    /// How far it is.
    pub meter: &'a Meter,
    /// Ends the transfer early when it is set.
    pub stop: &'a AtomicBool,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Fetched {
    /// Files that were fetched and have their names.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that were there already, with the same size and time.
    pub kept: u64,
    /// What could not be fetched or written, and why.
    pub failed: Vec<(Vec<u8>, FetchError)>,
    /// Servers that were lost on the way.
    pub lost: Vec<(ServerId, RemoteError)>,
}

/// Why a file is not there.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FetchError {
    /// The target cannot take it.
    #[error("{0}")]
    Target(#[from] StoreError),
    /// A server cannot give it.
    #[error("{0}")]
    Server(RemoteError),
    /// All servers that have it are gone.
    #[error("every server that has it is gone")]
    OutOfReach,
    /// Its bytes came damaged again and again.
    #[error("its bytes come damaged")]
    Damaged,
    /// It is larger than any file.
    #[error("it is larger than any file")]
    TooLarge,
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

/// How often the plan is looked at when nothing happens.
const LOOK: Duration = Duration::from_millis(100);
/// Segments of a file that may come damaged before it is given up.
const DAMAGED_MAX: u32 = 16;
/// Files that are synced and named at once: each waits for the disk.
const NAMERS: usize = 8;

struct Run<'a> {
    job: &'a Job<'a>,
    targets: Vec<Option<Target>>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    plan: Plan,
    fetched: Fetched,
    /// The request at its server, for those that can be cut.
    requests: HashMap<AskId, (ServerId, RequestId)>,
    damaged: HashMap<usize, u32>,
    /// Files that are whole and wait for their names.
    whole: Vec<usize>,
    /// Files that have their names, or never will.
    over: Vec<bool>,
    is_over: bool,
}

/// Fetches everything. Returns when each file has its name or has failed.
///
/// # Errors
///
/// The machine has no room for another thread.
pub fn fetch(job: &Job<'_>) -> std::io::Result<Fetched> {
    let census = job.census;
    let mut fetched = Fetched::default();
    let mut targets = Vec::new();
    make_dirs(job, &mut fetched);
    let mut over = vec![false; census.files.len()];
    let mut whole = Vec::new();
    for (number, file) in census.files.iter().enumerate() {
        let path = (job.place)(&file.path);
        let is_there = path.as_ref().is_some_and(|path| is_there(&*job.store, path, file));
        let target = path.and_then(|path| Target::new(job.store.clone(), path, file, job.umask));
        if is_there {
            fetched.kept += 1;
            job.meter.add_kept(file.seen.size);
        } else if target.is_none() {
            fetched.failed.push((file.path.as_bytes().to_vec(), FetchError::TooLarge));
        } else if file.seen.size == 0 {
            whole.push(number);
        }
        over[number] = is_there || target.is_none();
        targets.push(target);
    }
    let wanted = census.files.iter().enumerate().filter(|(number, _)| !over[*number]);
    let mut plan = Plan::new(wanted, job.servers.len(), Instant::now());
    census.lost.iter().for_each(|(server, _)| plan.lost(*server));
    let state = State {
        plan,
        fetched,
        requests: HashMap::new(),
        damaged: HashMap::new(),
        whole,
        over,
        is_over: false,
    };
    let run = Run { job, targets, state: Mutex::new(state), changed: Condvar::new() };
    let begun = thread::scope(|scope| run.all(scope));
    begun?;
    let mut fetched = run.state.into_inner().unwrap_or_else(PoisonError::into_inner).fetched;
    finish_dirs(job, &mut fetched);
    Ok(fetched)
}

impl Run<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> std::io::Result<()> {
        for _ in 0..NAMERS {
            let named = thread::Builder::new().name("fan-names".to_owned());
            named.spawn_scoped(scope, || self.name_all())?;
        }
        let mut state = self.state();
        loop {
            if self.job.stop.load(Ordering::Relaxed) {
                self.stop(&mut state);
                break;
            }
            for file in state.plan.out_of_reach() {
                self.give_up(&mut state, file, FetchError::OutOfReach);
            }
            let commands = state.plan.next(Instant::now());
            drop(state);
            for command in commands {
                self.carry_out(scope, command)?;
            }
            state = self.state();
            if state.plan.is_done() {
                break;
            }
            state =
                self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_over = true;
        self.changed.notify_all();
        Ok(())
    }

    fn carry_out<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        command: Command,
    ) -> std::io::Result<()> {
        let named = || thread::Builder::new().name("fan-fetch".to_owned());
        match command {
            Command::Ranges { ask, server, file, ranges } => {
                named().spawn_scoped(scope, move || self.ranges(ask, server, file, ranges))?;
            }
            Command::Many { ask, server, files } => {
                named().spawn_scoped(scope, move || self.many(ask, server, &files))?;
            }
            Command::Cut { ask } => {
                let request = self.state().requests.get(&ask).copied();
                if let Some((server, request)) = request {
                    self.job.servers[server.0].cut(request);
                }
            }
        }
        Ok(())
    }

    /// Fetches ranges of a file.
    fn ranges(&self, ask: AskId, server: ServerId, number: usize, ranges: Vec<(u64, u64)>) {
        let file = &self.job.census.files[number];
        let all: Vec<SegmentIndex> = segments(file.seen.size, &ranges);
        let path = file.path.as_bytes().to_vec();
        let give = Give { path, seen: file.seen, ranges, class: Class::Bulk };
        let mut here = Vec::new();
        let outcome = self.job.servers[server.0].give(give).and_then(|incoming| {
            self.state().requests.insert(ask, (server, incoming.id()));
            let arrived = |bytes| {
                self.job.meter.add_arrived(server, bytes);
                self.state().plan.arrived(ask, bytes);
            };
            incoming.receive(arrived, |segment| {
                here.push(segment.index);
                self.write(number, (segment.index, segment.hash), segment.bytes);
            })
        });
        let mut state = self.state();
        state.requests.remove(&ask);
        match outcome {
            Ok(Outcome { mut missing, damaged }) => {
                if !damaged.is_empty() {
                    let count = state.damaged.entry(number).or_default();
                    *count += damaged.len() as u32;
                    if *count > DAMAGED_MAX {
                        self.give_up(&mut state, number, FetchError::Damaged);
                    }
                }
                missing.extend(damaged);
                missing.sort_unstable();
                let wanted = if state.over[number] { &[][..] } else { &missing };
                state.plan.ended(ask, wanted);
            }
            Err(error) => {
                let missing: Vec<_> =
                    all.into_iter().filter(|index| !here.contains(index)).collect();
                if error.is_of_server() {
                    let wanted = if state.over[number] { &[][..] } else { &missing };
                    state.plan.ended(ask, wanted);
                    self.lose(&mut state, server, error);
                } else {
                    state.plan.ended(ask, &[]);
                    self.give_up(&mut state, number, FetchError::Server(error));
                }
            }
        }
        self.changed.notify_all();
    }

    /// Fetches small files.
    fn many(&self, ask: AskId, server: ServerId, files: &[usize]) {
        let census = self.job.census;
        let wanted = |number: &usize| {
            let file = &census.files[*number];
            Wanted { path: file.path.as_bytes().to_vec(), seen: file.seen }
        };
        let wanted = files.iter().map(wanted).collect();
        let mut came = vec![false; files.len()];
        let outcome = self.job.servers[server.0].give_many(wanted, |index, content| {
            let number = files[index];
            came[index] = true;
            match content {
                Ok(bytes) => {
                    self.job.meter.add_arrived(server, bytes.len() as u64);
                    self.state().plan.arrived(ask, bytes.len() as u64);
                    self.write_small(number, &bytes);
                }
                Err(kind) => {
                    let path = StorePath::from(census.files[number].path.clone());
                    let error = StoreError::new("read", &path, kind);
                    let error = RemoteError::Refused { kind, text: error.to_string() };
                    self.give_up(&mut self.state(), number, FetchError::Server(error));
                }
            }
        });
        let missing: Vec<usize> = files
            .iter()
            .zip(&came)
            .filter(|(_, came)| !**came)
            .map(|(number, _)| *number)
            .collect();
        let mut state = self.state();
        state.plan.ended_many(ask, &missing);
        if let Err(error) = outcome {
            self.lose(&mut state, server, error);
        }
        self.changed.notify_all();
    }

    fn write_small(&self, number: usize, bytes: &[u8]) {
        let index = SegmentIndex(0);
        let hash =
            Geometry::new(bytes.len() as u64).and_then(|file| SegmentHash::new(file, index, bytes));
        if let Some(hash) = hash {
            self.write(number, (index, hash), bytes);
        }
    }

    fn write(&self, number: usize, segment: (SegmentIndex, SegmentHash), bytes: &[u8]) {
        let Some(target) = &self.targets[number] else { return };
        match target.write(segment, bytes) {
            Ok(next) => {
                self.job.meter.add_written(bytes.len() as u64);
                if next == Next::Whole {
                    self.state().whole.push(number);
                    self.changed.notify_all();
                }
            }
            Err(error) => self.give_up(&mut self.state(), number, error.into()),
        }
    }

    /// Names files that are whole, until all is over.
    fn name_all(&self) {
        loop {
            let mut state = self.state();
            let number = loop {
                if let Some(number) = state.whole.pop() {
                    break number;
                }
                if state.is_over {
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            drop(state);
            let Some(target) = &self.targets[number] else { continue };
            let named = target.finish();
            let mut state = self.state();
            match named {
                Ok(()) if !state.over[number] => {
                    state.over[number] = true;
                    state.fetched.files += 1;
                    state.fetched.bytes += self.job.census.files[number].seen.size;
                    self.job.meter.add_file();
                }
                Ok(()) => {}
                Err(error) => self.give_up(&mut state, number, error.into()),
            }
        }
    }

    fn give_up(&self, state: &mut State, number: usize, error: FetchError) {
        if std::mem::replace(&mut state.over[number], true) {
            return;
        }
        state.plan.forget(number);
        let path = self.job.census.files[number].path.as_bytes().to_vec();
        state.fetched.failed.push((path, error));
        if let Some(target) = &self.targets[number] {
            target.give_up();
        }
    }

    fn lose(&self, state: &mut State, server: ServerId, error: RemoteError) {
        state.plan.lost(server);
        self.job.meter.set_lost(server);
        if state.fetched.lost.iter().all(|(lost, _)| *lost != server) {
            state.fetched.lost.push((server, error));
        }
    }

    /// The user has had enough.
    fn stop(&self, state: &mut State) {
        for number in 0..self.targets.len() {
            if !state.whole.contains(&number) {
                self.give_up(state, number, FetchError::Stopped);
            }
        }
        for client in self.job.servers {
            client.connection().close(hikyaku_net::code::APPLICATION, "stopped by the user");
        }
    }
}

fn segments(size: u64, ranges: &[(u64, u64)]) -> Vec<SegmentIndex> {
    let Some(file) = Geometry::new(size) else { return Vec::new() };
    let of = |&(from, to): &(u64, u64)| {
        let ends = (file.at(from), file.at(to.saturating_sub(1)));
        let (first, last) = (ends.0.map_or(0, |at| at.0), ends.1.map_or(0, |at| at.0));
        (first..=last).map(SegmentIndex)
    };
    ranges.iter().flat_map(of).collect()
}

/// Whether the file is at the target already: a file of the same size and time.
fn is_there(store: &dyn Store, path: &StorePath, file: &File) -> bool {
    let found = store.look(path);
    found.is_ok_and(|found| found.kind == Kind::File && Seen::from(&found) == file.seen)
}

/// Creates the directories, and the links, which need no bytes.
fn make_dirs(job: &Job<'_>, fetched: &mut Fetched) {
    let there = |path: &StorePath, kind| match job.store.look(path) {
        Ok(found) if found.kind == kind => Ok(()),
        Ok(_) => Err(StoreError::new("create", path, ErrorKind::Exists)),
        Err(error) => Err(error),
    };
    for (path, _) in &job.census.dirs {
        let Some(place) = (job.place)(path) else { continue };
        // Its final mode might forbid to write in it.
        let made = match job.store.make_dir(&place, 0o700) {
            Err(error) if error.kind == ErrorKind::Exists => there(&place, Kind::Dir),
            made => made,
        };
        made.unwrap_or_else(|error| fetched.failed.push((path.as_bytes().to_vec(), error.into())));
    }
    for (path, text) in &job.census.links {
        let Some(place) = (job.place)(path) else { continue };
        let made = match job.store.make_link(&place, text) {
            Err(error) if error.kind == ErrorKind::Exists => {
                let is_same = || job.store.read_link(&place).is_ok_and(|there| there == *text);
                there(&place, Kind::Link).and_then(|()| match is_same() {
                    true => Ok(()),
                    false => Err(error),
                })
            }
            made => made,
        };
        made.unwrap_or_else(|error| fetched.failed.push((path.as_bytes().to_vec(), error.into())));
    }
}

/// Gives the directories their modes, the deepest first, and brings the names in them to the disk.
fn finish_dirs(job: &Job<'_>, fetched: &mut Fetched) {
    let finish = |place: &StorePath, mode: u32| -> StoreResult<()> {
        job.store.sync(std::slice::from_ref(place))?;
        let change =
            hikyaku_store::Change { mode: Some(mode & 0o777 & !job.umask), ..Default::default() };
        job.store.change(place, &change)
    };
    for (path, mode) in job.census.dirs.iter().rev() {
        let Some(place) = (job.place)(path) else { continue };
        if let Err(error) = finish(&place, *mode) {
            fetched.failed.push((path.as_bytes().to_vec(), error.into()));
        }
    }
    let parents = job.census.files.iter().filter_map(|file| (job.place)(&file.path)?.split());
    let mut parents: Vec<StorePath> = parents.map(|(dir, _)| dir).collect();
    parents.sort_unstable();
    parents.dedup();
    if let Err(error) = job.store.sync(&parents) {
        fetched.failed.push((b".".to_vec(), error.into()));
    }
}
