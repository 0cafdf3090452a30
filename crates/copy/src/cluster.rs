//! Copies between storages, and between a storage and this machine: daemons (`hikyaku serve`), one or many that have parts of
//! the same tree, Gfarm file systems, and whatever else crate `stores` opens. A source and a target of any kind go together.

mod again;
mod daemons;
mod direct;
mod ends;
mod gfarm;
mod here;
mod order;
mod start;
mod stored;
mod target;

use crate::outcome::{code_of_failures, exit_code, kind_of_file};
use crate::plan::CopyPlan;
use anyhow::{Result, bail};
use hikyaku_console::{
    Board, Counts, ExitCode, Kept, Message, MeterId, Noise, UPDATE_EVERY, headline,
};
use hikyaku_fs::Shown;
use hikyaku_job::Meter as Progress;
use hikyaku_mover::{Direction, Done, Failed, Kind, Meter, Session, Watch};
use hikyaku_run_log::Recorder;
use hikyaku_transfer::{FailureKind, FileHash};
use order::Order;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

pub(crate) use again::run;
pub(crate) use ends::ways;
pub(crate) use start::of_session;

/// The remark on a copy that another process makes at the same time.
const BESIDE: &str =
    "the same copy is under way: if this one is stopped, it does not continue within its files";
/// Failures that are printed one by one.
const TOLD: usize = 1000;

/// The result so far, and its display.
struct Outcome {
    board: Board,
    /// The meter of all sources, once the first one was reached.
    id: Option<MeterId>,
    /// Files and bytes of all sources.
    progress: Arc<Progress>,
    /// Parts and sources that follow the present one.
    later: usize,
    kinds: BTreeSet<FailureKind>,
    /// Whether the user knows that another process makes the same copy.
    is_beside: bool,
    told: usize,
    hashes: BTreeMap<Vec<u8>, FileHash>,
    /// Where it is written what the copy looks like.
    recorder: Option<Arc<Recorder>>,
    /// Files and bytes that earlier attempts have copied.
    earlier: Counts,
    /// The part of the copy that is kept if it ends now.
    kept: Option<Kept>,
    /// Failures that another connection may mend, if one is tried.
    held: Option<Vec<Failed>>,
}

/// Shows how far the work is until it has ended. The work ends early when the flag that it is given is set: the user has
/// stopped it.
fn follow<T: Send>(
    order: &Order<'_>,
    (meter, watch): (&Meter, Option<&Watch>),
    outcome: &mut Outcome,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> Result<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let _stopped = order.scope.on_stop(move || told.store(true, Ordering::Relaxed));
    outcome.id(Instant::now());
    let main = thread::current();
    let done = thread::scope(|scope| {
        let work = scope.spawn(|| {
            let done = work(&stop);
            main.unpark();
            done
        });
        while !work.is_finished() {
            thread::park_timeout(UPDATE_EVERY);
            outcome.update(&[]);
            outcome.note_beside(meter);
            watch.iter().for_each(|watch| watch.poll(meter));
        }
        work.join()
    });
    watch.iter().for_each(|watch| watch.last(meter));
    outcome.note_beside(meter);
    outcome.tell(&[]);
    let counts = outcome.counts();
    let of = counts.is_counted.then_some(counts.total_files);
    let kept = match order.direction {
        _ if outcome.progress.is_spent() => Kept::Spent,
        _ if meter.is_continued() => Kept::Everything,
        _ if meter.is_new_tree() => Kept::NewTree,
        Direction::In if counts.kept_bytes == 0 => Kept::whole_files(counts.files, of),
        // Servers may have completed files of an upload that they have not reported.
        Direction::In | Direction::Out => Kept::WholeFiles { files: counts.files, of },
    };
    outcome.kept = Some(kept);
    match done {
        _ if stop.load(Ordering::Relaxed) => bail!(kept),
        Ok(done) => Ok(done),
        Err(_) => bail!("a thread of the copy panicked"),
    }
}

impl Outcome {
    fn new(plan: &CopyPlan, recorder: Option<Arc<Recorder>>) -> Self {
        Self {
            board: Board::new(plan.report.audience, plan.report.stats_every),
            id: None,
            progress: Arc::default(),
            later: 0,
            kinds: BTreeSet::new(),
            is_beside: false,
            told: 0,
            hashes: BTreeMap::new(),
            recorder,
            earlier: Counts::default(),
            kept: None,
            held: None,
        }
    }

    fn code(&self, done: &Result<()>) -> ExitCode {
        match done {
            Ok(()) if self.kinds.is_empty() => ExitCode::Success,
            Ok(()) => code_of_failures(&self.kinds),
            Err(error) => ExitCode::of(error, &[exit_code]),
        }
    }

    /// The counters of a transfer from or to this number of servers.
    fn meter(&self, servers: usize, watch: Option<&Watch>) -> Meter {
        Meter::over(servers, self.progress.clone()).heard_by(watch.map(Watch::on_file))
    }

    /// The counts of all sources so far. What earlier attempts have copied is found by the present one.
    fn counts(&self) -> Counts {
        let (earlier, now) = (&self.earlier, self.attempt());
        Counts {
            files: earlier.files + now.files,
            kept_bytes: now.kept_bytes.saturating_sub(earlier.bytes),
            ..now
        }
    }

    /// The counts of the present attempt.
    fn attempt(&self) -> Counts {
        let tally = self.progress.tally();
        Counts {
            total_files: tally.total_files,
            total_bytes: tally.total_bytes,
            is_counted: tally.is_counted && self.later == 0,
            files: tally.files,
            bytes: tally.bytes,
            kept_bytes: tally.kept_bytes,
        }
    }

    /// The meter on the board, whose time begins with the first call.
    fn id(&mut self, now: Instant) -> MeterId {
        *self.id.get_or_insert_with(|| self.board.add(None, now))
    }

    /// Shows how far the copy is, and prints these messages.
    fn update(&mut self, messages: &[Message]) {
        let now = Instant::now();
        let id = self.id(now);
        let figures = (self.counts(), self.progress.path());
        self.board.update(id, figures, messages, now);
    }

    /// Continues with the other sources after a failure of one source only, whose name and whose number of sources are given.
    fn beside(&mut self, (sources, name): (usize, &str), copied: Result<()>) -> Result<()> {
        let Err(error) = copied else { return Ok(()) };
        let kind = kind_of_file(&error).filter(|kind| sources > 1 && *kind != FailureKind::Busy);
        let Some(kind) = kind else { return Err(error) };
        let (path, text) = (name.as_bytes().to_vec(), headline(&error));
        let message = self.add(&Failed { path, kind: Kind::File(kind), text });
        self.tell(message.as_slice());
        Ok(())
    }

    /// Reports once that another process makes the same copy.
    fn note_beside(&mut self, meter: &Meter) {
        let is_wanted = Noise::chosen() != Noise::Quiet;
        if is_wanted && meter.is_beside() && !std::mem::replace(&mut self.is_beside, true) {
            self.board.remark(BESIDE);
        }
    }

    /// The same between two sources, of which the next one may print messages of its own.
    fn tell(&mut self, messages: &[Message]) {
        self.update(messages);
        self.board.pause();
    }

    /// Reports the parts of a source that could not be copied.
    fn end(&mut self, done: Done, direction: Direction) {
        for (address, error) in &done.lost {
            let rest = match direction {
                Direction::In => "the others have taken over",
                Direction::Out => "its files went to others, or were tried again",
            };
            self.board.remark(&format!("{address}: {error}; {rest}"));
        }
        let before = self.told.max(TOLD);
        let mut messages: Vec<Message> =
            done.failed.iter().filter_map(|failed| self.add(failed)).collect();
        self.hashes.extend(done.hashes);
        let would = done.would.iter().map(|path| Message::Would(Shown::new(path).to_string()));
        messages.extend(would);
        self.tell(&messages);
        if self.told > before {
            self.board.remark(&format!("{} more could not be copied", self.told - before));
        }
    }

    /// What writes the log of a transfer from or to these servers, if the user wants one.
    fn watch(
        &self,
        names: &[String],
        session: Option<&Session>,
        direction: Direction,
    ) -> Option<Watch> {
        Watch::new(self.recorder.as_ref(), names, session, direction)
    }
    /// Counts a failure; the message that tells it, unless so many were told before, or another connection may mend it.
    fn add(&mut self, failure: &Failed) -> Option<Message> {
        let Failed { path, kind, text } = failure;
        let kind = kind.as_file();
        if let Some(held) = self.held.as_mut().filter(|_| kind == FailureKind::Busy) {
            held.push(failure.clone());
            return None;
        }
        self.kinds.insert(kind);
        self.told += 1;
        let path = Shown::new(path).to_string();
        // Errors of a store begin with the path.
        let text =
            text.strip_prefix(&format!("{path}: ")).map_or_else(|| text.clone(), str::to_owned);
        (self.told <= TOLD).then(|| {
            let (line, kind) = (format!("{path}: {text}"), crate::show::word(kind));
            Message::Failure(hikyaku_console::Failed { line, host: None, path, kind, text })
        })
    }
}
