//! A file from a server.

use crate::checksum::Differs;
use crate::journal::{Earlier, Journal, Recorder};
use crate::local::{Made, finish, in_place, remove_made, store};
use crate::outcome::{Changed, of_unfinished};
use crate::session::{Known, Sender, Session, Way};
use anyhow::{Context, Result, ensure};
use hikyaku_fs::{Draft, FilePlace};
use hikyaku_gridftp::{Channel, Facts, FtpError, Kind, Plan, Store};
use hikyaku_store_ftp::{Foresight, Missing, Parts};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Which part of a file is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    Whole,
    Part { offset: u64, length: Option<u64> },
}

impl Wanted {
    /// The range of a file of this size.
    pub(crate) fn range(self, size: u64) -> Range<u64> {
        match self {
            Self::Whole => 0..size,
            Self::Part { offset, length } => {
                let end = length.map_or(size, |length| offset.saturating_add(length));
                offset.min(size)..end.min(size)
            }
        }
    }
}

/// Downloads the file at `path`. `source` and `target` are its names for the journal.
pub(crate) fn download(
    session: &mut Session<'_>,
    path: &[u8],
    facts: &Facts,
    spot: &FilePlace,
    (source, target): (&str, &str),
    wanted: Wanted,
) -> Result<()> {
    ensure!(facts.kind == Kind::File, "is not a file");
    let size = facts.size.context("the server does not tell its size")?;
    let all = wanted.range(size);
    let journal = Journal::of(source, target)?;
    let earlier = Earlier { version: version(size, facts), partial: Vec::new(), have: Vec::new() };
    let (begun, made) = match wanted {
        Wanted::Part { .. } => {
            let (draft, made) = in_place(spot)?;
            let recorder = journal.begin(&earlier)?;
            (Begun { draft, recorder, have: Vec::new() }, made)
        }
        Wanted::Whole => (begin(spot, &journal, earlier, session.parts())?, Made::Before),
    };
    let Begun { draft, recorder, have } = begun;
    let mut missing = Missing::new(all.clone(), &have);
    let kept = all.end - all.start - missing.bytes();
    session.show.count(|counts| counts.kept_bytes += kept);
    let is_resumable = wanted == Wanted::Whole;
    let moved = receive(session, path, &mut missing, (&draft, recorder));
    moved.and_then(|()| check_unchanged(session, path, facts)).map_err(|error| {
        let has_part = missing.bytes() < all.end - all.start && !error.is::<Changed>();
        let is_kept = is_resumable && has_part;
        if !is_kept {
            journal.forget();
            draft.discard();
            remove_made(spot, made);
        }
        of_unfinished(error, is_kept)
    })?;
    let supply = |at, bytes: &mut [u8]| draft.read_exact_at(at, bytes).map_err(io::Error::other);
    if let Err(error) = session.compare(path, all, &supply) {
        if error.is::<Differs>() {
            journal.remove()?;
            if is_resumable {
                draft.discard();
            }
        }
        return Err(error);
    }
    if wanted == Wanted::Whole {
        draft.set_length(size)?;
        finish(spot, &draft)?;
    } else {
        draft.sync()?;
        draft.name(hikyaku_fs::Replace::Allowed)?;
    }
    journal.remove()
}

/// Checks that a file of the session's server is still what it was when the server told these facts of it.
///
/// # Errors
/// [`Changed`]; or the server cannot be asked.
// fuzz: none, what `ftp_replies` has read is compared
pub(crate) fn check_unchanged(
    session: &mut Session<'_>,
    path: &[u8],
    before: &Facts,
) -> Result<()> {
    match session.ask(|channel| channel.facts(path))? {
        Some(now) if before.is_unchanged(&now) => Ok(()),
        _ => Err(Changed::new(path).into()),
    }
}

/// Downloads what is missing of the file at `path`, and records each chunk that is on the disk.
fn receive(
    session: &mut Session<'_>,
    path: &[u8],
    missing: &mut Missing,
    (draft, mut recorder): (&Draft, Recorder),
) -> Result<()> {
    thread::scope(|scope| {
        let (done, chunks) = channel();
        // Syncing takes as long as the disk does. Meanwhile the next chunk is under way.
        let syncs = scope.spawn(|| sync_each(draft, chunks, |range| recorder.record(range)));
        let with: Arc<Store<'_>> = Arc::new(|at, bytes: &[u8]| store(draft, at, bytes));
        let moved = session.transfer(path, missing, &way(with), |chunk| {
            // A thread that has ended tells its error below.
            let _ = done.send(chunk.clone());
        });
        drop(done);
        let synced = syncs.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        moved.and(synced)
    })
}

/// What a journal says of the version of a server's file.
pub(crate) fn version(size: u64, facts: &Facts) -> String {
    let told = |fact: &'_ Option<String>| fact.clone().unwrap_or_else(|| "-".to_owned());
    format!("{size} {} {}", told(&facts.modified), told(&facts.unique))
}

/// Downloads a range of the file at `path` to nowhere: what a path carries without a disk at its end.
pub(crate) fn discard(session: &mut Session<'_>, path: &[u8], range: Range<u64>) -> Result<()> {
    let with: Arc<Store<'_>> = Arc::new(|_, _: &[u8]| Ok(()));
    session.transfer(path, &mut Missing::new(range, &[]), &way(with), |_| {})
}

/// How a download moves: into `with`.
fn way<'p>(with: Arc<Store<'p>>) -> Way<'p, 'p, Arc<Store<'p>>> {
    let (foresight, sender, known) = (Foresight::Measured, Sender::Server, Known::Chunks);
    Way { with, by: &get, foresight, sender, known }
}

/// Downloads the parts of a plan.
pub(crate) fn get<'p>(
    channel: &mut Channel,
    plan: &mut dyn Plan<'p, Arc<Store<'p>>>,
    counted: &AtomicU64,
) -> Result<(), FtpError> {
    channel.download(plan, counted)
}

/// An unfinished file that the journal knows.
struct Begun {
    draft: Draft,
    recorder: Recorder,
    /// What is in it.
    have: Vec<Range<u64>>,
}

/// Goes on with the unfinished file of an earlier attempt, or begins a new one. It is in the journal before it is made:
/// whenever this process is killed, the next one finds what it has left.
fn begin(spot: &FilePlace, journal: &Journal, new: Earlier, parts: Parts) -> Result<Begun> {
    if let Some(earlier) = journal.earlier()
        && let Some(draft) = spot.take_up(&earlier.partial)?
    {
        if earlier.version == new.version {
            let have = if parts == Parts::Whole { Vec::new() } else { earlier.have };
            let recorder = journal.begin(&Earlier { have: have.clone(), ..earlier })?;
            draft.keep();
            return Ok(Begun { draft, recorder, have });
        }
        // The source is another one by now.
        draft.discard();
    }
    let partial = spot.partial()?;
    let recorder = journal.begin(&Earlier { partial: partial.as_bytes().to_vec(), ..new })?;
    let draft = spot.make(partial).inspect_err(|_| journal.forget())?;
    draft.keep();
    Ok(Begun { draft, recorder, have: Vec::new() })
}

/// Syncs and records the chunks that are done.
fn sync_each(
    draft: &Draft,
    chunks: Receiver<Range<u64>>,
    mut record: impl FnMut(&Range<u64>) -> Result<()>,
) -> Result<()> {
    for chunk in chunks {
        draft.sync()?;
        record(&chunk)?;
    }
    Ok(())
}
