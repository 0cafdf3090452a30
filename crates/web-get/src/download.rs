//! A file, from the first question to its name.

use crate::links::mirrors;
use crate::metalink::Expect;
use crate::names::Names;
use crate::outcome::{Damaged, error_of};
use crate::output::Output;
use crate::show::Show;
use crate::target::{Existing, Spot};
use crate::tunings::Tunings;
use anyhow::{Error, Result, bail};
use first::{FirstRange, ask, known};
use hikyaku_console::{At, ExitCode, with_remedy};
use hikyaku_fs::Name;
use hikyaku_http::{Client, Fault, NamedBy, Place, Proof, Source, Stop, Url, name};
use hikyaku_transfer::Limit;
use hikyaku_units::RetryPolicy;
use ranged::Ranged;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

mod continued;
mod first;
mod piped;
mod ranged;

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
    pub(crate) client: &'a Arc<Client>,
    pub(crate) limit: &'a Arc<Limit>,
    pub(crate) show: &'a Show,
    pub(crate) conduct: Conduct,
    pub(crate) existing: Cell<Existing>,
    pub(crate) interrupted: &'a Stop,
    pub(crate) tunings: &'a Tunings<'a>,
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

    /// Corrects the bytes of the file that an earlier attempt has left.
    fn set_kept(&self, bytes: u64) {
        let before = self.added.get();
        self.added.set(Added { kept_bytes: bytes, ..before });
        self.show.count(|counts| {
            counts.kept_bytes = counts.kept_bytes.saturating_sub(before.kept_bytes) + bytes;
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

/// Why a file was not fetched.
#[derive(Debug)]
pub(crate) enum Unfetched {
    /// No server is left that gives the rest.
    Fault(Fault),
    /// This end cannot go on.
    Local(Error),
}

/// How a download behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conduct {
    /// Failures of a source in a row before it is given up.
    pub(crate) retries: u32,
    /// The same of a port where nobody listens, if that is the first that is heard of a server.
    pub(crate) retries_of_closed_port: u32,
    /// The waits between two attempts that no server has asked for.
    pub(crate) retry: RetryPolicy,
}

/// Fetches a file.
///
/// # Errors
/// It cannot be had, or is not the one that was expected, or cannot be stored.
pub(crate) fn download(tools: &Tools<'_>, job: &Job) -> Result<()> {
    let (mut restarts, mut how, url) = (0, How::InParts, &job.urls[0]);
    loop {
        let counted = tools.show.sent();
        tools.added.take();
        let done = match job.naming {
            Naming::Output(ref output) => piped::pipe(tools, job, output),
            _ => once(tools, job, how),
        };
        let fault = match done {
            Ok(()) => return Ok(()),
            // One of several files: its message names none.
            Err(Unfetched::Local(error)) if error.is::<Damaged>() => return Err(error).at(url),
            Err(Unfetched::Local(error)) => return Err(error),
            Err(Unfetched::Fault(fault)) => fault,
        };
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
    let mut used = vec![true; sources.len()];
    let expected = (&job.expect, job.first_range());
    let (source, first) = ask(tools, &sources, &mut used, expected)?;
    let disposition = first.offer.disposition.as_deref();
    let spot = spot(job, disposition, &sources[source].place.first).map_err(local)?;
    let _taken = tools.names.take(&spot).map_err(local)?;
    let (known, expect) = known(&first.offer, &job.expect);
    if !expect.digests.is_empty() {
        let more = mirrors(&first.answer.head, &job.urls);
        used.extend(more.iter().map(|_| true));
        sources.extend(more.into_iter().map(|url| Source::new(Place::new(url, NamedBy::Other))));
    }
    let is_continued = tools.existing.get() == Existing::Continued;
    let is_in_parts = how == How::InParts && known.proof != Proof::None && first.range.is_some();
    // A small file comes with the first answer. It is asked for again only if there are other servers to ask.
    let is_there = |total: u64| sources.len() == 1 && first.range == Some(0..total);
    let left = match known.offer.total.filter(|_| is_continued) {
        Some(total) if is_in_parts => {
            continued::compared(tools, &spot, (&sources[source], &known), total)?
        }
        // Without parts, or a version of each, the file that has the name is not continued.
        Some(_) | None => None,
    };
    match known.offer.total.filter(|total| is_in_parts && !is_there(*total)) {
        Some(total) => {
            let what = (&known, &expect, total);
            let ranged = Ranged::new(tools, &spot, (sources, &used), what, (source, first));
            let ranged = ranged.map_err(local)?;
            if let Some(left) = left {
                ranged.continue_with(left).map_err(local)?;
            }
            ranged.run()?;
        }
        None => {
            piped::stream(tools, &spot, (&sources[source], first), (&known, &expect))?;
        }
    }
    tools.show.count(|counts| counts.files += 1);
    Ok(())
}

impl Job {
    /// Where the file is.
    pub(crate) fn sources(&self) -> Vec<Source> {
        let place = |url: &Url| Source::new(Place::new(url.clone(), self.named_by));
        self.urls.iter().map(place).collect()
    }

    /// The range of the first request. The name that the server would send is not known yet.
    fn first_range(&self) -> FirstRange {
        match spot(self, None, &self.urls[0]) {
            Ok(spot) if spot.is_begun() => FirstRange::Byte,
            Ok(_) | Err(_) => FirstRange::Part,
        }
    }
}

fn spot(job: &Job, disposition: Option<&str>, url: &Url) -> Result<Spot> {
    match &job.naming {
        Naming::Path(path) => Spot::of(path),
        Naming::Output(_) => bail!("an output has no name"),
        Naming::Within(dir, told) => {
            let name = told.clone().or_else(|| name(disposition, url));
            let name = name.ok_or_else(|| {
                let text = format!("{url} has no name that a file could have");
                with_remedy(ExitCode::WillFail.error(text), Some("-o FILE"))
            })?;
            Spot::within(dir, name)
        }
    }
}

/// The error for a file that no server has as it should be. `fate`: what became of the bytes.
fn damaged(expect: &Expect, fate: &str) -> Damaged {
    let function = expect.digests.first().map(|digest| format!(" {}", digest.function));
    Damaged(format!(
        "what was fetched does not have the{} that it should have; it was {fate}",
        function.unwrap_or_else(|| " digests of its pieces".to_owned())
    ))
}

/// Whether a file has the size that it should have.
fn check_size(size: u64, expect: &Expect) -> Result<()> {
    match expect.size {
        Some(expected) if expected != size => {
            Err(Damaged(format!("the file has {size} bytes in place of {expected}")).into())
        }
        _ => Ok(()),
    }
}
