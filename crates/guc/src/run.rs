//! One run of the command.

mod between;
mod down;
mod list;
mod newer;
mod pairs;
mod up;

use crate::args::GucArgs;
use crate::batch::{self, SMALL_BYTES_MAX};
use crate::glob::Pattern;
use crate::outcome::{Record, exit_code, lasting, of_several, part_of_several};
use crate::part::Wanted;
use crate::session::{Session, Shared};
use crate::several::{Between, Task, queue};
use crate::table::TABLE;
use crate::third::{Manner, Sink};
use crate::url::{Place, Remote};
use anyhow::{Context, Result, bail};
use hikyaku_console::{
    ExitCode, Failed, Interrupt, Kept, Message, Scope, Screen, Totals, Way, begun, causes, misuse,
    print_end, printed, with_remedy,
};
use hikyaku_fs::Shown;
use hikyaku_gridftp::{Credentials, FtpError, Guard, Kind, Login, Server};
use hikyaku_store_ftp::{Enter, Item, Notes};
use hikyaku_units::DataSize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;

use list::list;
use pairs::{Pair, pairs, servers};

/// Why an entry of a tree is left out.
const ODD: &str = "is neither a file nor a directory";
const CIRCLE: &str = "leads back to a directory above it";

/// Runs the command.
///
/// # Errors
/// A file could not be copied; [`exit_code`] knows what that means.
pub fn run(args: &GucArgs, interrupt: &Interrupt) -> Result<ExitCode> {
    interrupt.listen().context("cannot listen for signals")?;
    let scope = interrupt.scope();
    let show = Totals::new(args.audience(), args.cc as usize + 1);
    let pairs = match args.list {
        Some(_) => Vec::new(),
        None => checked_pairs(args, &show)?,
    };
    let done = match &args.list {
        Some(url) => list(args, url, (&scope, &show)),
        None => copy_pairs(args, &pairs, (&scope, &show)),
    };
    let code = done.as_ref().err().map(|error| ExitCode::of(error, &[exit_code]));
    let error = done.as_ref().err().map(causes);
    let exit = interrupt.exit(code.unwrap_or(ExitCode::Success));
    let counts = (&show.counts(), show.elapsed());
    printed(print_end(args.audience(), counts, exit, error.as_deref()))?;
    done.map(|()| ExitCode::Success)
}

/// The pairs of the command line, whose ways honour all given options.
fn checked_pairs(args: &GucArgs, show: &Totals) -> Result<Vec<Pair>> {
    let pairs = pairs(args)?;
    let ways: Vec<Way> = pairs.iter().map(Pair::way).collect::<Result<_>>()?;
    for note in TABLE.check(&args.given, &ways)? {
        show.remark(note);
    }
    Ok(pairs)
}

/// Copies all pairs, one after the other.
fn copy_pairs(args: &GucArgs, pairs: &[Pair], (scope, show): (&Scope, &Arc<Totals>)) -> Result<()> {
    let screen = Screen::new(Arc::clone(show));
    warn_of_passwords(show, pairs.iter().flat_map(Pair::servers));
    let plain = Once::new();
    let mut failed = None;
    for pair in pairs {
        let done = copy_pair(args, pair, (scope, show, &plain));
        let Err(error) = done else { continue };
        let is_last = !args.continue_on_error || Kept::of(&error).is_some();
        failed.get_or_insert(error);
        if is_last {
            break;
        }
    }
    screen.finish();
    failed.map_or(Ok(()), Err)
}

/// Copies the source of a pair to its target.
fn copy_pair(
    args: &GucArgs,
    Pair { source, target }: &Pair,
    (scope, show, plain): (&Scope, &Arc<Totals>, &Once),
) -> Result<()> {
    let Some((server, other)) = servers(source, target) else { return Ok(()) };
    let keys = keys(args, std::iter::once(server).chain(other))?;
    let notes = match target {
        Place::Local(_) => Notes::none(),
        Place::Remote(to) => {
            let server = Remote { path: b"/".to_vec(), ..to.clone() };
            Notes::there(begun(), &server.to_string())
        }
    };
    let notes = Arc::new(notes);
    let session = Session::new(args, server, keys, Shared { scope, show, notes: &notes, plain });
    let stop = session.stop();
    let _stops = scope.on_stop(move || stop.store(true, Ordering::Relaxed));
    let sink = other.map(|server| Sink::new(server, session.settings()));
    let small = batch::Waiting::new(args.cc);
    let mut copy = Copy {
        args,
        session,
        sink: sink.as_ref(),
        small,
        failed: None,
        helpers: None,
        show: Arc::clone(show),
        scope,
        record: Record::None,
    };
    if matches!(target, Place::Remote(_)) && !args.dry_run {
        notes.remove_left(|path| match copy.sink {
            Some(sink) => {
                let removed = sink.ask(|channel| channel.remove(path));
                matches!(removed, Ok(()) | Err(FtpError::Refused { .. }))
            }
            None => copy.session.try_remove(path),
        });
    }
    let done = copy.with_helpers(|copy| {
        match (source, target) {
            (Place::Remote(from), Place::Local(to)) => copy.down(from, to)?,
            (Place::Local(from), Place::Remote(to)) => copy.up(from, to)?,
            (Place::Remote(from), Place::Remote(to)) => copy.between(from, &to.path)?,
            (Place::Local(_), Place::Local(_)) => {}
        }
        copy.rest()
    });
    let done = done.and_then(|()| copy.failed.take().map_or(Ok(()), Err));
    let done = done.map_err(|error| of_several(error, &show.counts(), copy.record));
    copy.session.quit();
    if let Some(sink) = &sink {
        sink.quit();
    }
    done
}

/// What logs in to servers of `gsiftp://`, and what guards their data connections.
fn keys<'s>(
    args: &GucArgs,
    servers: impl Iterator<Item = &'s Server>,
) -> Result<Option<(Credentials, Option<Guard>)>> {
    let certified: Vec<bool> = servers.map(|server| server.login == Login::Certificate).collect();
    if !certified.contains(&true) {
        return Ok(None);
    }
    if certified.contains(&false) && args.privacy().is_some() {
        return Err(misuse(
            "a server of ftp:// cannot authenticate the data connections of gsiftp://",
            "gsiftp:// for both, or -nodcau, if they may be neither authenticated nor encrypted",
        ));
    }
    Ok(Some((credentials()?, args.privacy().map(Guard::new).transpose()?)))
}

/// The user's certificate.
fn credentials() -> Result<Credentials> {
    Credentials::of_user().map_err(|error| {
        let remedy = error.remedy();
        with_remedy(error.into(), remedy)
    })
}

/// A command line can be read by all users of the machine.
fn warn_of_passwords<'s>(show: &Totals, servers: impl Iterator<Item = &'s Server>) {
    for server in servers {
        if let Login::Password { password, .. } = &server.login
            && !password.is_empty()
        {
            let host = &server.host;
            show.remark(format!(
                "other users of this machine can read the password for {host} in the process list, and ftp:// sends it in the clear"
            ));
        }
    }
}

struct Copy<'a> {
    args: &'a GucArgs,
    session: Session<'a>,
    /// The server that receives, if the copy is between two.
    sink: Option<&'a Sink<'a>>,
    /// Small files that are not copied yet.
    small: batch::Waiting,
    /// The first failure that did not end the command.
    failed: Option<anyhow::Error>,
    /// Those who copy the files, if it is not this session.
    helpers: Option<Helpers>,
    show: Arc<Totals>,
    scope: &'a Scope,
    /// Whether complete files are recorded for the next run.
    record: Record,
}

/// Sessions that copy files beside each other.
struct Helpers {
    tasks: SyncSender<Task>,
    /// A file failed, and the others are not wanted either.
    is_over: Arc<AtomicBool>,
}

/// What a file is part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    /// It is all that there is to copy.
    One,
    /// A directory, or what a pattern means.
    Several,
}

/// The command ends with the error of a helper.
#[derive(Debug, thiserror::Error)]
#[error("another file could not be copied")]
struct Over;

impl Copy<'_> {
    /// Does `work` with as many helpers as the user wants. They end before this returns.
    fn with_helpers(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.args.cc < 2 || self.sink.is_none() {
            return work(self);
        }
        let ((tasks, waiting), is_over) = (queue(), Arc::new(AtomicBool::new(false)));
        let failures = Mutex::new(Vec::new());
        let sessions = (1..=self.args.cc).map(|number| self.session.another(number));
        let sessions: Vec<_> =
            sessions.filter_map(|session| Some((session, self.sink.map(Sink::another)?))).collect();
        let goes_on = self.args.continue_on_error;
        let done = thread::scope(|scope| {
            for (mut session, sink) in sessions {
                let (waiting, is_over) = (waiting.clone(), Arc::clone(&is_over));
                let failures = &failures;
                scope.spawn(move || {
                    while let Some(task) = waiting.next() {
                        if is_over.load(Ordering::Relaxed) {
                            continue;
                        }
                        let failed = task.carry_out(&mut session, &sink);
                        is_over.fetch_or(!goes_on && !failed.is_empty(), Ordering::Relaxed);
                        failures.lock().unwrap_or_else(PoisonError::into_inner).extend(failed);
                    }
                    session.quit();
                    sink.quit();
                });
            }
            self.helpers = Some(Helpers { tasks, is_over: Arc::clone(&is_over) });
            let done = work(self);
            // The queue ends with its sender.
            self.helpers = None;
            done
        });
        for error in failures.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.after(Err(error))?;
        }
        done
    }

    /// Copies a file to the other server, or hands it to a helper. A small one of several waits until there are more of them. One that the target
    /// has already is left out, if the user wants that.
    fn carry_out(&mut self, file: Between, of: Of) -> Result<()> {
        if self.args.sync && self.is_current(&file, of)? {
            self.count_current(file.bytes());
            return Ok(());
        }
        if self.args.dry_run {
            self.would(file.names.1.as_bytes());
            return Ok(());
        }
        let is_small = file.bytes_of_whole().is_some_and(|bytes| bytes <= SMALL_BYTES_MAX);
        if of == Of::Several && is_small && self.session.depth().is_some() {
            return self.small.add(file).map_or(Ok(()), |files| self.hand(Task::Batch(files)));
        }
        self.hand(Task::One(Box::new(file)))
    }

    /// Copies the small files that still wait.
    fn rest(&mut self) -> Result<()> {
        let files = self.small.take();
        if files.is_empty() { Ok(()) } else { self.hand(Task::Batch(files)) }
    }

    /// Does a task, or hands it to a helper.
    fn hand(&mut self, task: Task) -> Result<()> {
        match &self.helpers {
            Some(helpers) if helpers.is_over.load(Ordering::Relaxed) => Err(Over.into()),
            Some(helpers) => helpers.tasks.send(task).map_err(|_| Over.into()),
            None => {
                let Some(sink) = self.sink else { return Ok(()) };
                for error in task.carry_out(&mut self.session, sink) {
                    self.after(Err(error))?;
                }
                Ok(())
            }
        }
    }

    /// The entries of a directory of the server that are copied, which are counted. The others are not entered.
    fn meant<'e>(&self, entries: &'e mut [Item], only: Option<&Pattern>) -> Vec<&'e mut Item> {
        let is_meant = |item: &Item| {
            let has_kind = self.args.recurse || item.facts.kind != Kind::Directory;
            only.is_none_or(|pattern| has_kind && pattern.matches(item.name.as_bytes()))
        };
        let (meant, others): (Vec<_>, Vec<_>) = entries.iter_mut().partition(|item| is_meant(item));
        others.into_iter().for_each(|item| item.enter = Enter::No);
        let files = meant.iter().filter(|item| item.facts.kind == Kind::File);
        let bytes = files.clone().filter_map(|item| item.facts.size).fold(0, u64::saturating_add);
        let count = files.count() as u64;
        self.session.show.count(|counts| {
            counts.total_files += count;
            counts.total_bytes = counts.total_bytes.saturating_add(bytes);
        });
        meant
    }

    /// Leaves out what is no file and no directory to be copied: the rest of its tree is copied.
    fn leave_out(&mut self, path: &[u8], why: &str) {
        self.keep(lasting(format!("{} is left out: it {why}", Shown::new(path))));
    }

    /// After a file or directory of several.
    fn after(&mut self, done: Result<()>) -> Result<()> {
        let Err(error) = done else { return Ok(()) };
        if !self.args.continue_on_error || Kept::of(&error).is_some() {
            return Err(error);
        }
        self.keep(error);
        Ok(())
    }

    /// Tells a failure. The command ends with the first of them when it has copied the rest.
    fn keep(&mut self, error: anyhow::Error) {
        let line = causes(&error);
        self.session.show.tell(Message::Failure(Failed {
            line: line.clone(),
            host: None,
            path: String::new(),
            kind: "other".to_owned(),
            text: line,
        }));
        self.failed.get_or_insert(error);
    }

    /// Prints the path of a file that a dry run leaves out.
    fn would(&self, path: &[u8]) {
        self.session.show.tell(Message::Would(Shown::new(path).to_string()));
    }

    /// Whether missing directories of the target are made.
    const fn makes_dirs(&self) -> bool {
        self.args.cd && !self.args.dry_run
    }

    fn check_directory(&self, is_target_dir: bool) -> Result<()> {
        let wrong = match (self.args.recurse, is_target_dir, self.wanted()) {
            (false, ..) => "the source is a directory, and -r was not given",
            (_, false, _) => "the source is a directory, so the target has to end in a slash",
            (.., Wanted::Part { .. }) => bail!(part_of_several()),
            _ => return Ok(()),
        };
        bail!(lasting(wrong))
    }

    fn wanted(&self) -> Wanted {
        match (self.args.off.bytes(), self.args.len.map(DataSize::bytes)) {
            (0, None) => Wanted::Whole,
            (offset, length) => Wanted::Part { offset, length },
        }
    }

    const fn manner(&self) -> Manner {
        if self.args.inplace { Manner::InPlace } else { Manner::Renamed }
    }

    /// Counts a file that the target has already.
    fn count_current(&self, bytes: u64) {
        self.session.show.count(|counts| {
            counts.files += 1;
            counts.kept_bytes += bytes;
        });
    }

    fn count_file(&self) {
        self.session.show.count(|counts| counts.files += 1);
    }
}
