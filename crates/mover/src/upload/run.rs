//! An upload under way: lanes send files, one thread hears what came of them.

use super::UploadJob;
use super::dirs;
use super::queue::{GivenBack, Judged, Queue, Sending, Stage, Task, TaskId, Turn};
use super::source::{Channels, Counted};
use super::state::{Link, State, close};
use super::there::{There, Wish};
use crate::census::{File, ServerId};
use crate::fetch::{FetchError, Fetched};
use crate::session::Parameters;
use hikyaku_remote::{Client, Flow, RemoteError};
use hikyaku_run_log::FileStage;
use hikyaku_store::ErrorKind;
use hikyaku_transfer::Limit;
use hikyaku_units::{Retries, RetryPolicy};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// The most streams of one server. Each has a thread that reads and hashes files; a server attends to 8 streams of a client,
/// of which three are for other requests, and one may be left of the upload before.
const LANES_MAX: usize = 4;
/// It is looked this often whether the user has stopped it, and whether a server is to be tried again.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// A server that still has a file that was taken over stops within this.
const STOP_TIME: Duration = Duration::from_secs(1);

/// The number of tasks of a file that has failed: none of them can make it complete.
const FAILED: usize = usize::MAX;

/// An upload under way.
pub(super) struct Run<'a> {
    pub(super) job: &'a UploadJob<'a>,
    pub(super) there: There,
    pub(super) channels: Channels<'a>,
    /// For all servers together, and for each.
    limit: Limit,
    limits: Vec<Limit>,
    state: Mutex<State>,
    pub(super) changed: Condvar,
    begin: Instant,
}

/// A connection to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct At {
    pub(super) server: ServerId,
    pub(super) epoch: u32,
}

/// A task that was begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attempt {
    pub(super) id: TaskId,
    pub(super) number: u32,
    pub(super) file: usize,
}

/// What is heard of servers.
pub(super) enum Event {
    /// Bytes of a message were answered for, of which so many were written.
    Answered { at: At, attempt: Attempt, bytes: u64, written: u64 },
    /// A file has its name, or cannot have it.
    Ended { at: At, attempt: Attempt, result: Result<(), FetchError> },
    /// A connection is lost.
    Lost { at: At, error: RemoteError },
    /// A lost server is there again, or not.
    Tried { server: ServerId, client: Option<Client> },
}

impl<'a> Run<'a> {
    /// Asks the servers what they have.
    pub(super) fn new(job: &'a UploadJob<'a>) -> Self {
        let there = There::ask(job.servers, job.plan);
        let begin = Instant::now();
        let mut uploaded = Fetched { failed: there.in_the_way(job.plan), ..Fetched::default() };
        let mut files = Vec::new();
        let mut tasks = vec![0; job.plan.files.len()];
        for (number, file) in job.plan.files.iter().enumerate() {
            let size = file.seen.size;
            if there.blocked.is_above(&file.to) {
                continue;
            }
            let at = match there.wish(file, job.existing) {
                Wish::Kept => {
                    uploaded.kept += 1;
                    job.meter.add_kept(size);
                    continue;
                }
                Wish::Refused(way) => {
                    let path = file.to.as_bytes().to_vec();
                    uploaded.failed.push((path, FetchError::InTheWay(way)));
                    continue;
                }
                Wish::Anywhere => vec![None],
                Wish::At(servers) => servers.into_iter().map(Some).collect(),
            };
            tasks[number] = at.len();
            files.extend(at.into_iter().map(|only| (number, size, only)));
        }
        let link = |client: &Client| Link {
            client: Some(client.clone()),
            epoch: 0,
            flow: Flow::new(client.round_trip(), Duration::ZERO),
            backlog: 0,
            full_from: u64::MAX,
            retries: Retries::new(RetryPolicy::UPLOAD),
            retry_at: None,
            touched: BTreeSet::new(),
        };
        let queue = Queue::new(files, job.servers.len());
        let links: Vec<Link> = job.servers.iter().map(link).collect();
        let state =
            State { queue, links, uploaded, tasks, gone_since: None, busy: 0, is_over: false };
        let Parameters { client, servers } = job.parameters;
        let limit = Limit::new(client.rate);
        let limits = job.servers.iter().map(|_| Limit::new(servers.rate)).collect();
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let channels = Channels::new(job.source.channels, job.source.redial);
        Self { job, there, channels, limit, limits, state, changed, begin }
    }

    /// Makes the directories and links, sends the files, and brings their names to the disks.
    pub(super) fn all(mut self) -> std::io::Result<Fetched> {
        let lost = std::mem::take(&mut self.there.lost);
        for (server, error) in lost {
            self.lose(&mut self.state(), At { server, epoch: 0 }, error);
        }
        dirs::make(&self);
        let (say, events) = channel();
        thread::scope(|scope| {
            let served = self.serve(scope, (&say, &events));
            let mut state = self.state();
            state.is_over = true;
            if served.is_err() {
                close(&state, "the client has no room for another thread");
            }
            drop(state);
            self.changed.notify_all();
            served
        })?;
        dirs::finish(&self);
        Ok(self.state.into_inner().unwrap_or_else(PoisonError::into_inner).uploaded)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.job.stop.load(Ordering::Relaxed)
    }

    fn serve<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        (say, events): (&Sender<Event>, &Receiver<Event>),
    ) -> std::io::Result<()> {
        for server in (0..self.job.servers.len()).map(ServerId) {
            self.start_lanes(scope, server, say)?;
        }
        let (mut over_since, mut checked) = (None, Instant::now());
        loop {
            match events.recv_timeout(LOOK) {
                Ok(Event::Tried { server, client }) => {
                    if self.tried(server, client) {
                        self.start_lanes(scope, server, say)?;
                    }
                }
                Ok(event) => self.hear(event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            let mut state = self.state();
            if self.is_stopped() {
                self.give_up(&mut state, |_| FetchError::Stopped);
                close(&state, "stopped by the user");
                return Ok(());
            }
            if checked.elapsed() >= LOOK {
                checked = Instant::now();
                self.check_reach(&mut state);
                self.judge(&mut state);
            }
            if !state.queue.is_empty() {
                self.retry(&mut state, scope, say)?;
            } else if state.busy == 0 {
                return Ok(());
            } else if over_since.get_or_insert_with(Instant::now).elapsed() > STOP_TIME {
                // What they still send was taken over by others.
                close(&state, "the transfer is over");
                return Ok(());
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    fn start_lanes<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        server: ServerId,
        say: &Sender<Event>,
    ) -> std::io::Result<()> {
        let (client, epoch) = {
            let state = self.state();
            let link = &state.links[server.0];
            (link.client.clone(), link.epoch)
        };
        let Some(client) = client else { return Ok(()) };
        for _ in 0..self.job.parameters.client.streams.clamp(1, LANES_MAX) {
            let (client, say, at) = (client.clone(), say.clone(), At { server, epoch });
            let named = thread::Builder::new().name("mover-upload".to_owned());
            named.spawn_scoped(scope, move || self.lane(&client, at, &say))?;
        }
        Ok(())
    }

    fn hear(&self, event: Event) {
        let mut state = self.state();
        match event {
            Event::Answered { at, attempt, bytes, written } => {
                state.answered(at, bytes, self.now());
                self.written(&mut state, at, attempt, written);
            }
            Event::Ended { at, attempt, result } => self.ended(&mut state, (at, attempt), result),
            Event::Lost { at, error } => self.lose(&mut state, at, error),
            Event::Tried { .. } => {}
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until so many bytes may go to a server, or until the upload has ended.
    pub(super) fn pace(&self, server: ServerId, bytes: u64) {
        self.limit.wait(bytes, || self.is_ended());
        self.limits[server.0].wait(bytes, || self.is_ended());
    }

    fn moved(&self, server: ServerId, bytes: u64) {
        if self.job.source.counted == Counted::Target {
            self.job.meter.add_moved(server, bytes);
        }
    }

    /// Bytes have come by a channel of the source.
    pub(super) fn came(&self, channel: ServerId, bytes: u64) {
        if self.job.source.counted == Counted::Source {
            self.job.meter.add_moved(channel, bytes);
        }
    }

    fn set_lost(&self, server: ServerId, is_lost: bool) {
        if self.job.source.counted == Counted::Target {
            self.job.meter.set_lost(server, is_lost);
        }
    }

    fn written(&self, state: &mut State, at: At, attempt: Attempt, bytes: u64) {
        let (counted, progress) = state.queue.written(attempt.id, attempt.number, bytes);
        state.links[at.server.0].backlog -= counted;
        self.job.meter.add_written(progress);
        self.moved(at.server, progress);
    }

    fn ended(
        &self,
        state: &mut State,
        (at, attempt): (At, Attempt),
        result: Result<(), FetchError>,
    ) {
        if state.queue.turn(attempt.id, attempt.number) == Turn::Over {
            return;
        }
        let file = &self.job.plan.files[attempt.file];
        match result {
            Ok(()) => {
                if let Some((dir, _)) = file.to.split() {
                    state.links[at.server.0].touched.insert(dir);
                }
                let sent = state.queue.end(attempt.id);
                for sending in sent.main.iter().chain(&sent.trials) {
                    state.links[sending.server.0].backlog -= sending.left;
                }
                state.tasks[attempt.file] -= 1;
                if state.tasks[attempt.file] == 0 {
                    state.uploaded.files += 1;
                    state.uploaded.bytes += file.seen.size;
                    self.job.meter.add_file();
                    let path = file.to.as_bytes();
                    self.job.meter.tell_file(FileStage::End, path, file.seen.size);
                }
            }
            Err(FetchError::Server(error)) if error.is_of_server() => self.lose(state, at, error),
            Err(FetchError::Server(RemoteError::Refused {
                kind: ErrorKind::NoSpace | ErrorKind::Quota,
                ..
            })) if state.fits_elsewhere(at.server, attempt.id) => {
                let link = &mut state.links[at.server.0];
                link.full_from = link.full_from.min(file.seen.size);
                self.take_back(state, attempt.id, attempt.number);
            }
            Err(_) if state.queue.is_trial(attempt.id, attempt.number) => {
                self.take_back(state, attempt.id, attempt.number);
            }
            Err(error) => self.fail(state, attempt.id, error),
        }
    }

    /// A file's task has failed for good; what else is to be done for the file is not done.
    fn fail(&self, state: &mut State, id: TaskId, error: FetchError) {
        let file = state.queue.task(id).file;
        let sent = state.queue.end(id);
        for trial in sent.trials {
            state.links[trial.server.0].backlog -= trial.left;
        }
        if let Some(main) = sent.main {
            self.uncount(state, id, main);
        }
        // Tasks of the same file for other servers go on: each replaces an older version.
        if std::mem::replace(&mut state.tasks[file], FAILED) < FAILED / 2 {
            let File { to, seen, .. } = &self.job.plan.files[file];
            let path = to.as_bytes();
            self.job.meter.tell_file(FileStage::Failed, path, seen.size);
            state.uploaded.failed.push((path.to_vec(), error));
        }
    }

    /// A server does not send a file any more, which waits again unless a trial of it goes on.
    fn take_back(&self, state: &mut State, id: TaskId, attempt: u32) {
        match state.queue.give_back(id, attempt) {
            Some(GivenBack::Trial(trial)) => state.links[trial.server.0].backlog -= trial.left,
            Some(GivenBack::Main { sending, heir }) => {
                self.uncount(state, id, sending);
                heir.iter().for_each(|heir| self.count(state, id, *heir));
            }
            None => {}
        }
    }

    /// What was written by a sending does not count any more.
    pub(super) fn uncount(&self, state: &mut State, id: TaskId, sending: Sending) {
        state.links[sending.server.0].backlog -= sending.left;
        let written = state.queue.task(id).size - sending.left;
        match self.job.source.counted {
            Counted::Target => self.job.meter.take_back(sending.server, written),
            Counted::Source => self.job.meter.take_back_written(written),
        }
    }

    /// What was written by a trial counts from now on.
    fn count(&self, state: &State, id: TaskId, sending: Sending) {
        let written = state.queue.task(id).size - sending.left;
        self.job.meter.add_written(written);
        self.moved(sending.server, written);
    }

    /// Ends trials whose servers' rates are known.
    fn judge(&self, state: &mut State) {
        let loads = state.loads(self.now());
        for Judged { id, loser, winner } in state.queue.judge(&loads) {
            match winner {
                Some(winner) => {
                    self.uncount(state, id, loser);
                    self.count(state, id, winner);
                }
                None => state.links[loser.server.0].backlog -= loser.left,
            }
        }
    }

    /// A connection is lost: others get its files.
    pub(super) fn lose(&self, state: &mut State, at: At, error: RemoteError) {
        let link = &mut state.links[at.server.0];
        let Some(client) = link.client.take_if(|_| link.epoch == at.epoch) else { return };
        // Lanes that wait for it end by this.
        client.connection().close(hikyaku_net::code::APPLICATION, "the connection is given up");
        link.epoch += 1;
        link.retry_later();
        for (id, attempt) in state.queue.at(at.server) {
            self.take_back(state, id, attempt);
        }
        self.set_lost(at.server, true);
        if state.uploaded.lost.iter().all(|(lost, _)| *lost != at.server) {
            state.uploaded.lost.push((at.server, error.to_string()));
        }
    }

    /// Tries lost servers again that are due.
    fn retry<'scope>(
        &'scope self,
        state: &mut State,
        scope: &'scope Scope<'scope, '_>,
        say: &Sender<Event>,
    ) -> std::io::Result<()> {
        let now = Instant::now();
        for (server, link) in (0..).map(ServerId).zip(&mut state.links) {
            if link.retry_at.is_some_and(|due| due <= now) {
                link.retry_at = None;
                let say = say.clone();
                let named = thread::Builder::new().name("mover-redial".to_owned());
                named.spawn_scoped(scope, move || {
                    let client = (self.job.redial)(server);
                    // Nobody listens any more if all is over.
                    let _ = say.send(Event::Tried { server, client });
                })?;
            }
        }
        Ok(())
    }

    /// Whether a server that was tried is there again.
    fn tried(&self, server: ServerId, client: Option<Client>) -> bool {
        let round_trip = client.as_ref().map(Client::round_trip);
        let mut state = self.state();
        let link = &mut state.links[server.0];
        match client.zip(round_trip) {
            Some((client, round_trip)) => {
                link.client = Some(client);
                link.flow = Flow::new(round_trip, self.now());
                self.set_lost(server, false);
                true
            }
            None => {
                link.retry_later();
                false
            }
        }
    }

    /// Gives up what no server can take: all are gone for too long, those that are there are full, or the only one for it is
    /// gone while the others have nothing more to do.
    fn check_reach(&self, state: &mut State) {
        let loads = state.loads(self.now());
        for id in state.queue.too_large(&loads) {
            let path = &self.job.plan.files[state.queue.task(id).file].to;
            let error = hikyaku_store::StoreError::new("write", path, ErrorKind::NoSpace);
            let error = RemoteError::Refused { kind: ErrorKind::NoSpace, text: error.to_string() };
            self.fail(state, id, FetchError::Server(error));
        }
        let can_go_on = |task: &Task| match (task.stage, task.only) {
            (Stage::At(_), _) => true,
            (_, Some(only)) => loads[only.0].is_some(),
            (_, None) => loads.iter().any(Option::is_some),
        };
        if loads.iter().all(Option::is_some)
            || state.queue.is_empty()
            || state.queue.open().any(can_go_on)
        {
            state.gone_since = None;
        } else if state.gone_since.get_or_insert_with(Instant::now).elapsed() > self.job.patience {
            self.give_up(state, |is_for_one| match is_for_one {
                true => FetchError::OldOneAway,
                false => FetchError::NoTaker,
            });
        }
    }

    fn give_up(&self, state: &mut State, error: impl Fn(bool) -> FetchError) {
        for id in state.queue.all() {
            let only = state.queue.task(id).only;
            self.fail(state, id, error(only.is_some()));
        }
    }
}
