//! Fetching what is missing of a file: what the threads of a download share.
//!
//! One lock guards the [`State`]. Nobody holds it while waiting for the network or the disk.

use crate::journal::Journal;
use crate::ranges::Board;
use crate::show::Show;
use crate::standing::{Fate, Standing};
use crate::{steer, worker};
use anyhow::{Error, Result};
use hikyaku_fs::{Draft, Zeros};
use hikyaku_http::{Answer, Client, Fault, Known, Source, Stop};
use hikyaku_transfer::Limit;
use hikyaku_tuner::Tuner;
use hikyaku_units::RetryPolicy;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often what was written is synced and recorded.
const KEEP_EVERY: Duration = Duration::from_secs(2);

/// How a download behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conduct {
    /// Connections at most.
    pub(crate) cap: u32,
    /// Failures of a source in a row before it is given up.
    pub(crate) retries: u32,
    /// The same of a port where nobody listens, if that is the first that is heard of a server.
    pub(crate) retries_of_closed_port: u32,
    /// The waits between two attempts that no server has asked for.
    pub(crate) retry: RetryPolicy,
}

/// A download.
pub(crate) struct Fetch<'a> {
    pub(crate) client: &'a Client,
    pub(crate) sources: &'a [Source],
    /// The offer of the first server.
    pub(crate) known: &'a Known,
    pub(crate) draft: &'a Draft,
    pub(crate) journal: &'a Journal,
    pub(crate) limit: &'a Limit,
    pub(crate) show: &'a Show,
    pub(crate) conduct: Conduct,
    pub(crate) cut: Cut,
    /// Set when the command is to end.
    pub(crate) interrupted: &'a Stop,
    /// Set when this fetch is over.
    pub(crate) over: Stop,
    state: Mutex<State>,
    changed: Condvar,
}

/// How the file is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// By what a connection carries in some seconds.
    ByRate,
    /// At multiples of this many bytes, each piece from one source: the pieces have digests.
    Pieces(u64),
}

/// An answer that is there already, to the question for a range.
pub(crate) struct Ready {
    pub(crate) answer: Answer,
    pub(crate) range: Range<u64>,
    pub(crate) source: usize,
}

/// The state that the threads of a download share.
pub(crate) struct State {
    pub(crate) board: Board,
    pub(crate) standings: Vec<Standing>,
    /// Workers that should be at work.
    pub(crate) wanted: usize,
    /// As many as servers grant.
    pub(crate) cap: usize,
    /// Workers to which bytes flow.
    pub(crate) flowing: usize,
    /// Bytes that have come.
    pub(crate) bytes: u64,
    /// Time in which workers waited for the disk.
    pub(crate) disk: Duration,
    /// The shortest time that TCP took to connect.
    pub(crate) rtt: Option<Duration>,
    pub(crate) end: Option<End>,
}

/// How a fetch ended.
#[derive(Debug)]
pub(crate) enum End {
    /// All bytes are written.
    Done,
    /// No server is left that gives the rest.
    Fault(Fault),
    /// This end cannot go on.
    Local(Error),
}

/// The reason why a fetch is not complete.
#[derive(Debug)]
pub(crate) enum Unfetched {
    Fault(Fault),
    Local(Error),
}

impl<'a> Fetch<'a> {
    /// `fates` are those of the sources, one each.
    #[expect(clippy::too_many_arguments, reason = "called at one place")]
    pub(crate) fn new(
        client: &'a Client,
        (sources, fates): (&'a [Source], &[Fate]),
        known: &'a Known,
        (draft, journal): (&'a Draft, &'a Journal),
        (limit, show): (&'a Limit, &'a Show),
        (conduct, cut): (Conduct, Cut),
        interrupted: &'a Stop,
        board: Board,
    ) -> Self {
        let now = Instant::now();
        let state = State {
            board,
            standings: fates.iter().map(|&fate| Standing::new(fate, now)).collect(),
            wanted: 1,
            cap: conduct.cap as usize,
            flowing: 0,
            bytes: 0,
            disk: Duration::ZERO,
            rtt: None,
            end: None,
        };
        Self {
            client,
            sources,
            known,
            draft,
            journal,
            limit,
            show,
            conduct,
            cut,
            interrupted,
            over: Stop::default(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Fetches what is missing. Returns the board and the fates of the sources, also after a failure: what was written
    /// is recorded.
    pub(crate) fn run(
        self,
        tuner: &mut Tuner,
        ready: Option<Ready>,
    ) -> (Board, Vec<Fate>, Result<(), Unfetched>) {
        thread::scope(|scope| {
            let keeper = scope.spawn(|| self.keep());
            let mut ready = ready;
            steer::steer(&self, tuner, |index| {
                let (first, fetch) = (ready.take(), &self);
                let name = format!("get {index}");
                let spawned = thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, move || worker::work(fetch, index, first));
                spawned.is_ok()
            });
            self.over.set();
            self.changed.notify_all();
            keeper.thread().unpark();
        });
        // All threads have ended, so that nothing is written any more.
        let recorded = self.record();
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let fates = state.standings.iter().map(|standing| standing.fate).collect();
        let result = match (state.end, recorded) {
            (Some(End::Local(error)), _) | (Some(End::Done), Err(error)) => {
                Err(Unfetched::Local(error))
            }
            (Some(End::Done), Ok(())) => Ok(()),
            (Some(End::Fault(fault)), _) => Err(Unfetched::Fault(fault)),
            (None, _) => Err(Unfetched::Fault(Fault::Stopped)),
        };
        (state.board, fates, result)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something changes, for a tenth of a second at most.
    pub(crate) fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let waited = self.changed.wait_timeout(state, Duration::from_millis(100));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Ends the fetch, unless it has ended.
    pub(crate) fn end(&self, end: End) {
        self.state().end.get_or_insert(end);
        self.over.set();
        self.changed.notify_all();
    }

    /// Writes bytes of the file.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        Ok(self.draft.write_at(at, bytes, Zeros::Written)?)
    }

    /// Syncs and records what is written, until the fetch is over.
    fn keep(&self) {
        let mut recorded = self.state().bytes;
        while !self.over.is_set() {
            thread::park_timeout(KEEP_EVERY);
            let bytes = self.state().bytes;
            if bytes == recorded || self.over.is_set() {
                continue;
            }
            recorded = bytes;
            if let Err(error) = self.record() {
                self.end(End::Local(error));
            }
        }
    }

    fn record(&self) -> Result<()> {
        // Only what is written before the sync is on the disk after it.
        let there = self.state().board.there();
        self.draft.sync()?;
        self.journal.record(&there)
    }
}
