//! A file, from the first question to its name.

use crate::fetch::{Conduct, Ready, Unfetched};
use crate::journal::{Attempt, Journal};
use crate::links::mirrors;
use crate::metalink::Expect;
use crate::names::Names;
use crate::outcome::error_of;
use crate::output::Output;
use crate::ranges::Board;
use crate::show::Show;
use crate::standing::Fate;
use crate::stream::Streamed;
use crate::target::{Existing, within};
use crate::verify::{Verdict, verify};
use anyhow::{Result, bail};
use begun::{is_complete, made, open, partial};
use first::{ask, known};
use hikyaku_console::{At, ExitCode, Kept, with_remedy};
use hikyaku_fs::{Draft, FilePlace, Name};
use hikyaku_http::{
    Answer, Client, Fault, Known, NamedBy, Offer, Place, Proof, Source, Stop, Url, name,
};
use hikyaku_transfer::{Limit, missing};
use hikyaku_tuner::Tuner;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

mod begun;
mod first;
mod piped;
mod repair;

/// How often a file that changes on its server is begun anew.
const RESTARTS_MAX: u32 = 3;

/// A file to fetch.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Where it is; several are mirrors of each other.
    pub(crate) urls: Vec<Url>,
    pub(crate) named_by: NamedBy,
    pub(crate) naming: Naming,
    pub(crate) expect: Expect,
}

/// The name that the file gets.
#[derive(Clone, Debug)]
pub(crate) enum Naming {
    /// By the user.
    Path(PathBuf),
    /// It has none: it is written to this as it comes.
    Output(Arc<Output>),
    /// This name in a directory, or the name that the server sends.
    Within(PathBuf, Option<Name>),
}

/// The parts that all downloads of a command share.
pub(crate) struct Tools<'a> {
    pub(crate) client: &'a Client,
    pub(crate) limit: &'a Limit,
    pub(crate) show: &'a Show,
    pub(crate) conduct: Conduct,
    pub(crate) existing: Existing,
    pub(crate) interrupted: &'a Stop,
    pub(crate) tuner: &'a (dyn Fn() -> Tuner + Sync),
    /// Names of the files that are being fetched.
    pub(crate) names: &'a Names,
    /// The bytes that the file has added to the totals.
    pub(crate) added: Cell<Added>,
}

/// The bytes that a file has added to the totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Added {
    total_bytes: u64,
    kept_bytes: u64,
}

impl Tools<'_> {
    /// Adds the size of a file, and its bytes that an earlier attempt has left.
    fn add(&self, more: Added) {
        let before = self.added.get();
        self.added.set(Added {
            total_bytes: before.total_bytes + more.total_bytes,
            kept_bytes: before.kept_bytes + more.kept_bytes,
        });
        self.show.count(|counts| {
            counts.total_bytes += more.total_bytes;
            counts.kept_bytes += more.kept_bytes;
        });
    }

    /// The file is begun anew.
    fn subtract_all(&self) {
        let less = self.added.take();
        self.show.count(|counts| {
            counts.total_bytes = counts.total_bytes.saturating_sub(less.total_bytes);
            counts.kept_bytes = counts.kept_bytes.saturating_sub(less.kept_bytes);
        });
    }
}

/// How a file is fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// In parts, if they are known to be of one version.
    InParts,
    /// From its beginning to its end by one answer.
    AsStream,
}

/// A download by ranges.
struct Ranged<'a> {
    tools: &'a Tools<'a>,
    sources: &'a [Source],
    known: &'a Known,
    expect: &'a Expect,
    draft: &'a Draft,
    journal: &'a Journal,
    fates: Vec<Fate>,
    board: Board,
    tuner: Tuner,
}

/// Fetches a file.
///
/// # Errors
/// It cannot be had, or is not the one that was expected, or cannot be stored.
pub(crate) fn download(tools: &Tools<'_>, job: &Job) -> Result<()> {
    let (mut restarts, mut how) = (0, How::InParts);
    loop {
        let counted = tools.show.sent();
        tools.added.take();
        let done = match job.naming {
            Naming::Output(ref output) => piped::pipe(tools, job, output),
            _ => once(tools, job, how),
        };
        let fault = match done {
            Ok(()) => return Ok(()),
            Err(Unfetched::Local(error)) => return Err(error),
            Err(Unfetched::Fault(fault)) => fault,
        };
        let url = &job.urls[0];
        let why = match fault {
            Fault::Changed => "changed on the server; begun anew",
            Fault::Unrecognised => {
                how = How::AsStream;
                "an answer does not say which version of the file it has; begun anew, through one connection"
            }
            _ => return Err(error_of(fault)).at(url),
        };
        if restarts >= RESTARTS_MAX {
            return Err(error_of(fault)).at(url);
        }
        restarts += 1;
        tools.show.remark(format!("{url}: {why}"));
        tools.show.forget(tools.show.sent().saturating_sub(counted));
        tools.subtract_all();
    }
}

fn once(tools: &Tools<'_>, job: &Job, how: How) -> Result<(), Unfetched> {
    let local = Unfetched::Local;
    let mut sources = job.sources();
    let mut fates = vec![Fate::Used; sources.len()];
    let (source, first) = ask(tools, &sources, &mut fates, &job.expect)?;
    let spot = spot(job, &first.offer, &sources[source].place.first).map_err(local)?;
    let _taken = tools.names.take(&spot.name).map_err(local)?;
    let journal = Journal::of(&spot).map_err(local)?;
    let (known, expect) = known(&first.offer, &job.expect);
    if is_complete(tools, &spot, &journal, (&known, &expect)).map_err(local)? {
        journal.remove().map_err(local)?;
        tools.show.count(|counts| counts.files += 1);
        return Ok(());
    }
    tools.existing.check(&spot).map_err(local)?;
    if !expect.digests.is_empty() {
        let more = mirrors(&first.answer.head, &job.urls);
        fates.extend(more.iter().map(|_| Fate::Used));
        sources.extend(more.into_iter().map(|url| Source::new(Place::new(url, NamedBy::Other))));
    }
    let urls: Vec<Url> = sources.iter().map(|source| source.place.first.clone()).collect();
    let is_in_parts = how == How::InParts && known.proof != Proof::None;
    match (first.range.clone(), known.offer.total.filter(|_| is_in_parts)) {
        (Some(range), Some(total)) => {
            let (draft, have) =
                open(tools, &spot, &journal, &urls, (&known, total)).map_err(local)?;
            let ranges: Vec<_> = have.iter().map(|piece| piece.range.clone()).collect();
            let left = missing(0..total, &ranges);
            let bytes: u64 = left.iter().map(|range| range.end - range.start).sum();
            tools.add(Added { total_bytes: total, kept_bytes: total - bytes });
            let mut ranged = Ranged {
                tools,
                sources: &sources,
                known: &known,
                expect: &expect,
                draft: &draft,
                journal: &journal,
                fates,
                board: Board::new(left, have),
                tuner: (tools.tuner)(),
            };
            let ready = Ready { answer: first.answer, range, source };
            let done = ranged.run(ready, total);
            let done =
                done.and_then(|()| draft.set_length(total).map_err(|error| local(error.into())));
            if let Err(error) = done {
                if is_useless(&error) {
                    draft.discard();
                    let _ = journal.remove();
                }
                return Err(match error {
                    Unfetched::Fault(Fault::Stopped) if ranged.is_resumable() => {
                        local(Kept::Everything.into())
                    }
                    error => error,
                });
            }
            tools.existing.finish(&spot, &draft, &journal).map_err(local)?;
        }
        (range, _) => {
            let source = &sources[source];
            let is_whole = range.is_none_or(|range| Some(range.end) == first.offer.total);
            // The server does not tell the size, or not which version of the file a part is of.
            let answer = is_whole.then_some((first.answer, first.offer.total));
            stream(tools, &spot, &journal, (source, answer), &expect)?;
        }
    }
    journal.remove().map_err(local)?;
    tools.show.count(|counts| counts.files += 1);
    Ok(())
}

/// Whether what was fetched is of no use for a later attempt.
fn is_useless(error: &Unfetched) -> bool {
    match error {
        Unfetched::Fault(fault) => {
            matches!(fault, Fault::Changed | Fault::Unrecognised | Fault::NoRanges)
        }
        Unfetched::Local(error) => error.chain().any(|link| link.is::<crate::outcome::Damaged>()),
    }
}

impl Job {
    /// Where the file is.
    pub(crate) fn sources(&self) -> Vec<Source> {
        let place = |url: &Url| Source::new(Place::new(url.clone(), self.named_by));
        self.urls.iter().map(place).collect()
    }
}

impl Ranged<'_> {
    /// Whether a later attempt can resume this one.
    fn is_resumable(&self) -> bool {
        let has_version = self.known.offer.version.if_range.is_some();
        (has_version || self.known.proof == Proof::Digest) && !self.board.there().is_empty()
    }
}

fn spot(job: &Job, offer: &Offer, url: &Url) -> Result<FilePlace> {
    match &job.naming {
        Naming::Path(path) => Ok(FilePlace::of(path)?),
        Naming::Output(_) => bail!("an output has no name"),
        Naming::Within(dir, told) => {
            let name = told.clone().or_else(|| name(offer.disposition.as_deref(), url));
            let name = name.ok_or_else(|| {
                let text = format!("{url} has no name that a file could have");
                with_remedy(ExitCode::WillFail.error(text), Some("-o FILE"))
            })?;
            within(dir, name)
        }
    }
}

/// Fetches a file from a server that gives no parts. Nothing of it can be kept for a later attempt.
fn stream(
    tools: &Tools<'_>,
    spot: &FilePlace,
    journal: &Journal,
    (source, answer): (&Source, Option<(Answer, Option<u64>)>),
    expect: &Expect,
) -> Result<(), Unfetched> {
    let total = source.offer().and_then(|offer| offer.total);
    let prepare = || -> Result<Draft> {
        if let Some(earlier) = journal.earlier()
            && let Some(draft) = spot.take_up(&earlier.partial)?
        {
            draft.discard();
        }
        let name = partial(spot, None)?;
        let version = source.offer().and_then(|offer| offer.version.if_range);
        let attempt = Attempt { version, partial: name.as_bytes().to_vec(), ..Attempt::default() };
        made(spot, journal, (attempt, name), None)
    };
    let draft = prepare().map_err(Unfetched::Local)?;
    tools.add(Added { total_bytes: total.unwrap_or(0), kept_bytes: 0 });
    let streamed = Streamed {
        client: tools.client,
        source,
        draft: &draft,
        limit: tools.limit,
        show: tools.show,
        conduct: tools.conduct,
        stop: tools.interrupted,
    };
    let done = streamed.run(answer).and_then(|size| {
        if total.is_none() {
            tools.add(Added { total_bytes: size, kept_bytes: 0 });
        }
        let check = || -> Result<()> {
            draft.set_length(size)?;
            repair::check_size(size, expect)?;
            match verify(&draft, size, expect)? {
                Verdict::Right => tools.existing.finish(spot, &draft, journal),
                _ => Err(repair::damaged(expect, "removed").into()),
            }
        };
        check().map_err(Unfetched::Local)
    });
    if done.is_err() {
        draft.discard();
        let _ = journal.remove();
    }
    done
}
