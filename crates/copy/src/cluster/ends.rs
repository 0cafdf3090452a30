//! The ends of a copy with storages: everything that crate `stores` opens, and this machine beside them. Each source and the
//! target is an end by itself, so that any of them may stand on either side. Hosts behind ssh are storages as well: the data pass
//! through this machine.

use crate::plan::CopyPlan;
use crate::table::{TABLE, Towards, way};
use anyhow::Result;
use hikyaku_console::{Way, misuse};
use hikyaku_fs::descriptor_number;
use hikyaku_reach::dial::Servers;
use hikyaku_stores::Location;
use std::path::PathBuf;

/// The sources of each storage that follow each other.
pub(super) fn parts(plan: &CopyPlan) -> impl Iterator<Item = &[Location]> {
    plan.sources.chunk_by(Location::is_beside)
}

/// The ways that the data go: out of each storage, and into one.
///
/// # Errors
///
/// The target cannot be written to, or standard input is a source.
pub(crate) fn ways(plan: &CopyPlan) -> Result<Vec<Way>> {
    if let Location::Web(url) = &plan.target {
        let text = format!("'{url}': files of web servers can only be read");
        return Err(misuse(text, "a storage that can be written to"));
    }
    let is_storage = |at: &&Location| !matches!(at, Location::Local(_));
    let from = plan.sources.iter().filter(is_storage).map(|from| way(from, Towards::Away));
    let into = Some(&plan.target).filter(is_storage).map(|into| way(into, Towards::Storage));
    let mut ways: Vec<Way> = from.chain(into).collect();
    ways.sort_unstable();
    ways.dedup();
    // A store of a server needs the size of a file before its first byte.
    if paths(&plan.sources).iter().any(|path| descriptor_number(path).is_some()) {
        let way = ways.first().map(|way| TABLE.named(*way)).unwrap_or_default();
        return Err(misuse(
            format!("standard input is not possible for {way}"),
            "write it to a file first, and copy that",
        ));
    }
    Ok(ways)
}

/// Whether daemons may take part. Those of a Gfarm file system are on its nodes.
pub(super) fn has_daemons(plan: &CopyPlan) -> bool {
    let is_daemons = |at: &Location| matches!(at, Location::Servers(_));
    let may_have = |at: &Location| is_daemons(at) || matches!(at, Location::Gfarm(_));
    is_daemons(&plan.target) || plan.sources.iter().any(may_have)
}

/// The names under which the settings know the storages.
pub(super) fn hosts(plan: &CopyPlan) -> Vec<String> {
    plan.sources.iter().chain([&plan.target]).flat_map(Location::hosts).collect()
}

/// The sources on this machine.
pub(super) fn paths(sources: &[Location]) -> Vec<PathBuf> {
    let path = |at: &Location| match at {
        Location::Local(path) => Some(path.clone()),
        _ => None,
    };
    sources.iter().filter_map(path).collect()
}

/// The sources on daemons, which are the same for all of them.
pub(super) fn servers(sources: &[Location]) -> Vec<Servers> {
    let servers = |at: &Location| match at {
        Location::Servers(servers) => Some(servers.clone()),
        _ => None,
    };
    sources.iter().filter_map(servers).collect()
}

#[cfg(test)]
mod tests;
