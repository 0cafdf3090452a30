//! An upload under way: lanes send files, one thread hears what came of them.

use super::UploadJob;
use super::dirs;
use super::queue::{Queue, TaskId};
use super::source::Channels;
use super::state::{Link, State, close};
use super::there::{There, Wish};
use crate::bottleneck::{Ends, Gauge, Waits};
use crate::census::ServerId;
use crate::fetch::{FetchError, Fetched};
use crate::session::Parameters;
use hikyaku_remote::{Client, Flow, RemoteError};
use hikyaku_store::Latency;
use hikyaku_transfer::Limit;
use hikyaku_units::{Retries, RetryPolicy};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// Nanoseconds that lanes have waited for bytes of the source.
    pub(super) reading: AtomicU64,
    /// Bytes that were sent.
    sent: AtomicU64,
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
            let at = match there.wish(file, (job.existing, job.same)) {
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
        let Parameters { client, servers } = job.parameters;
        let latencies = job.source.channels.iter().map(|channel| channel.latency());
        let ends = Ends::of(latencies, Latency::RoundTrip);
        let state = State {
            queue,
            links,
            uploaded,
            tasks,
            gone_since: None,
            busy: 0,
            sending: (Duration::ZERO, begin),
            gauge: Gauge::new(ends, client.rate),
            is_over: false,
        };
        let limit = Limit::new(client.rate);
        let limits = job.servers.iter().map(|_| Limit::new(servers.rate)).collect();
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let channels = Channels::new(job.source.channels, job.source.redial);
        let (reading, sent) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { job, there, channels, limit, limits, state, changed, reading, sent, begin }
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
                self.judge_rate(&mut state);
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

    /// Notes the limit of the rate twice a second. A lane that is busy and does not wait for the source waits for its server.
    fn judge_rate(&self, state: &mut State) {
        let now = Instant::now();
        let lanes = u32::try_from(state.busy.max(1)).unwrap_or(u32::MAX);
        state.sending.0 += now.saturating_duration_since(state.sending.1) * lanes;
        state.sending.1 = now;
        let reading = Duration::from_nanos(self.reading.load(Ordering::Relaxed));
        let writing = state.sending.0.saturating_sub(reading);
        let waits = Waits { bytes: self.sent.load(Ordering::Relaxed), reading, writing };
        if let Some(limited_by) = state.gauge.look(now, waits) {
            self.job.meter.set_limited_by(limited_by);
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

    /// Waits until this number of bytes may go to a server, or until the upload has ended.
    pub(super) fn pace(&self, server: ServerId, bytes: u64) {
        self.limit.wait(bytes, || self.is_ended());
        self.limits[server.0].wait(bytes, || self.is_ended());
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }
}
