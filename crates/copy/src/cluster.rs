//! Copies from and to daemons (`hikyaku serve`): one, or many that have parts of the same tree; and from the nodes of a
//! Gfarm file system. Buckets of S3-compatible services come and go the same way, where the program is built for them.

mod beside;
mod direct;
mod gfarm;
#[cfg(not(feature = "s3"))]
mod no_s3;
mod order;
#[cfg(feature = "s3")]
mod s3;
mod start;

use crate::outcome::{code_of_failures, exit_code};
use crate::plan::CopyPlan;
use anyhow::{Context, Result, bail};
use hikyaku_console::{
    Audience, Board, Counts, Ending, ExitCode, Interrupt, Kept, Message, MeterId, PathFigures,
    UPDATE_EVERY, headline, misuse, print_end, printed, unwritten,
};
use hikyaku_fan::{Direction, Done, Download, Failed, Meter, Session, Upload, Watch, remote_path};
use hikyaku_fs::Shown;
use hikyaku_reach::dial::Servers;
use hikyaku_run_log::Recorder;
use hikyaku_store::StorePath;
use hikyaku_stores::{GfarmPath, S3Path};
use hikyaku_transfer::{FailureKind, Pass};
#[cfg(not(feature = "s3"))]
use no_s3 as s3;
use order::Order;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Failures that are told one by one.
const TOLD: usize = 1000;

/// What is copied, and whereto.
#[derive(Clone, Debug)]
pub(crate) enum Transfer {
    /// From servers to a path of this machine.
    Down(Sources, PathBuf),
    /// From paths of this machine to daemons.
    Up(Vec<PathBuf>, Servers),
    /// From paths of this machine into a Gfarm file system.
    UpToGfarm(Vec<PathBuf>, GfarmPath),
    /// From paths of this machine into a bucket.
    UpToS3(Vec<PathBuf>, S3Path),
}

/// What is copied from servers.
#[derive(Clone, Debug)]
pub(crate) enum Sources {
    /// Paths on daemons.
    Daemons(Vec<Servers>),
    /// Paths in a Gfarm file system.
    Gfarm(Vec<GfarmPath>),
    /// Paths in a bucket.
    S3(Vec<S3Path>),
}

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
    let done = Order::new(plan, &scope, transfer).and_then(|order| match transfer {
        Transfer::Down(sources, target) => download(&order, (sources, target), &mut outcome),
        Transfer::Up(sources, target) => to_daemons(&order, (sources, target), &mut outcome),
        Transfer::UpToGfarm(sources, target) => {
            gfarm::upload(&order, (sources, target), &mut outcome)
        }
        Transfer::UpToS3(sources, target) => s3::upload(&order, (sources, target), &mut outcome),
    });
    let code = match &done {
        Ok(()) if outcome.kinds.is_empty() => ExitCode::Success,
        Ok(()) => code_of_failures(&outcome.kinds),
        Err(error) => ExitCode::of(error, &[exit_code]),
    };
    if let Some(recorder) = &outcome.recorder {
        crate::log::end(recorder, code, outcome.counts.files, outcome.counts.sent());
    }
    if plan.report.audience == Audience::Program {
        let error = done.as_ref().err().map(headline);
        let exit = interrupt.exit(code);
        printed(print_end(&outcome.counts, begin.elapsed(), exit, error.as_deref()))?;
    }
    done.map(|()| code)
}

/// Copies from servers to this machine.
fn download(
    order: &Order<'_>,
    (sources, target): (&Sources, &Path),
    outcome: &mut Outcome,
) -> Result<()> {
    crate::run::check_target(target)?;
    match sources {
        Sources::Daemons(sources) => from_daemons(order, (sources, target), outcome),
        Sources::Gfarm(sources) => gfarm::all(order, (sources, target), outcome),
        Sources::S3(sources) => s3::all(order, (sources, target), outcome),
    }
}

fn from_daemons(
    order: &Order<'_>,
    (sources, target): (&[Servers], &Path),
    outcome: &mut Outcome,
) -> Result<()> {
    let first = sources.first().context("no source")?;
    if sources.iter().any(|source| source.servers != first.servers) {
        let text = "sources on several sets of servers cannot be copied by one command";
        return Err(misuse(text, "a command for each set"));
    }
    let paths: Vec<StorePath> = (sources.iter().map(|source| remote_path(&source.path)))
        .collect::<Result<_, _>>()
        .map_err(start::of_session)?;
    let connected = start::connect(order, first)?;
    let session = &connected.session;
    let watch = outcome.watch(&session.names(), Some(session), Direction::In);
    let meter = Meter::new(session.met().len()).heard_by(watch.as_ref().map(Watch::on_file));
    let (done, shown) = follow(order, (&meter, watch.as_ref()), outcome, |stop| {
        session.download(&Download {
            sources: &paths,
            target,
            choice: &order.choice(),
            modes: order.modes(),
            streams: &order.streams(),
            meter: &meter,
            stop,
        })
    })?;
    let done = done.map_err(|error| start::of_download(error, sources))?;
    shown.end(&done, Direction::In, outcome)
}

/// Copies files of this machine to daemons.
fn to_daemons(
    order: &Order<'_>,
    (sources, target): (&[PathBuf], &Servers),
    outcome: &mut Outcome,
) -> Result<()> {
    let path = remote_path(&target.path).map_err(start::of_session)?;
    let connected = start::connect(order, target)?;
    let session = &connected.session;
    let watch = outcome.watch(&session.names(), Some(session), Direction::Out);
    let meter = Meter::new(session.met().len()).heard_by(watch.as_ref().map(Watch::on_file));
    let (done, shown) = follow(order, (&meter, watch.as_ref()), outcome, |stop| {
        session.upload(&Upload {
            sources,
            target: &path,
            choice: &order.choice(),
            modes: order.modes(),
            meter: &meter,
            stop,
        })
    })?;
    shown.end(&done.map_err(start::of_session)?, Direction::Out, outcome)
}

/// What came of it so far.
#[derive(Default)]
struct Outcome {
    kinds: BTreeSet<FailureKind>,
    told: usize,
    counts: Counts,
    /// Where it is written what the copy looks like.
    recorder: Option<Arc<Recorder>>,
}

/// What is shown of a transfer after its work has ended.
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
    match done {
        _ if stop.load(Ordering::Relaxed) => {
            board.finish(id, Ending::Untold, Instant::now());
            let of = counts.is_counted.then_some(counts.total_files);
            bail!(match order.direction {
                _ if meter.is_new_tree() => Kept::NewTree,
                Direction::In if counts.kept_bytes == 0 => Kept::whole_files(counts.files, of),
                // Servers may have completed files of an upload that they have not reported.
                Direction::In | Direction::Out => Kept::WholeFiles { files: counts.files, of },
            })
        }
        Ok(done) => {
            let is_rehearsal = order.choice().pass == Pass::DryRun;
            let ending = if is_rehearsal { Ending::Untold } else { Ending::Done };
            Ok((done, Display { board, id, counts, ending }))
        }
        Err(_) => bail!("a thread of the copy panicked"),
    }
}

impl Display {
    /// Tells what could not be copied, and how much was.
    fn end(mut self, done: &Done, direction: Direction, outcome: &mut Outcome) -> Result<()> {
        for (address, error) in &done.lost {
            let rest = match direction {
                Direction::In => "the others have taken over",
                Direction::Out => "its files went to others, or were tried again",
            };
            self.board.remark(&format!("{address}: {error}; {rest}"));
        }
        let mut messages: Vec<Message> =
            done.failed.iter().filter_map(|failed| outcome.add(failed)).collect();
        let would = done.would.iter().map(|path| Message::Would(Shown::new(path).to_string()));
        messages.extend(would);
        let figures = (self.counts, PathFigures::default());
        self.board.update(self.id, figures, &messages, Instant::now());
        if outcome.told > TOLD {
            self.board.remark(&format!("{} more could not be copied", outcome.told - TOLD));
        }
        self.board.finish(self.id, self.ending, Instant::now());
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

    /// Counts a failure; the message that tells it, unless so many were told before.
    fn add(&mut self, Failed { path, kind, text }: &Failed) -> Option<Message> {
        let kind = kind.as_file();
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
