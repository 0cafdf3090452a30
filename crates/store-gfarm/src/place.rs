//! Where names and bytes go.

use crate::gfarm::{Gfarm, Trouble, one};
use hikyaku_fs::{Name, Token as Copy};
use hikyaku_gfarm::{Address, Candidate, Metadata, Place, Spool};
use hikyaku_store::{Doing, ErrorKind, Kind, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The directory of a name, and the name.
pub(crate) struct Spot {
    pub(crate) dir: Vec<u8>,
    pub(crate) name: Name,
}

impl Spot {
    pub(crate) fn place(&self) -> Place<'_> {
        Place { dir: &self.dir, name: self.name.as_bytes() }
    }
}

/// The nodes that are written to.
#[derive(Debug, Default)]
pub(crate) struct Writers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Drafts that are open at each node, so that many files that are written at once are spread over the nodes.
    open: HashMap<Address, usize>,
    /// Connections for later drafts: to log in costs more than to write a small file.
    spare: Vec<Writer>,
}

/// A connection to a node for one draft at a time.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) node: Address,
    pub(crate) session: Arc<Metadata>,
    pub(crate) spool: Spool,
}

/// Connections that are kept.
const SPARE_MAX: usize = 16;

/// The place of a name that is to be there. Names of drafts are not found.
pub(crate) fn place(doing: Doing<'_>) -> Result<Spot> {
    let Some((dir, name)) = doing.path().split() else { return doing.fail(ErrorKind::IsDir) };
    if Copy::of(&name).is_some() {
        return doing.fail(ErrorKind::NotFound);
    }
    Ok(Spot { dir: dir.as_bytes().to_vec(), name })
}

/// The place of a name that is to be made. Its directory must be one: gfmd follows no links, and returns an error of its
/// own for them.
pub(crate) fn spot(gfarm: &Gfarm, doing: Doing<'_>) -> Result<Spot> {
    let Some((dir, name)) = doing.path().split() else { return doing.fail(ErrorKind::Exists) };
    if Copy::of(&name).is_some() {
        return doing.fail(ErrorKind::BadName);
    }
    let looked = gfarm.ask(|session| session.look(&[dir.as_bytes()]));
    let stat = doing.or(looked.and_then(|(_, told)| one(told)))?;
    match crate::convert::kind(stat.kind) {
        Kind::Dir => Ok(Spot { dir: dir.as_bytes().to_vec(), name }),
        Kind::Link => doing.fail(ErrorKind::Link),
        Kind::File | Kind::Special => doing.fail(ErrorKind::NotDir),
    }
}

impl Writers {
    /// A draft begins at the node. A connection to it, if one is spare.
    pub(crate) fn begin(&self, node: &Address, session: &Arc<Metadata>) -> Option<Spool> {
        let mut state = self.state();
        *state.open.entry(node.clone()).or_default() += 1;
        state.spare.retain(|writer| Arc::ptr_eq(&writer.session, session));
        let at = state.spare.iter().position(|writer| writer.node == *node)?;
        Some(state.spare.swap_remove(at).spool)
    }

    /// A draft at the node has ended. Its connection is kept if it can be used again.
    pub(crate) fn end(&self, node: &Address, writer: Option<Writer>) {
        let mut state = self.state();
        if let Some(count) = state.open.get_mut(node) {
            *count = count.saturating_sub(1);
        }
        let usable = writer.filter(|writer| writer.spool.is_usable());
        if let Some(writer) = usable.filter(|_| state.spare.len() < SPARE_MAX) {
            state.spare.push(writer);
        }
    }

    fn at(&self, node: &Address) -> usize {
        self.state().open.get(node).copied().unwrap_or(0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gfarm {
    /// The nodes for a new file of `size` bytes, best first: those of this machine where they are used directly, then those
    /// at which this process writes the fewest files, then those with the most space.
    pub(crate) fn in_order(
        &self,
        mut offered: Vec<Candidate>,
        size: u64,
    ) -> std::result::Result<Vec<Candidate>, Trouble> {
        let had = !offered.is_empty();
        offered.retain(|candidate| candidate.free >= size);
        if had && offered.is_empty() {
            return Err(Trouble::Refused(ErrorKind::NoSpace));
        }
        let rank = |candidate: &Candidate| {
            let node = &candidate.address;
            (!self.here.has(node), self.writers.at(node), u64::MAX - candidate.free)
        };
        offered.sort_by_key(rank);
        Ok(offered)
    }
}
