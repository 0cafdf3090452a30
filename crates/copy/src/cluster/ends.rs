//! The ends of a copy with storages: everything that crate `stores` opens, and this machine beside them. Each source and the
//! target is an end by itself, so that any of them may stand on either side.

use crate::table::{TABLE, Towards, way};
use anyhow::Result;
use hikyaku_console::{Way, misuse};
use hikyaku_fs::descriptor_number;
use hikyaku_reach::dial::Servers;
use hikyaku_stores::Location;
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
pub(crate) struct Part(pub(super) Vec<Location>);

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

impl Transfer {
    /// The transfer between these places; `None` if all of them are on this machine or on hosts behind ssh, which have programs
    /// at both ends.
    ///
    /// # Errors
    ///
    /// The target cannot be written to, or standard input is a source.
    pub(crate) fn of(sources: Vec<Location>, target: Location) -> Result<Option<Self>> {
        let is_storage = |at: &Location| !matches!(at, Location::Local(_) | Location::Remote(_));
        let has_storage = sources.iter().chain([&target]).any(is_storage);
        if has_storage { Self::of_stores(sources, target).map(Some) } else { Ok(None) }
    }

    /// The same where hosts behind ssh are storages as well: the data pass through this machine.
    ///
    /// # Errors
    ///
    /// Those of [`Transfer::of`].
    pub(crate) fn of_stores(sources: Vec<Location>, target: Location) -> Result<Self> {
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
            match parts.last_mut() {
                Some(Part(all)) if all.first().is_some_and(|first| first.is_beside(&source)) => {
                    all.push(source);
                }
                _ => parts.push(Part(vec![source])),
            }
        }
        let transfer = Self { parts, target };
        let mut here = transfer.parts.iter().flat_map(Part::paths);
        // A store of a server needs the size of a file before its first byte.
        if here.any(|path| descriptor_number(&path).is_some()) {
            let way = transfer.ways().first().map(|way| TABLE.named(*way)).unwrap_or_default();
            return Err(misuse(
                format!("standard input is not possible for {way}"),
                "write it to a file first, and copy that",
            ));
        }
        Ok(transfer)
    }

    /// The ways that the data go: out of each storage, and into one.
    pub(crate) fn ways(&self) -> Vec<Way> {
        let into = match &self.target {
            End::Here(_) => None,
            End::Daemons(_) => Some(Way::ToDaemons),
            End::Stored(at) => Some(way(at, Towards::Storage)),
        };
        let from = self.parts.iter().filter_map(|Part(all)| match all.first()? {
            Location::Local(_) => None,
            from => Some(way(from, Towards::Away)),
        });
        let mut ways: Vec<Way> = from.chain(into).collect();
        ways.sort_unstable();
        ways.dedup();
        ways
    }

    /// Whether daemons may take part. Those of a Gfarm file system are on its nodes.
    pub(super) fn has_daemons(&self) -> bool {
        let may_have = |Part(all): &Part| {
            matches!(all.first(), Some(Location::Servers(_) | Location::Gfarm(_)))
        };
        matches!(self.target, End::Daemons(_)) || self.parts.iter().any(may_have)
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
    pub(super) const fn sources(&self) -> usize {
        self.0.len()
    }

    /// The first of the sources, for people.
    pub(super) fn name(&self) -> String {
        self.0.first().map(ToString::to_string).unwrap_or_default()
    }

    fn hosts(&self) -> Vec<String> {
        self.0.iter().flat_map(Location::hosts).collect()
    }

    /// The sources on this machine.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let path = |at: &Location| match at {
            Location::Local(path) => Some(path.clone()),
            _ => None,
        };
        self.0.iter().filter_map(path).collect()
    }

    /// The sources on daemons, which are the same for all of them.
    pub(super) fn servers(&self) -> Vec<Servers> {
        let servers = |at: &Location| match at {
            Location::Servers(servers) => Some(servers.clone()),
            _ => None,
        };
        self.0.iter().filter_map(servers).collect()
    }
}

#[cfg(test)]
mod tests;
