//! One run of the command.

use crate::args::GetArgs;
use crate::download::{Job, Tools, download};
use crate::elsewhere;
use crate::names::Names;
use crate::outcome::exit_code;
use crate::output::Output;
use crate::queue::Queue;
use crate::show::Show;
use crate::table::TABLE;
use crate::tunings::Tunings;
use anyhow::{Context, Error, Result};
use hikyaku_console::{
    ExitCode, Failed, Interrupt, Kept, Message, Screen, Way, causes, misuse, print_end, printed,
};
use hikyaku_http::{Client, Stop};
use hikyaku_transfer::Limit;
use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// Runs the command.
///
/// # Errors
/// A file could not be fetched; [`exit_code`] knows what that means.
pub fn run(args: &GetArgs, interrupt: &Interrupt) -> Result<ExitCode> {
    let elsewhere = elsewhere::locations(args)?;
    if !elsewhere.is_empty() {
        return elsewhere::run(args, elsewhere, interrupt);
    }
    interrupt.listen().context("cannot listen for signals")?;
    let scope = interrupt.scope();
    let begin = Instant::now();
    let stop = Stop::default();
    let to_stop = stop.clone();
    let _stops = scope.on_stop(move || to_stop.set());
    let output = args.output.as_deref().map(Output::of).transpose()?.flatten();
    let output = output.map(Arc::new);
    check(args, output.as_deref())?;
    let way = if output.is_some() { Way::WebToOutput } else { Way::FromWeb };
    let notes = TABLE.check(&args.given, &[way])?;
    let client = Arc::new(Client::new(args.settings()?)?);
    let shows = Show::all(args.audience(), args.jobs as usize);
    let totals = Arc::clone(&shows[0].totals);
    let command =
        Command { args, client, limit: Arc::new(Limit::new(args.rate.or(args.limit_rate))), stop };
    let screen = Screen::new(Arc::clone(&totals));
    for note in notes {
        totals.remark(note);
    }
    let done = Queue::new(args, output.as_ref(), (&command.client, &command.stop))
        .and_then(|queue| command.fetch_all(&shows, queue));
    screen.finish();
    let code = done.as_ref().err().map(|error| ExitCode::of(error, &[exit_code]));
    let error = done.as_ref().err().map(causes);
    let exit = interrupt.exit(code.unwrap_or(ExitCode::Success));
    let counts = (&totals.counts(), begin.elapsed());
    printed(print_end(args.audience(), counts, exit, error.as_deref()))?;
    done.map(|()| ExitCode::Success)
}

/// Refuses options that have no meaning for an output.
fn check(args: &GetArgs, output: Option<&Output>) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    if args.audience().is_program() && output.is_standard() {
        let wrong = "JSON and the file cannot both be written to standard output";
        return Err(misuse(wrong, "-o FILE"));
    }
    match args.connections {
        Some(2..) => Err(misuse(
            "an output takes a file in order, through one connection",
            "without -n, or -o FILE",
        )),
        _ => Ok(()),
    }
}

/// The parts that all downloads of a command share.
struct Command<'a> {
    args: &'a GetArgs,
    client: Arc<Client>,
    limit: Arc<Limit>,
    stop: Stop,
}

impl Command<'_> {
    /// Fetches all files, several at once. A failure does not keep the others from being fetched. Each show is for one file at
    /// a time.
    fn fetch_all(&self, shows: &[Show], queue: Queue<'_>) -> Result<()> {
        let shows = match queue.is_counted() {
            true => &shows[..shows.len().min((queue.count() as usize).max(1))],
            false => shows,
        };
        shows[0].count(|counts| {
            counts.total_files = queue.count();
            counts.is_counted = queue.is_counted() && queue.count() == 1;
        });
        let tunings = Tunings::new(self.args, &queue, shows.len());
        let (queue, results) = (Mutex::new(queue), Mutex::new(Results::default()));
        let names = Names::default();
        let fetch = |show: &Show| {
            loop {
                let mut queued = lock(&queue);
                let next = queued.next();
                show.count(|counts| {
                    counts.total_files = queued.count();
                    counts.is_counted |= queued.is_over();
                });
                let is_alone = queued.is_counted() && queued.count() == 1;
                drop(queued);
                let Some((at, job)) = next else { return };
                let done = job.and_then(|job| self.fetch(show, &tunings, &names, &job));
                if let Err(error) = &done
                    && !is_alone
                {
                    tell(show, error);
                }
                lock(&results).add(at, done);
            }
        };
        match shows {
            [show] => fetch(show),
            shows => thread::scope(|scope| {
                for show in shows {
                    scope.spawn(|| fetch(show));
                }
            }),
        }
        let queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let count = queue.count();
        let is_stopped = self.stop.is_set() && results.failed == 0;
        if !results.stopped.is_empty() || (is_stopped && results.complete < count) {
            return Err(kept(&results.stopped, (results.complete, count)).into());
        }
        match results.first {
            Some((_, first)) if count == 1 => Err(first),
            Some((_, first)) => {
                let failed = results.failed;
                Err(first.context(format!("{failed} of {count} files were not fetched")))
            }
            None => Ok(()),
        }
    }

    fn fetch(&self, show: &Show, tunings: &Tunings<'_>, names: &Names, job: &Job) -> Result<()> {
        let args = self.args;
        let tools = Tools {
            client: &self.client,
            limit: &self.limit,
            show,
            conduct: args.conduct(),
            existing: Cell::new(args.existing()),
            interrupted: &self.stop,
            tunings,
            names,
            added: Cell::default(),
        };
        download(&tools, job)
    }
}

/// The results of the files.
#[derive(Default)]
struct Results {
    complete: u64,
    failed: u64,
    /// The first of the files that failed, and why.
    first: Option<(u64, Error)>,
    /// The parts of stopped files that are kept.
    stopped: Vec<Kept>,
}

impl Results {
    fn add(&mut self, at: u64, done: Result<()>) {
        let Err(error) = done else {
            self.complete += 1;
            return;
        };
        self.failed += 1;
        self.stopped.extend(Kept::of(&error));
        if self.first.as_ref().is_none_or(|(first, _)| at < *first) {
            self.first = Some((at, error));
        }
    }
}

/// What is kept of all files, of which `stopped` were under way.
fn kept(stopped: &[Kept], (complete, of): (u64, u64)) -> Kept {
    let is_any = |wanted| stopped.contains(&wanted);
    match (is_any(Kept::Everything), is_any(Kept::Nothing)) {
        (true, false) => Kept::Everything,
        (true, true) => Kept::WholeFiles { files: complete, of: Some(of) },
        (false, _) => Kept::whole_files(complete, Some(of)),
    }
}

fn tell(show: &Show, error: &Error) {
    if Kept::of(error).is_some() {
        return;
    }
    let line = causes(error);
    show.tell(Message::Failure(Failed {
        line: line.clone(),
        host: None,
        path: String::new(),
        kind: "other".to_owned(),
        text: line,
    }));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The request cannot succeed, now or later.
pub(crate) fn lasting(text: String) -> Error {
    ExitCode::WillFail.error(text)
}

/// An option that is about one file.
pub(crate) fn of_several(option: &str) -> Error {
    misuse(format!("{option} is for one file, and these are several"), "one command for each")
}

pub(crate) fn is_metalink(word: &Path) -> bool {
    word.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("meta4"))
}
