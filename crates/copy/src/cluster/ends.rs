//! The ends of a copy with storages: daemons, Gfarm file systems, buckets, and this machine beside them. Each source and the
//! target is an end by itself, so that any of them may stand on either side.

use crate::table::TABLE;
use anyhow::Result;
use hikyaku_console::{Way, misuse};
use hikyaku_fs::{Shown, descriptor_number};
use hikyaku_reach::dial::{Ending, Servers};
use hikyaku_store::StorePath;
use hikyaku_stores::{GfarmPath, Location, S3Path};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The sources and the target of a copy.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    /// The sources, in the order of the command.
    pub(crate) parts: Vec<Part>,
    pub(crate) target: End,
}

/// Sources of one storage that follow each other.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Paths of this machine.
    Here(Vec<PathBuf>),
    /// Paths on the same daemons.
    Daemons(Vec<Servers>),
    /// Paths in a Gfarm file system.
    Gfarm(Vec<GfarmPath>),
    /// Paths in a bucket.
    S3(Vec<S3Path>),
}

/// The target.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// A path of this machine.
    Here(PathBuf),
    /// A path on daemons.
    Daemons(Servers),
    /// A path in a Gfarm file system.
    Gfarm(GfarmPath),
    /// A path in a bucket.
    S3(S3Path),
}

/// Paths of sources that were written as directories.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) dirs: Vec<StorePath>,
    /// Those of them that were written as the entries of the directory.
    pub(super) contents: Vec<StorePath>,
}

impl Transfer {
    /// The transfer between these places; `None` if no storage takes part in it.
    ///
    /// # Errors
    ///
    /// A host that is reached through ssh takes part, or standard input is a source.
    pub(crate) fn of(sources: Vec<Location>, target: Location) -> Result<Option<Self>> {
        let is_storage = |at: &Location| {
            matches!(at, Location::Servers(_) | Location::Gfarm(_) | Location::S3(_))
        };
        if !sources.iter().chain([&target]).any(is_storage) {
            return Ok(None);
        }
        let target = match target {
            Location::Local(path) => End::Here(path),
            Location::Servers(servers) => End::Daemons(servers),
            Location::Gfarm(path) => End::Gfarm(path),
            Location::S3(path) => End::S3(path),
            Location::Remote(_) => return Err(beside_ssh(&target)),
        };
        let mut parts: Vec<Part> = Vec::new();
        for source in sources {
            match (source, parts.last_mut()) {
                (Location::Local(path), Some(Part::Here(all))) => all.push(path),
                (Location::Local(path), _) => parts.push(Part::Here(vec![path])),
                (Location::Servers(from), Some(Part::Daemons(all)))
                    if all.first().is_some_and(|first| first.servers == from.servers) =>
                {
                    all.push(from);
                }
                (Location::Servers(from), _) => parts.push(Part::Daemons(vec![from])),
                (Location::Gfarm(from), Some(Part::Gfarm(all)))
                    if all.first().is_some_and(|first| first.server == from.server) =>
                {
                    all.push(from);
                }
                (Location::Gfarm(from), _) => parts.push(Part::Gfarm(vec![from])),
                (Location::S3(from), Some(Part::S3(all)))
                    if all.first().is_some_and(|first| first.bucket == from.bucket) =>
                {
                    all.push(from);
                }
                (Location::S3(from), _) => parts.push(Part::S3(vec![from])),
                (from @ Location::Remote(_), _) => return Err(beside_ssh(&from)),
            }
        }
        let transfer = Self { parts, target };
        transfer.check_servers()?;
        let mut here = transfer.parts.iter().flat_map(|part| match part {
            Part::Here(paths) => &paths[..],
            Part::Daemons(_) | Part::Gfarm(_) | Part::S3(_) => &[],
        });
        // A store of a server needs the size of a file before its first byte.
        if here.any(|path| descriptor_number(path).is_some()) {
            let way = transfer.ways().first().map(|way| TABLE.named(*way)).unwrap_or_default();
            return Err(misuse(
                format!("standard input is not possible for {way}"),
                "write it to a file first, and copy that",
            ));
        }
        Ok(Some(transfer))
    }

    /// Refuses several daemons as the target of files that are not of this machine.
    fn check_servers(&self) -> Result<()> {
        let is_here = |part: &Part| matches!(part, Part::Here(_));
        match &self.target {
            End::Daemons(servers)
                if servers.servers.len() > 1 && !self.parts.iter().all(is_here) =>
            {
                Err(misuse(
                    format!("'{servers}': files that are not of this machine go to one daemon"),
                    "one of the servers as the target",
                ))
            }
            End::Here(_) | End::Daemons(_) | End::Gfarm(_) | End::S3(_) => Ok(()),
        }
    }

    /// The ways that the data go: out of each storage, and into one.
    pub(crate) fn ways(&self) -> Vec<Way> {
        let into = match &self.target {
            End::Here(_) => None,
            End::Daemons(_) => Some(Way::ToDaemons),
            End::Gfarm(_) => Some(Way::ToGfarm),
            End::S3(_) => Some(Way::ToBucket),
        };
        let from = self.parts.iter().filter_map(|part| match part {
            Part::Here(_) => None,
            Part::Daemons(_) => Some(Way::FromDaemons),
            Part::Gfarm(_) => Some(Way::FromGfarm),
            Part::S3(_) => Some(Way::FromBucket),
        });
        let mut ways: Vec<Way> = from.chain(into).collect();
        ways.sort_unstable();
        ways.dedup();
        ways
    }

    /// The number of sources.
    pub(super) fn sources(&self) -> usize {
        self.parts.iter().map(Part::sources).sum()
    }

    /// The names under which the settings know the storages: hosts of daemons, gfmd's host, a bucket.
    pub(super) fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = self.parts.iter().flat_map(Part::hosts).collect();
        hosts.extend(match &self.target {
            End::Here(_) => Vec::new(),
            End::Daemons(servers) => daemons(servers),
            End::Gfarm(path) => vec![gfmd(path)],
            End::S3(path) => vec![path.bucket.clone()],
        });
        hosts
    }
}

/// Why an ssh host cannot stand beside a storage.
fn beside_ssh(host: &Location) -> anyhow::Error {
    misuse(
        format!(
            "'{host}': a host that is reached through ssh cannot be combined with daemons, Gfarm and buckets"
        ),
        "copy to this machine first, and from this machine by a second command; or hikyaku serve on the host",
    )
}

impl Part {
    pub(super) fn sources(&self) -> usize {
        match self {
            Self::Here(all) => all.len(),
            Self::Daemons(all) => all.len(),
            Self::Gfarm(all) => all.len(),
            Self::S3(all) => all.len(),
        }
    }

    /// The first of the sources, for people.
    pub(super) fn name(&self) -> String {
        let name = match self {
            Self::Here(all) => {
                all.first().map(|path| Shown::new(path.as_os_str().as_bytes()).to_string())
            }
            Self::Daemons(all) => all.first().map(ToString::to_string),
            Self::Gfarm(all) => all.first().map(ToString::to_string),
            Self::S3(all) => all.first().map(ToString::to_string),
        };
        name.unwrap_or_default()
    }

    fn hosts(&self) -> Vec<String> {
        match self {
            Self::Here(_) => Vec::new(),
            Self::Daemons(all) => all.iter().flat_map(daemons).collect(),
            Self::Gfarm(all) => all.iter().map(gfmd).collect(),
            Self::S3(all) => all.iter().map(|path| path.bucket.clone()).collect(),
        }
    }

    /// How the paths in a storage were written.
    pub(super) fn written(&self) -> Written {
        let paths: Vec<(&[u8], Ending)> = match self {
            Self::Here(_) => Vec::new(),
            Self::Daemons(all) => all.iter().map(|from| (&*from.path, from.ending)).collect(),
            Self::Gfarm(all) => all.iter().map(|from| (&*from.path, from.ending)).collect(),
            Self::S3(all) => all.iter().map(|from| (&*from.path, from.ending)).collect(),
        };
        let written = |is_so: fn(Ending) -> bool| {
            let paths = paths.iter().filter(|(_, ending)| is_so(*ending));
            paths.filter_map(|(path, _)| StorePath::new(path).ok()).collect()
        };
        Written {
            dirs: written(|ending| ending != Ending::Name),
            contents: written(|ending| ending == Ending::Contents),
        }
    }
}

fn daemons(servers: &Servers) -> Vec<String> {
    servers.servers.iter().map(|server| server.host.clone()).collect()
}

fn gfmd(path: &GfarmPath) -> String {
    path.server.as_ref().map_or_else(|| "gfarm".to_owned(), |server| server.host.clone())
}

#[cfg(test)]
mod tests;
