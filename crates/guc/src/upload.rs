//! A file to a server.

use crate::checksum::Differs;
use crate::download::Wanted;
use crate::journal::{Earlier, Journal, Recorder};
use crate::outcome::{Changed, lasting, of_unfinished};
use crate::session::{Known, Sender, Session, Way};
use anyhow::{Context, Result, bail, ensure};
use hikyaku_console::{At, Kept, with_remedy};
use hikyaku_fs::{Meta, Name, Token};
use hikyaku_gridftp::{Channel, Facts, FtpError, Kind, Mode, Part, Plan, Rename, Supply, Upload};
use hikyaku_store_ftp::{Foresight, Missing};
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Where an upload is written until it is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// Under a temporary name, which is renamed at the end.
    Renamed,
    /// Under its final name.
    InPlace,
}

/// A file of this machine that is read.
pub(crate) struct Source<'p> {
    path: &'p Path,
    pub(crate) file: File,
    /// What it was when it was opened.
    pub(crate) before: Meta,
}

impl<'p> Source<'p> {
    pub(crate) fn open(path: &'p Path) -> Result<Self> {
        let file = File::open(path).at(path.display())?;
        let before = Meta::of(&file)?;
        ensure!(before.kind == hikyaku_fs::Kind::File, "{}: not a file", path.display());
        Ok(Self { path, file, before })
    }

    /// Whether nobody has written to it since.
    fn is_unchanged(&self) -> bool {
        Meta::of(&self.file).is_ok_and(|now| self.before.is_unchanged(&now))
    }

    /// How reading it has ended. If it has changed meanwhile that is the reason, whatever came of it.
    pub(crate) fn unchanged(&self, read: Result<()>) -> Result<()> {
        match read {
            Err(error) if Kept::of(&error).is_some() => Err(error),
            read if self.is_unchanged() => read,
            _ => Err(Changed::new(self.path.as_os_str().as_bytes()).into()),
        }
    }
}

/// What a journal says of the version of a file of this machine.
pub(crate) fn version_here(meta: &Meta) -> String {
    meta.version().map(|number| number.to_string()).join(" ")
}

/// Uploads the file `from` to `path`, in place of a file of this mode. `source` and `target` are their names for the journal.
pub(crate) fn upload(
    session: &mut Session<'_>,
    from: &Path,
    (path, mode): (&[u8], Option<u32>),
    (source, target): (&str, &str),
    (wanted, manner): (Wanted, Manner),
) -> Result<()> {
    let local = Source::open(from)?;
    let all = wanted.range(local.before.size);
    let journal = Journal::of(source, target)?;
    let version = version_here(&local.before);
    let manner = if wanted == Wanted::Whole { manner } else { Manner::InPlace };
    let carried = session.mode()?;
    if carried == Mode::Stream && wanted != Wanted::Whole {
        let error = lasting("a server of plain FTP stores whole files, and -off or -len was given");
        bail!(with_remedy(error, Some("without them")));
    }
    let Begun { partial, have } = match manner {
        Manner::Renamed => {
            let ask = |path: &[u8]| session.ask(|channel| channel.facts(path));
            match earlier(&journal, &version, ask)? {
                Left::Usable(Begun { partial, .. }) if carried == Mode::Stream => {
                    let stored = session.stored(&partial)?;
                    let have = if stored <= all.end { stored } else { 0 };
                    Begun { partial, have: Vec::from_iter((have > 0).then_some(0..have)) }
                }
                Left::Usable(begun) => begun,
                Left::Stale(old) => {
                    session.try_remove(&old);
                    Begun::new(path)?
                }
                Left::Nothing => Begun::new(path)?,
            }
        }
        Manner::InPlace => {
            // A longer file would keep its end.
            let is_longer = |facts: &Facts| facts.size.is_none_or(|size| size > all.end);
            if wanted == Wanted::Whole
                && session.ask(|channel| channel.facts(path))?.as_ref().is_some_and(is_longer)
            {
                session.ask(|channel| channel.empty(path))?;
            }
            Begun { partial: path.to_vec(), have: Vec::new() }
        }
    };
    let mut missing = Missing::new(all.clone(), &have);
    let kept = all.end - all.start - missing.bytes();
    session.show.count(|counts| counts.kept_bytes += kept);
    let recorder = journal.begin(&Earlier { version, partial: partial.clone(), have })?;
    let supply = |at: u64, bytes: &mut [u8]| local.file.read_exact_at(bytes, at);
    let known = if manner == Manner::Renamed { Known::Length } else { Known::Chunks };
    let sent = send(session, (&partial, known), &all, &mut missing, (&supply, recorder));
    local.unchanged(sent).map_err(|error| {
        // In stream mode the server knows how much it has.
        let has_part = carried == Mode::Stream || missing.bytes() < all.end - all.start;
        let is_kept = manner == Manner::Renamed && has_part && !error.is::<Changed>();
        if !is_kept && Kept::of(&error).is_none() {
            journal.forget();
            // A failure that may pass is one of the connection: what is there is found by its journal later.
            if manner == Manner::Renamed {
                session.try_remove(&partial);
            }
        }
        of_unfinished(error, is_kept)
    })?;
    if let Err(error) = session.compare(&partial, all, &supply) {
        if error.is::<Differs>() {
            journal.remove()?;
            if manner == Manner::Renamed {
                session.ask(|channel| channel.remove(&partial))?;
            }
        }
        return Err(error);
    }
    if manner == Manner::Renamed {
        session
            .ask(|channel| {
                channel.rename(&Rename { from: &partial, to: path, mode, modified: None })
            })
            .context("try: --inplace, if the server does not let files be renamed")?;
    }
    journal.remove()
}

/// Uploads what is missing of the range `all`, and records each chunk that the server has stored.
fn send(
    session: &mut Session<'_>,
    (partial, known): (&[u8], Known),
    all: &Range<u64>,
    missing: &mut Missing,
    (supply, mut recorder): (&Supply<'_>, Recorder),
) -> Result<()> {
    if all.is_empty() {
        let part = Part { path: partial, offset: all.start, length: 0 };
        session.ask(|channel| channel.put(&part, 1, &Default::default(), supply))?;
    }
    let mut recorded = Ok(());
    let with: Upload<'_> = Arc::new(supply);
    let way = Way { with, by: &put, foresight: Foresight::Final, sender: Sender::Here, known };
    session.transfer(partial, missing, &way, |chunk| {
        if recorded.is_ok() {
            recorded = recorder.record(chunk);
        }
    })?;
    recorded
}

/// Uploads the parts of a plan.
pub(crate) fn put<'p>(
    channel: &mut Channel,
    plan: &mut dyn Plan<'p, Upload<'p>>,
    counted: &AtomicU64,
) -> Result<(), FtpError> {
    channel.upload(plan, counted)
}

/// An unfinished file on a server.
pub(crate) struct Begun {
    /// Its path.
    pub(crate) partial: Vec<u8>,
    /// What is in it.
    pub(crate) have: Vec<Range<u64>>,
}

impl Begun {
    /// A new one for the file at `path`.
    pub(crate) fn new(path: &[u8]) -> Result<Self> {
        Ok(Self { partial: partial_name(path)?, have: Vec::new() })
    }
}

/// What an earlier attempt has left at a server.
pub(crate) enum Left {
    Usable(Begun),
    /// An unfinished file of another version of the source, or one in which something is missing.
    Stale(Vec<u8>),
    Nothing,
}

/// What an earlier attempt has left at a server. `ask` asks that server for facts.
pub(crate) fn earlier(
    journal: &Journal,
    version: &str,
    ask: impl FnOnce(&[u8]) -> Result<Option<Facts>>,
) -> Result<Left> {
    let Some(earlier) = journal.earlier().filter(|earlier| Token::is_in(&earlier.partial)) else {
        return Ok(Left::Nothing);
    };
    let end = earlier.have.iter().map(|range| range.end).max().unwrap_or(0);
    let has_all = |facts: &Facts| facts.kind == Kind::File && facts.size >= Some(end);
    if earlier.version == version && ask(&earlier.partial)?.as_ref().is_some_and(has_all) {
        return Ok(Left::Usable(Begun { partial: earlier.partial, have: earlier.have }));
    }
    Ok(Left::Stale(earlier.partial))
}

/// A new temporary name beside `path`.
pub(crate) fn partial_name(path: &[u8]) -> Result<Vec<u8>> {
    let (dir, name) = split(path);
    let name = Name::new(name).context("the target has no name")?;
    let partial = Token::random()?.partial(&name)?;
    Ok([dir, partial.as_bytes()].concat())
}

/// The directory with its slash, and the name.
// fuzz: none, paths of the command line
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    path.split_at(slash)
}
