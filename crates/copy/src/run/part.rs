//! What one run of the engine copies: between which two machines, and which of them is this one.

use super::onto::objection;
use super::patience::Attempt;
use crate::log::Direction;
use crate::outcome::{explained, failed};
use crate::plan::CopyPlan;
use crate::sftp::{OpenSftp, Run, Server};
use crate::show::Hosts;
use anyhow::{Context, Result, bail, ensure};
use hikyaku_console::{Scope, Settings, misuse};
use hikyaku_fs::Shown;
use hikyaku_job::{Claimant, Meter, is_home, is_users_home};
use hikyaku_pair::{Descriptors, Far, Options, Order, Roots, Session, Terms};
use hikyaku_reach::bootstrap::{Asking, Spare};
use hikyaku_stores::{Location, Remote};
use hikyaku_transfer::{Failure, FailureKind, Resume};
use hikyaku_units::Rate;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{ErrorKind, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A copy.
pub(super) enum Part {
    /// From here to there.
    Put { sources: Vec<PathBuf>, target: Remote },
    /// From there to here.
    Get { remote: Remote, sources: Vec<Vec<u8>>, target: PathBuf },
    /// Within this machine.
    Here { sources: Vec<PathBuf>, target: PathBuf, objections: Vec<Failure> },
    /// Between two others, through this one.
    Through { remote: Remote, sources: Vec<Vec<u8>>, target: Remote },
}

/// How it is to be copied this time.
#[derive(Clone, Copy)]
pub(super) struct Turn<'a> {
    pub(super) copy: &'a CopyPlan,
    pub(super) settings: &'a Settings,
    pub(super) attempt: Attempt,
    /// What it may make.
    pub(super) claims: Claimant<'a>,
    /// Ends the copy when it is stopped.
    pub(super) scope: &'a Scope,
    /// The SFTP server of the far side, where the caller has a session with it.
    pub(super) server: Option<OpenSftp<'a>>,
}

/// Sources that follow each other on one machine go together.
pub(super) fn parts(sources: Vec<Location>, target: Location) -> Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for source in sources {
        match (source, parts.last_mut()) {
            (
                Location::Local(path),
                Some(Part::Put { sources, .. } | Part::Here { sources, .. }),
            ) => {
                sources.push(path);
            }
            (
                Location::Remote(source),
                Some(Part::Get { remote, sources, .. } | Part::Through { remote, sources, .. }),
            ) if is_same(remote, &source) => sources.push(source.path),
            (source, _) => parts.push(part(source, target.clone())?),
        }
    }
    Ok(parts)
}

fn part(source: Location, target: Location) -> Result<Part> {
    Ok(match (source, target) {
        (Location::Local(path), Location::Remote(target)) => {
            Part::Put { sources: vec![path], target }
        }
        (Location::Local(path), Location::Local(target)) => {
            Part::Here { sources: vec![path], target, objections: Vec::new() }
        }
        (Location::Remote(remote), Location::Local(target)) => {
            Part::Get { sources: vec![remote.path.clone()], remote, target }
        }
        (Location::Remote(remote), Location::Remote(target)) => {
            Part::Through { sources: vec![remote.path.clone()], remote, target }
        }
        (source, target) => {
            let is_here = |at: &Location| matches!(at, Location::Local(_) | Location::Remote(_));
            let storage = if is_here(&source) { target } else { source };
            bail!("'{storage}': a storage does not start programs of ours");
        }
    })
}

fn is_same(a: &Remote, b: &Remote) -> bool {
    a.login == b.login
}

/// The machine, as its user wrote it, without its port.
fn login(remote: &Remote) -> String {
    remote.login.to_string()
}

impl Part {
    /// Finds out, before anybody is asked for a password, that nothing is there, and what cannot be meant. Of
    /// several sources those that are there are copied.
    pub(super) fn check(&mut self, options: &Options) -> Result<()> {
        let (Self::Put { sources, .. } | Self::Here { sources, .. }) = self else { return Ok(()) };
        if let Some(path) = sources.first()
            && sources.iter().all(|path| is_missing(path))
        {
            let (shown, others) = (Shown::new(path.as_os_str().as_bytes()), sources.len() - 1);
            let others = if others == 0 { String::new() } else { format!(", nor {others} others") };
            ensure!(
                !path.as_os_str().is_empty(),
                misuse("an empty name is no file", "'.' for the current directory")
            );
            let text = format!("{shown}: no such file or directory{others}");
            return Err(failed(FailureKind::NotFound, text));
        }
        if let Self::Here { sources, target, objections } = self {
            sources.retain(|source| {
                let objection = objection(source, target, options);
                let is_meant = objection.is_none();
                objections.extend(objection);
                is_meant
            });
        }
        Ok(())
    }

    /// Sources that are not copied, and why.
    pub(super) fn objections(&self) -> &[Failure] {
        if let Self::Here { objections, .. } = self { objections } else { &[] }
    }

    /// The other machines.
    pub(super) fn hosts(&self) -> Hosts {
        let (from, to) = match self {
            Self::Put { target, .. } => (None, Some(target)),
            Self::Get { remote, .. } => (Some(remote), None),
            Self::Through { remote, target, .. } => (Some(remote), Some(target)),
            Self::Here { .. } => (None, None),
        };
        Hosts { from: from.map(login), to: to.map(login) }
    }

    /// The other machine, for a log, and where the bytes go.
    pub(super) fn flow(&self) -> (String, Direction) {
        match self {
            Self::Put { target, .. } => (login(target), Direction::Out),
            Self::Get { remote, .. } => (login(remote), Direction::In),
            Self::Here { .. } => ("this machine".to_owned(), Direction::Out),
            Self::Through { remote, target, .. } => {
                (format!("{} to {}", login(remote), login(target)), Direction::Out)
            }
        }
    }

    /// Whether none is left that is.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Here { sources, .. } if sources.is_empty())
    }

    /// Starts the far sides; where there are two, the one that sends comes first. `spare` gets the SFTP server of an attempt
    /// to send hikyaku that failed.
    pub(super) fn open(&self, turn: &Turn<'_>, spare: &Spare) -> Result<Vec<Far>> {
        let options = self.options(turn)?;
        let open = |remote: &Remote, order: &Order| {
            let mut way = turn.copy.way(&remote.login.host, turn.settings)?;
            way.offer.spare = spare.clone();
            if turn.attempt == Attempt::Again {
                way.offer.asking = Asking::Never;
            }
            // Where nobody is at the terminal a question would wait for ever.
            way.ssh.batch |= turn.attempt == Attempt::Again && !std::io::stdin().is_terminal();
            way.scope = turn.scope.clone();
            Far::there(&way, &remote.login, order).map_err(explained)
        };
        // The end that writes is to know that there is a list, and not what is in it.
        let files = options.files.first().cloned().into_iter().collect();
        let told = Options { files, ..options.clone() };
        let put = |target: &[u8]| Order::Put { target: target.to_vec(), options: told.clone() };
        let get = |sources: &[Vec<u8>]| Order::Get {
            sources: sources.to_vec(),
            options: options.clone(),
        };
        Ok(match self {
            Self::Put { target, .. } => vec![open(target, &put(&target.path))?],
            Self::Get { remote, sources, .. } => vec![open(remote, &get(sources))?],
            Self::Here { target, .. } => vec![
                Far::here(&put(&absolute(target)?), options.limit.map(Rate::from_bits_per_sec))
                    .map_err(explained)?,
            ],
            Self::Through { remote, sources, target } => {
                vec![open(remote, &get(sources))?, open(target, &put(&target.path))?]
            }
        })
    }

    /// The far side, if there is one and this machine is the other end.
    pub(super) const fn far(&self) -> Option<&Remote> {
        match self {
            Self::Put { target: remote, .. } | Self::Get { remote, .. } => Some(remote),
            Self::Here { .. } | Self::Through { .. } => None,
        }
    }

    /// Copies by SFTP.
    pub(super) fn work_by_sftp(
        &self,
        server: &Server,
        turn: &Turn<'_>,
        meter: &Arc<Meter>,
    ) -> Result<()> {
        let options = self.options(turn)?;
        let far = self.far().context("no far side")?;
        let host = login(far);
        let ssh = Some((&turn.copy.transport.way.ssh, &far.login));
        let run = Run { server, options: &options, meter, host: &host, ssh, scope: turn.scope };
        match self {
            Self::Put { sources, target } => run.put(sources, &target.path),
            Self::Get { sources, target, .. } => run.get(sources, target),
            Self::Here { .. } | Self::Through { .. } => bail!("not a copy with one far side"),
        }
    }

    /// How it is copied. A rate may be set for the other machine; whoever sends tells that it limits.
    fn options(&self, turn: &Turn<'_>) -> Result<Options> {
        let mut options = turn.copy.options.clone();
        options.limit = match self.host() {
            Some(host) => turn.copy.way(host, turn.settings)?.tuning.rate,
            None => turn.copy.transport.way.typed.rate.map(Rate::bits_per_sec),
        };
        // What the attempt before this one has done is not to be done again.
        if turn.attempt == Attempt::Again {
            options.rules.resume = Resume::Journal;
        }
        Ok(options)
    }

    /// The names of its sources at the target; `None`, if only who has them knows.
    fn names(&self) -> Option<Vec<&[u8]>> {
        match self {
            Self::Put { sources, .. } | Self::Here { sources, .. } => {
                sources.iter().map(|path| name(path)).collect()
            }
            Self::Get { sources, .. } | Self::Through { sources, .. } => {
                sources.iter().map(|source| far_name(source)).collect()
            }
        }
    }

    /// The other machine, if there is one.
    pub(super) fn host(&self) -> Option<&str> {
        match self {
            Self::Put { target: remote, .. }
            | Self::Get { remote, .. }
            | Self::Through { remote, .. } => Some(&remote.login.host),
            Self::Here { .. } => None,
        }
    }

    /// Copies.
    pub(super) fn work(
        &self,
        sessions: Vec<Session>,
        turn: &Turn<'_>,
        meter: &Meter,
    ) -> Result<()> {
        let mut sessions = sessions.into_iter();
        let first = sessions.next().context("no session")?.ended_with(turn.scope);
        let options = self.options(turn)?;
        match self {
            Self::Put { sources, .. } | Self::Here { sources, .. } => {
                let roots = Roots::new(sources, &options.files, Descriptors::Users);
                first.send(&roots, &options, turn.claims, meter).map_err(explained)
            }
            Self::Get { sources, target, .. } => {
                let writes = (meter, Descriptors::Users);
                let asked = turn.copy.allowed(sources);
                let received = first.receive(target, (&asked, turn.claims), &options, writes);
                received.map_err(explained)
            }
            Self::Through { sources, .. } => {
                let second = sessions.next().context("no second session")?;
                let allowed = &turn.copy.allowed(sources);
                let terms = Terms { options: &options, allowed, claims: turn.claims };
                first.through(second, terms, meter).map_err(explained)
            }
        }
    }
}

/// Whether what comes of one part may have a name that came of another.
pub(super) fn may_meet(parts: &[Part], options: &Options) -> bool {
    let names: Option<Vec<Vec<&[u8]>>> = parts.iter().map(Part::names).collect();
    let Some(names) = names.filter(|_| options.files.is_empty()) else { return parts.len() > 1 };
    let mut others = BTreeSet::new();
    names.into_iter().any(|of_part| {
        let meets = of_part.iter().any(|name| others.contains(name));
        others.extend(of_part);
        meets
    })
}

/// What a source is called at the target, if that is what its user wrote.
fn name(path: &Path) -> Option<&[u8]> {
    let is_contents = path.as_os_str().as_bytes().ends_with(b"/.");
    match path.components().next_back() {
        Some(Component::Normal(name)) if !is_contents => Some(name.as_bytes()),
        _ => None,
    }
}

/// The same of a source on a far side, which may be a pattern or a home directory there.
fn far_name(source: &[u8]) -> Option<&[u8]> {
    let is_pattern = source.iter().any(|byte| b"*?[".contains(byte));
    let is_literal = !is_pattern && !is_home(source) && !is_users_home(source);
    name(Path::new(OsStr::from_bytes(source))).filter(|_| is_literal)
}

/// Whether there is nothing of this name. What else is wrong with it is said by whoever reads it.
fn is_missing(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// The far side takes an empty path for the home directory.
fn absolute(path: &Path) -> Result<Vec<u8>> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    Ok(std::path::absolute(path)?.as_os_str().as_bytes().to_vec())
}

#[cfg(test)]
mod tests;
