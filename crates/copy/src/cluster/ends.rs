//! The ends of a copy with storages: everything that crate `stores` opens, and this machine beside them. Each source and the
//! target is an end by itself, so that any of them may stand on either side.

use crate::table::{TABLE, Towards, way};
use anyhow::Result;
use hikyaku_console::{Way, misuse};
use hikyaku_fs::{Shown, descriptor_number};
use hikyaku_reach::dial::{Ending, Servers};
use hikyaku_store::StorePath;
use hikyaku_stores::{GfarmPath, Location};
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
    /// Paths in a Gfarm file system, whose nodes send the files.
    Gfarm(Vec<GfarmPath>),
    /// Locations in another storage.
    Stored(Vec<Location>),
}

/// The target.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// A path of this machine.
    Here(PathBuf),
    /// A path on daemons.
    Daemons(Servers),
    /// A location in another storage.
    Stored(Location),
}

/// Paths of sources that were written as directories.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) dirs: Vec<StorePath>,
    /// Those of them that were written as the entries of the directory.
    pub(super) contents: Vec<StorePath>,
}

impl Transfer {
    /// The transfer between these places; `None` if all of them are on this machine or on hosts behind ssh, which have programs
    /// at both ends.
    ///
    /// # Errors
    ///
    /// The target cannot be written to, or standard input is a source.
    pub(crate) fn of(sources: Vec<Location>, target: Location) -> Result<Option<Self>> {
        let is_storage = |at: &Location| !matches!(at, Location::Local(_) | Location::Remote(_));
        if !sources.iter().chain([&target]).any(is_storage) {
            return Ok(None);
        }
        let target = match target {
            Location::Local(path) => End::Here(path),
            Location::Servers(servers) => End::Daemons(servers),
            Location::Web(url) => {
                let text = format!("'{url}': files of web servers can only be read");
                return Err(misuse(text, "a storage that can be written to"));
            }
            stored => End::Stored(stored),
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
                (from, Some(Part::Stored(all)))
                    if all.first().is_some_and(|first| first.is_beside(&from)) =>
                {
                    all.push(from);
                }
                (from, _) => parts.push(Part::Stored(vec![from])),
            }
        }
        let transfer = Self { parts, target };
        let mut here = transfer.parts.iter().flat_map(|part| match part {
            Part::Here(paths) => &paths[..],
            Part::Daemons(_) | Part::Gfarm(_) | Part::Stored(_) => &[],
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

    /// The ways that the data go: out of each storage, and into one.
    pub(crate) fn ways(&self) -> Vec<Way> {
        let into = match &self.target {
            End::Here(_) => None,
            End::Daemons(_) => Some(Way::ToDaemons),
            End::Stored(at) => Some(way(at, Towards::Storage)),
        };
        let from = self.parts.iter().filter_map(|part| match part {
            Part::Here(_) => None,
            Part::Daemons(_) => Some(Way::FromDaemons),
            Part::Gfarm(_) => Some(Way::FromGfarm),
            Part::Stored(all) => all.first().map(|at| way(at, Towards::Away)),
        });
        let mut ways: Vec<Way> = from.chain(into).collect();
        ways.sort_unstable();
        ways.dedup();
        ways
    }

    /// Whether daemons take part.
    pub(super) fn has_daemons(&self) -> bool {
        matches!(self.target, End::Daemons(_))
            || self.parts.iter().any(|part| matches!(part, Part::Daemons(_) | Part::Gfarm(_)))
    }

    /// The number of sources.
    pub(super) fn sources(&self) -> usize {
        self.parts.iter().map(Part::sources).sum()
    }

    /// The names under which the settings know the storages.
    pub(super) fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = self.parts.iter().flat_map(Part::hosts).collect();
        hosts.extend(match &self.target {
            End::Here(_) => Vec::new(),
            End::Daemons(servers) => Location::Servers(servers.clone()).hosts(),
            End::Stored(at) => at.hosts(),
        });
        hosts
    }
}

impl Part {
    pub(super) fn sources(&self) -> usize {
        match self {
            Self::Here(all) => all.len(),
            Self::Daemons(all) => all.len(),
            Self::Gfarm(all) => all.len(),
            Self::Stored(all) => all.len(),
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
            Self::Stored(all) => all.first().map(ToString::to_string),
        };
        name.unwrap_or_default()
    }

    fn hosts(&self) -> Vec<String> {
        match self {
            Self::Here(_) => Vec::new(),
            Self::Daemons(all) => {
                all.iter().cloned().map(Location::Servers).flat_map(|at| at.hosts()).collect()
            }
            Self::Gfarm(all) => {
                all.iter().cloned().map(Location::Gfarm).flat_map(|at| at.hosts()).collect()
            }
            Self::Stored(all) => all.iter().flat_map(Location::hosts).collect(),
        }
    }

    /// How the paths on daemons and in Gfarm were written. Those of other storages are known when the storage is open.
    pub(super) fn written(&self) -> Written {
        let paths: Vec<(&[u8], Ending)> = match self {
            Self::Here(_) | Self::Stored(_) => Vec::new(),
            Self::Daemons(all) => all.iter().map(|from| (&*from.path, from.ending)).collect(),
            Self::Gfarm(all) => all.iter().map(|from| (&*from.path, from.ending)).collect(),
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

#[cfg(test)]
mod tests;
