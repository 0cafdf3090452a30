//! What is ordered of a copy from or to servers: the user's choice, and how data travel.

use super::{Sources, Transfer};
use crate::log::Direction;
use crate::plan::{By, CopyPlan};
use crate::table::TABLE;
use anyhow::Result;
use hikyaku_console::{Effect, Key, Scope, Settings, Tone, Way, misuse, say};
use hikyaku_fan::{Choice, Modes, Parameters, Streams, Written};
use hikyaku_fs::{Patience, descriptor_number};
use hikyaku_job::Choice as Patterns;
use hikyaku_pair::Options;
use hikyaku_reach::dial::{Ending, Servers, Via};
use hikyaku_reach::settings::{self, CIPHER, POLICY, RATE, UDP, UDP_PORTS, WINDOW};
use hikyaku_session::least;
use hikyaku_store::StorePath;

/// Tells whether a name is left out.
type LeavesOut = Box<dyn Fn(&[u8], bool) -> bool + Sync>;

/// A copy as it was ordered.
pub(super) struct Order<'a> {
    pub(super) plan: &'a CopyPlan,
    /// Ends the copy when it is stopped.
    pub(super) scope: &'a Scope,
    pub(super) parameters: Parameters,
    /// Where the files go.
    pub(super) direction: Direction,
    /// What may carry connections to daemons.
    pub(super) via: Via,
    /// The command line's, read once: a list of files may come through a pipe.
    options: Options,
    leaves_out: LeavesOut,
    /// Paths of servers that were written as directories.
    dirs: Vec<StorePath>,
    /// Those of them that were written as what is in the directory.
    contents: Vec<StorePath>,
}

impl<'a> Order<'a> {
    pub(super) fn new(plan: &'a CopyPlan, scope: &'a Scope, transfer: &Transfer) -> Result<Self> {
        transfer.check_sources()?;
        let options = plan.options()?;
        let patterns = Patterns::new(&options.patterns)?;
        let leaves_out = Box::new(move |path: &[u8], is_dir| patterns.leaves_out(path, is_dir));
        let (settings, hosts) = (settings::of_user()?, transfer.hosts());
        let mut parameters = plan.transport.daemons;
        let client = &mut parameters.client;
        client.rate = client.rate.or(least(&settings, &hosts, &RATE)?);
        client.window = client.window.or(least(&settings, &hosts, &WINDOW)?);
        let mut via = plan.via()?;
        if plan.transport.by == By::Auto && least(&settings, &hosts, &UDP)? == Some(false) {
            via = Via::Tcp;
        }
        for line in idle_settings(&settings, &hosts, transfer.way())? {
            if !plan.is_quiet() {
                say(Tone::Note, line);
            }
        }
        let direction = match transfer {
            Transfer::Down(..) => Direction::In,
            Transfer::Up(..) | Transfer::UpToGfarm(..) | Transfer::UpToS3(..) => Direction::Out,
        };
        let dirs = transfer.written(|ending| ending != Ending::Name);
        let contents = transfer.written(|ending| ending == Ending::Contents);
        Ok(Self { plan, scope, parameters, direction, via, options, leaves_out, dirs, contents })
    }

    /// What is copied.
    pub(super) fn choice(&self) -> Choice<'_> {
        Choice {
            depth: self.options.rules.depth,
            leaves_out: &*self.leaves_out,
            listed: &self.options.files,
            dirs: &self.dirs,
            contents: &self.contents,
            named_links: self.options.rules.links,
            existing: self.options.rules.existing,
            pass: self.options.rules.pass,
        }
    }

    /// How a target in a store was written.
    pub(super) fn written(&self, target: &StorePath) -> Written {
        if self.dirs.contains(target) { Written::AsDirectory } else { Written::AsName }
    }

    /// How a target is written that takes bytes in order only: a FIFO is waited for until the copy is stopped.
    pub(super) fn streams(&self) -> Streams {
        let scope = self.scope.clone();
        Streams::Written(Patience::new(move || scope.stop_cause().is_none()))
    }

    /// Which permission bits new files get.
    pub(super) const fn modes(&self) -> Modes {
        if self.options.rules.preserve.modes() { Modes::Kept } else { Modes::Usual }
    }
}

/// What is told of settings that protect something and have no effect on this way: the options of the same names would be
/// refused, but settings are of many copies.
fn idle_settings(settings: &Settings, hosts: &[String], way: Way) -> Result<Vec<String>> {
    let set = [
        (POLICY.name, POLICY.flag, is_set(settings, hosts, &POLICY)?),
        (CIPHER.name, CIPHER.flag, is_set(settings, hosts, &CIPHER)?),
        (UDP_PORTS.name, UDP_PORTS.flag, is_set(settings, hosts, &UDP_PORTS)?),
    ];
    let is_idle = |flag: &str| {
        let mut rows = TABLE.rows.iter().filter(|row| row.flag == flag);
        let effect = |row| TABLE.effect(row, way, &[]);
        rows.all(|row| matches!(effect(row), Effect::Nothing | Effect::Refused))
    };
    let idle = set.into_iter().filter(|(_, flag, is_set)| *is_set && is_idle(flag));
    let told = |name| format!("'{name}' of the settings has no effect on {}", TABLE.named(way));
    Ok(idle.map(|(name, ..)| told(name)).collect())
}

/// Whether the user has set a value for one of the hosts.
fn is_set<T>(settings: &Settings, hosts: &[String], key: &Key<T>) -> Result<bool> {
    let set = hosts.iter().map(|host| settings.get(key, host)).collect::<Result<Vec<_>, _>>()?;
    Ok(set.iter().any(Option::is_some))
}

impl Transfer {
    /// Refuses standard input as a source: the stores of servers are told the size of a file when it is begun.
    fn check_sources(&self) -> Result<()> {
        let (Self::Up(sources, _) | Self::UpToGfarm(sources, _) | Self::UpToS3(sources, _)) = self
        else {
            return Ok(());
        };
        match sources.iter().any(|path| descriptor_number(path).is_some()) {
            true => Err(misuse(
                format!("standard input is not possible for {}", TABLE.named(self.way())),
                "write it to a file first, and copy that",
            )),
            false => Ok(()),
        }
    }

    /// Paths of servers that were written so.
    fn written(&self, is_so: impl Fn(Ending) -> bool) -> Vec<StorePath> {
        let paths: Vec<(&[u8], Ending)> = match self {
            Self::Down(Sources::Daemons(all), _) => {
                all.iter().map(|from| (&*from.path, from.ending)).collect()
            }
            Self::Down(Sources::Gfarm(all), _) => {
                all.iter().map(|from| (&*from.path, from.ending)).collect()
            }
            Self::Down(Sources::S3(all), _) => {
                all.iter().map(|from| (&*from.path, from.ending)).collect()
            }
            Self::Up(_, target) => vec![(&*target.path, target.ending)],
            Self::UpToGfarm(_, target) => vec![(&*target.path, target.ending)],
            Self::UpToS3(_, target) => vec![(&*target.path, target.ending)],
        };
        let written = paths.into_iter().filter(|(_, ending)| is_so(*ending));
        written.filter_map(|(path, _)| StorePath::new(path).ok()).collect()
    }

    /// The names under which the settings know the other end: hosts of daemons, gfmd's host, a bucket.
    fn hosts(&self) -> Vec<String> {
        use hikyaku_stores::{GfarmPath, S3Path};
        let daemons = |servers: &Servers| -> Vec<String> {
            servers.servers.iter().map(|server| server.host.clone()).collect()
        };
        let gfmd = |path: &GfarmPath| {
            path.server.as_ref().map_or_else(|| "gfarm".to_owned(), |server| server.host.clone())
        };
        let bucket = |path: &S3Path| path.bucket.clone();
        match self {
            Self::Down(Sources::Daemons(all), _) => all.iter().flat_map(daemons).collect(),
            Self::Down(Sources::Gfarm(all), _) => all.iter().map(gfmd).collect(),
            Self::Down(Sources::S3(all), _) => all.iter().map(bucket).collect(),
            Self::Up(_, servers) => daemons(servers),
            Self::UpToGfarm(_, path) => vec![gfmd(path)],
            Self::UpToS3(_, path) => vec![bucket(path)],
        }
    }
}
