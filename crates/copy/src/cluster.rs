//! Copies between storages, and between a storage and this machine: daemons (`hikyaku serve`), one or many that have parts of
//! the same tree, Gfarm file systems, and whatever else crate `stores` opens. A source and a target of any kind go together.

mod again;
mod beside;
mod daemons;
mod direct;
mod ends;
mod gfarm;
mod here;
mod order;
mod start;
mod stored;
mod target;

use crate::manifest;
use crate::outcome::{code_of_failures, exit_code};
use crate::plan::CopyPlan;
use anyhow::{Context, Result, bail};
use beside::beside;
use hikyaku_console::{
    Board, Counts, Ending, ExitCode, Interrupt, Kept, Message, MeterId, PathFigures, UPDATE_EVERY,
    headline, print_end, printed, unwritten,
};
use hikyaku_fs::Shown;
use hikyaku_mover::{Direction, Done, Failed, Meter, Session, Watch};
use hikyaku_run_log::Recorder;
use hikyaku_stores::Location;
use hikyaku_transfer::{FailureKind, FileHash, Pass};
use order::Order;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use target::TargetEnd;

pub(crate) use ends::{End, Transfer};
pub(crate) use start::of_session;

/// Failures that are printed one by one.
const TOLD: usize = 1000;

/// Copies.
pub(crate) fn run(
    plan: &CopyPlan,
    interrupt: &Interrupt,
    transfer: &Transfer,
    recorder: Option<Arc<Recorder>>,
) -> Result<ExitCode> {
    interrupt.listen().context("cannot listen for signals")?;
    let (scope, begin) = (interrupt.scope(), Instant::now());
    let mut outcome = Outcome { recorder, ..Outcome::default() };
    let done = Order::new(plan, &scope, transfer)
        .and_then(|order| again::persist(&order, transfer, &mut outcome));
    let code = match &done {
        Ok(()) if outcome.kinds.is_empty() => ExitCode::Success,
        Ok(()) => code_of_failures(&outcome.kinds),
        Err(error) => ExitCode::of(error, &[exit_code]),
    };
    if let Some(recorder) = &outcome.recorder {
        crate::log::end(recorder, code, outcome.counts.files, outcome.counts.sent());
    }
    let (error, exit) = (done.as_ref().err().map(headline), interrupt.exit(code));
    let counts = (&outcome.counts, begin.elapsed());
    printed(print_end(plan.report.audience, counts, exit, error.as_deref()))?;
    done.map(|()| code)
}

/// Copies the sources of each storage, in the order of the command.
fn copy(order: &Order<'_>, transfer: &Transfer, outcome: &mut Outcome) -> Result<()> {
    let target = TargetEnd::new(order, &transfer.target)?;
    for part in &transfer.parts {
        let (choice, together) = (&order.choice(), order.together(part));
        let copied = match (part.0.first(), &transfer.target) {
            (Some(Location::Local(_)), End::Daemons(servers)) => {
                let paths = (&*part.paths(), choice, together);
                daemons::upload(order, paths, servers, outcome)
            }
            (Some(Location::Local(_)), _) => {
                here::copy(order, (&part.paths(), choice, together), &target, outcome)
            }
            (Some(Location::Servers(_)), _) => {
                daemons::copy(order, (&part.servers(), choice, together), &target, outcome)
            }
            (_, _) => stored::copy(order, (&part.0, choice, together), &target, outcome),
        };
        beside(order, (transfer.parts.len(), &part.name()), copied, outcome)?;
    }
    order.plan.report.manifest.iter().try_for_each(|path| manifest::save(path, &outcome.hashes))
}

/// The result so far.
#[derive(Default)]
struct Outcome {
    kinds: BTreeSet<FailureKind>,
    told: usize,
    counts: Counts,
    hashes: BTreeMap<Vec<u8>, FileHash>,
    /// Where it is written what the copy looks like.
    recorder: Option<Arc<Recorder>>,
    /// What was kept if the copy ended here.
    kept: Option<Kept>,
    /// Failures that another connection may mend, if one is tried.
    held: Option<Vec<Failed>>,
}

/// The display of a transfer whose work has ended.
struct Display {
    board: Board,
    id: MeterId,
    counts: Counts,
    ending: Ending,
}

/// Shows how far the work is until it has ended. The work ends early when the flag that it is given is set: the user has
/// stopped it.
fn follow<T: Send>(
    order: &Order<'_>,
    (meter, watch): (&Meter, Option<&Watch>),
    outcome: &mut Outcome,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> Result<(T, Display)> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let _stopped = order.scope.on_stop(move || told.store(true, Ordering::Relaxed));
    let mut board = Board::new(order.plan.report.audience, order.plan.report.stats_every);
    let id = board.add(None, Instant::now());
    let main = thread::current();
    let done = thread::scope(|scope| {
        let work = scope.spawn(|| {
            let done = work(&stop);
            main.unpark();
            done
        });
        while !work.is_finished() {
            thread::park_timeout(UPDATE_EVERY);
            board.update(id, (counts(meter), PathFigures::default()), &[], Instant::now());
            watch.iter().for_each(|watch| watch.poll(meter));
        }
        work.join()
    });
    watch.iter().for_each(|watch| watch.last(meter));
    let counts = counts(meter);
    outcome.counts.add(&counts);
    let of = counts.is_counted.then_some(counts.total_files);
    let kept = match order.direction {
        _ if meter.is_continued() => Kept::Everything,
        _ if meter.is_new_tree() => Kept::NewTree,
        Direction::In if counts.kept_bytes == 0 => Kept::whole_files(counts.files, of),
        // Servers may have completed files of an upload that they have not reported.
        Direction::In | Direction::Out => Kept::WholeFiles { files: counts.files, of },
    };
    outcome.kept = Some(kept);
    match done {
        _ if stop.load(Ordering::Relaxed) => {
            board.finish(id, Ending::Untold, Instant::now());
            bail!(kept)
        }
        Ok(done) => {
            let is_rehearsal = order.pass() == Pass::DryRun;
            let ending = if is_rehearsal { Ending::Untold } else { Ending::Done };
            Ok((done, Display { board, id, counts, ending }))
        }
        Err(_) => bail!("a thread of the copy panicked"),
    }
}

impl Display {
    /// Tells what could not be copied, and how much was.
    fn end(mut self, done: Done, direction: Direction, outcome: &mut Outcome) -> Result<()> {
        for (address, error) in &done.lost {
            let rest = match direction {
                Direction::In => "the others have taken over",
                Direction::Out => "its files went to others, or were tried again",
            };
            self.board.remark(&format!("{address}: {error}; {rest}"));
        }
        let mut messages: Vec<Message> =
            done.failed.iter().filter_map(|failed| outcome.add(failed)).collect();
        outcome.hashes.extend(done.hashes);
        let would = done.would.iter().map(|path| Message::Would(Shown::new(path).to_string()));
        messages.extend(would);
        let figures = (self.counts, PathFigures::default());
        self.board.update(self.id, figures, &messages, Instant::now());
        if outcome.told > TOLD {
            self.board.remark(&format!("{} more could not be copied", outcome.told - TOLD));
        }
        let ending = if outcome.is_held() { Ending::Untold } else { self.ending };
        self.board.finish(self.id, ending, Instant::now());
        match self.board.into_lost() {
            Some(error) => Err(unwritten(error)),
            None => Ok(()),
        }
    }
}

impl Outcome {
    /// What writes the log of a transfer from or to these servers, if the user wants one.
    fn watch(
        &self,
        names: &[String],
        session: Option<&Session>,
        direction: Direction,
    ) -> Option<Watch> {
        Watch::new(self.recorder.as_ref(), names, session, direction)
    }

    /// Whether there are failures that another connection may mend.
    fn is_held(&self) -> bool {
        self.held.as_ref().is_some_and(|held| !held.is_empty())
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

fn counts(meter: &Meter) -> Counts {
    let ((total_files, total_bytes), kept_bytes) = (meter.found(), meter.kept());
    Counts {
        total_files,
        total_bytes,
        is_counted: meter.is_found(),
        files: meter.files(),
        bytes: meter.written() + kept_bytes,
        kept_bytes,
    }
}
