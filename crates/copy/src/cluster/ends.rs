//! The ends of a copy with storages: everything that crate `stores` opens, and this machine beside them. Each source and the
//! target is an end by itself, so that any of them may stand on either side. Hosts behind ssh are storages as well: the data pass
//! through this machine.

use crate::plan::CopyPlan;
use crate::table::{Towards, way};
use anyhow::Result;
use hikyaku_console::{Way, misuse};
use hikyaku_fs::Incoming;
use hikyaku_reach::dial::Servers;
use hikyaku_stores::Location;
use std::path::PathBuf;

/// The sources of each storage that follow each other. A FIFO or an open descriptor is alone.
pub(super) fn parts(plan: &CopyPlan) -> impl Iterator<Item = &[Location]> {
    let are_together = |one: &Location, other: &Location| {
        one.is_beside(other) && ![one, other].into_iter().any(is_stream)
    };
    plan.sources.chunk_by(are_together)
}

/// Whether a source has no size, as a FIFO and an open descriptor.
pub(super) fn is_stream(source: &Location) -> bool {
    matches!(source, Location::Local(path) if Incoming::of(path).is_some())
}

/// The ways that the data go: out of each storage, and into one.
///
/// # Errors
///
/// The target cannot be written to, or does not take one of the sources.
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
    let is_several = matches!(&plan.target, Location::Servers(at) if at.servers.len() > 1);
    // Which of them gets a file is decided by its size.
    if is_several && plan.sources.iter().any(is_stream) {
        let text = "standard input and other pipes are not possible for several daemons";
        return Err(misuse(text, "one of the daemons as the target"));
    }
    // Any of them may have files that are there already.
    if is_several && plan.report.manifest.is_some() {
        let text = "--manifest is not possible for several daemons";
        return Err(misuse(text, "b3sum on the files after the copy"));
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
