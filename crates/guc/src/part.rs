//! A part of a file from a server or to one.

use crate::outcome::Changed;
use crate::outcome::lasting;
use crate::session::{Sender, Session, Way};
use anyhow::{Context, Result, bail, ensure};
use hikyaku_console::{At, Kept, with_remedy};
use hikyaku_fs::{Draft, FilePlace, Meta, Replace, Zeros, umask};
use hikyaku_gridftp::{Channel, Facts, FtpError, Kind, Mode, Part, Plan, Store, Upload};
use hikyaku_store_ftp::{Foresight, Missing};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

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

/// Uploads a part of a file of this machine to the same place of the file at `path`.
pub(crate) fn part_up(
    session: &mut Session<'_>,
    from: &Path,
    path: &[u8],
    wanted: Wanted,
) -> Result<()> {
    if session.mode()? == Mode::Stream {
        let error = lasting("a server of plain FTP stores whole files, and -off or -len was given");
        bail!(with_remedy(error, Some("without them")));
    }
    let file = File::open(from).at(from.display())?;
    let before = Meta::of(&file)?;
    let all = wanted.range(before.size);
    let supply = |at: u64, bytes: &mut [u8]| file.read_exact_at(bytes, at);
    if all.is_empty() {
        let part = Part { path, offset: all.start, length: 0 };
        session.ask(|channel| channel.put(&part, 1, &AtomicU64::new(0), supply))?;
    }
    let pace = session.pace();
    let with: Upload<'_> = Arc::new(move |at: u64, bytes: &mut [u8]| {
        pace(bytes.len());
        supply(at, bytes)
    });
    let way = Way { with, by: &put, foresight: Foresight::Final, sender: Sender::Here };
    let sent = session.transfer(path, &mut Missing::new(all.clone(), &[]), &way, |_| {});
    match sent {
        Err(error) if Kept::of(&error).is_some() => return Err(error),
        sent if Meta::of(&file).is_ok_and(|now| before.is_unchanged(&now)) => sent?,
        // Whatever came of it, that is the reason.
        _ => bail!(Changed::new(from.as_os_str().as_bytes())),
    }
    session.compare(path, all, &supply)
}

/// Uploads the parts of a plan.
fn put<'p>(
    channel: &mut Channel,
    plan: &mut dyn Plan<'p, Upload<'p>>,
    counted: &AtomicU64,
) -> Result<(), FtpError> {
    channel.upload(plan, counted)
}

/// Downloads a part of the file at `path`, to the same place of the file at `place`.
pub(crate) fn part(
    session: &mut Session<'_>,
    (path, facts): (&[u8], &Facts),
    place: &FilePlace,
    wanted: Wanted,
) -> Result<()> {
    ensure!(facts.kind == Kind::File, "is not a file");
    let all = wanted.range(facts.size.context("the server does not tell its size")?);
    let (draft, made) = in_place(place)?;
    let pace = session.pace();
    let with: Arc<Store<'_>> = Arc::new(|at, bytes: &[u8]| {
        pace(bytes.len());
        draft.write_at(at, bytes, Zeros::Written).map_err(io::Error::other)
    });
    let moved = session.download(path, &mut Missing::new(all.clone(), &[]), &with);
    moved.and_then(|()| check_unchanged(session, path, facts)).inspect_err(|_| {
        if made == Made::Here {
            // That the part did not come is told in either case.
            let _ = place.dir.remove_file(&place.name);
        }
    })?;
    let supply = |at, bytes: &mut [u8]| draft.read_exact_at(at, bytes).map_err(io::Error::other);
    session.compare(path, all, &supply)?;
    draft.sync()?;
    draft.name(Replace::Allowed)?;
    Ok(())
}

/// Who has made a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Made {
    Before,
    /// This command.
    Here,
}

/// The file itself, to write a part of it; it is made if it is not there.
fn in_place(place: &FilePlace) -> Result<(Draft, Made)> {
    let mut made = Made::Before;
    if place.dir.meta(&place.name)?.is_none() {
        let file = place.dir.create(&place.name)?;
        made = Made::Here;
        // A file system without modes keeps its own.
        let _ = Meta::set_mode(&file, 0o666 & !umask());
    }
    Ok((Draft::in_place(Arc::clone(&place.dir), &place.name)?, made))
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

/// What a journal says of the version of a server's file.
pub(crate) fn version(size: u64, facts: &Facts) -> String {
    let told = |fact: &'_ Option<String>| fact.clone().unwrap_or_else(|| "-".to_owned());
    format!("{size} {} {}", told(&facts.modified), told(&facts.unique))
}

/// Downloads a range of the file at `path` to nowhere: what a path carries without a disk at its end.
pub(crate) fn discard(session: &mut Session<'_>, path: &[u8], range: Range<u64>) -> Result<()> {
    let pace = session.pace();
    let with: Arc<Store<'_>> = Arc::new(move |_, bytes: &[u8]| {
        pace(bytes.len());
        Ok(())
    });
    session.download(path, &mut Missing::new(range, &[]), &with)
}
