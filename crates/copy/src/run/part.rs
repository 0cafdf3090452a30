//! What one run of the engine copies: between which two machines, and which of them is this one.

use super::patience::Attempt;
use crate::args::CopyArgs;
use crate::engine::{Meter, Options, Roots};
use crate::local;
use crate::location::{Location, Remote};
use crate::near::Far;
use crate::session::{Order, Session};
use crate::settings::Settings;
use anyhow::{Context, Result, bail};
use hikyaku_fs::Shown;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A copy.
pub(super) enum Part {
    /// From here to there.
    Put { sources: Vec<PathBuf>, target: Remote },
    /// From there to here.
    Get { remote: Remote, sources: Vec<Vec<u8>>, target: PathBuf },
    /// Within this machine.
    Here { sources: Vec<PathBuf>, target: PathBuf },
    /// Between two others, through this one.
    Through { remote: Remote, sources: Vec<Vec<u8>>, target: Remote },
}

/// How it is to be copied this time.
pub(super) struct Plan<'a> {
    pub(super) args: &'a CopyArgs,
    pub(super) settings: &'a Settings,
    pub(super) attempt: Attempt,
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
            (source, _) => parts.push(part(source, target.clone())),
        }
    }
    Ok(parts)
}

fn part(source: Location, target: Location) -> Part {
    match (source, target) {
        (Location::Local(path), Location::Remote(target)) => {
            Part::Put { sources: vec![path], target }
        }
        (Location::Local(path), Location::Local(target)) => {
            Part::Here { sources: vec![path], target }
        }
        (Location::Remote(remote), Location::Local(target)) => {
            Part::Get { sources: vec![remote.path.clone()], remote, target }
        }
        (Location::Remote(remote), Location::Remote(target)) => {
            Part::Through { sources: vec![remote.path.clone()], remote, target }
        }
    }
}

fn is_same(a: &Remote, b: &Remote) -> bool {
    (&a.user, &a.host, a.port) == (&b.user, &b.host, b.port)
}

impl Part {
    /// Whether this machine only hands on.
    pub(super) const fn is_between_others(&self) -> bool {
        matches!(self, Self::Through { .. })
    }

    /// Finds out what is not there before anybody is asked for a password.
    pub(super) fn check(&self) -> Result<()> {
        let (Self::Put { sources, .. } | Self::Here { sources, .. }) = self else { return Ok(()) };
        match sources.iter().find(|path| std::fs::symlink_metadata(path).is_err()) {
            Some(path) => {
                bail!("{}: no such file or directory", Shown::new(path.as_os_str().as_bytes()))
            }
            None => Ok(()),
        }
    }

    /// Starts the far sides; where there are two, the one that sends comes first.
    pub(super) fn open(&self, plan: &Plan<'_>) -> Result<Vec<Far>> {
        let options = self.options(plan)?;
        let open = |remote: &Remote, order: &Order| {
            let mut way = plan.args.way(&remote.host, plan.settings)?;
            // Where nobody is at the terminal a question would wait for ever.
            way.ssh.batch |= plan.attempt == Attempt::Again && !std::io::stdin().is_terminal();
            way.open(remote, order)
        };
        let put = |target: &[u8]| Order::Put { target: target.to_vec(), options: options.clone() };
        let get = |sources: &[Vec<u8>]| Order::Get {
            sources: sources.to_vec(),
            options: options.clone(),
        };
        Ok(match self {
            Self::Put { target, .. } => vec![open(target, &put(&target.path))?],
            Self::Get { remote, sources, .. } => vec![open(remote, &get(sources))?],
            Self::Here { target, .. } => vec![local::open(&put(&absolute(target)?))?],
            Self::Through { remote, sources, target } => {
                vec![open(remote, &get(sources))?, open(target, &put(&target.path))?]
            }
        })
    }

    /// How it is copied. A rate may be set for the other machine; whoever sends tells that it limits.
    fn options(&self, plan: &Plan<'_>) -> Result<Options> {
        let mut options = plan.args.options()?;
        if let Some(host) = self.host() {
            options.limit = plan.args.way(host, plan.settings)?.tuning.rate;
        }
        // What the attempt before this one has done is not to be done again.
        options.fresh &= plan.attempt == Attempt::First;
        Ok(options)
    }

    /// The other machine, if there is one.
    pub(super) fn host(&self) -> Option<&str> {
        match self {
            Self::Put { target: remote, .. }
            | Self::Get { remote, .. }
            | Self::Through { remote, .. } => Some(&remote.host),
            Self::Here { .. } => None,
        }
    }

    /// Copies.
    pub(super) fn work(
        &self,
        sessions: Vec<Session>,
        plan: &Plan<'_>,
        meter: &Meter,
    ) -> Result<()> {
        let args = plan.args;
        let mut sessions = sessions.into_iter();
        let first = sessions.next().context("no session")?;
        let options = self.options(plan)?;
        match self {
            Self::Put { sources, .. } | Self::Here { sources, .. } => {
                first.send(&Roots::new(sources, &options.files), &options, meter)
            }
            Self::Get { sources, target, .. } => {
                first.receive(target, &args.allowed(sources)?, &options, meter)
            }
            Self::Through { sources, .. } => {
                let second = sessions.next().context("no second session")?;
                first.through(second, &args.allowed(sources)?, meter)
            }
        }
    }
}

/// The far side takes an empty path for the home directory.
fn absolute(path: &Path) -> Result<Vec<u8>> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    Ok(std::path::absolute(path)?.as_os_str().as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: CopyArgs,
    }

    #[test]
    fn a_rate_that_is_set_for_a_host_counts_as_a_limit() {
        let settings = Settings::parse("[host.slow]\nrate = \"100m\"\n").unwrap();
        let limit = |words: &str| {
            let args = Command::try_parse_from(words.split(' ')).unwrap().args;
            let (sources, target) = args.locations().unwrap();
            let parts = parts(sources, target).unwrap();
            let plan = Plan { args: &args, settings: &settings, attempt: Attempt::First };
            parts[0].options(&plan).unwrap().limit
        };
        assert_eq!(limit("cp a slow:"), Some(100_000_000));
        assert_eq!(limit("cp slow:a ."), Some(100_000_000));
        assert_eq!(limit("cp -l 8000 slow:a ."), Some(8_000_000));
        assert_eq!(limit("cp a fast:"), None);
    }

    fn shapes(words: &[&str]) -> Vec<String> {
        let mut all: Vec<Location> =
            words.iter().map(|word| Location::parse(word.as_ref()).unwrap()).collect();
        let target = all.pop().unwrap();
        let name = |part: &Part| match part {
            Part::Put { sources, .. } => format!("put {}", sources.len()),
            Part::Get { sources, .. } => format!("get {}", sources.len()),
            Part::Here { sources, .. } => format!("here {}", sources.len()),
            Part::Through { sources, .. } => format!("through {}", sources.len()),
        };
        parts(all, target).unwrap().iter().map(name).collect()
    }

    #[test]
    fn sources_of_one_machine_go_together() {
        assert_eq!(shapes(&["a", "b", "h:"]), ["put 2"]);
        assert_eq!(shapes(&["h:a", "h:b", "i:c", "."]), ["get 2", "get 1"]);
        assert_eq!(shapes(&["a", "h:b", "c", "."]), ["here 1", "get 1", "here 1"]);
        assert_eq!(shapes(&["h:a", "b", "i:"]), ["through 1", "put 1"]);
    }
}
