//! A file of which this machine has a replica.

use crate::convert::found;
use crate::gfarm::{Gfarm, Here, Trouble, one};
use crate::lane::Lane;
use crate::open::nodes;
use hikyaku_gfarm::{Address, Metadata, Replica, Stat};
use hikyaku_store::{Doing, ErrorKind, Found, Open, Result, StorePath, doing};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError};

/// A replica that is read by its descriptor.
#[derive(Debug)]
pub(crate) struct LocalOpen {
    path: StorePath,
    stat: Stat,
    file: File,
    session: Arc<Metadata>,
}

/// Connections to nodes of this machine that are kept.
const LANES_MAX: usize = 8;

impl LocalOpen {
    /// `None` if no node of this machine lets it be opened.
    pub(crate) fn new(
        gfarm: &Gfarm,
        path: &StorePath,
        stat: &Stat,
        replicas: &[Replica],
    ) -> Option<Self> {
        if gfarm.here == Here::Nothing {
            return None;
        }
        let nodes = nodes(gfarm, stat, replicas).ok()?;
        let mut here = nodes.iter().filter(|node| gfarm.here.has(node));
        here.find_map(|node| {
            let mut lane = lane(gfarm, node).ok().flatten()?;
            let (file, stat) = lane.descriptor(path.as_bytes()).ok()?;
            let session = lane.session().clone();
            let mut lanes = gfarm.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            if lane.spool().is_usable() && lanes.len() < LANES_MAX {
                lanes.push(lane);
            }
            Some(Self { path: path.clone(), stat, file, session })
        })
    }

    const fn doing(&self, what: &'static str) -> Doing<'_> {
        doing(what, &self.path)
    }

    /// The present metadata of the path at gfmd.
    fn now(&self) -> std::result::Result<Stat, Trouble> {
        one(self.session.look(&[self.path.as_bytes()])?)
    }

    fn check(&self) -> std::result::Result<(), ErrorKind> {
        match self.now() {
            Ok(now) if now.handle == self.stat.handle && now.size == self.stat.size => Ok(()),
            Ok(_) | Err(Trouble::Refused(ErrorKind::NotFound)) => Err(ErrorKind::Changed),
            Err(trouble) => Err(trouble.kind()),
        }
    }
}

/// A connection to a node of this machine.
fn lane(gfarm: &Gfarm, node: &Address) -> std::result::Result<Option<Lane>, Trouble> {
    let session = gfarm.session();
    let mut lanes = gfarm.lanes.lock().unwrap_or_else(PoisonError::into_inner);
    lanes.retain(|lane| Arc::ptr_eq(lane.session(), &session));
    match lanes.iter().position(|lane| lane.node() == node) {
        Some(at) => Ok(Some(lanes.remove(at))),
        None => {
            drop(lanes);
            Lane::connect_local(gfarm, node)
        }
    }
}

impl Open for LocalOpen {
    fn found(&self) -> Result<Found> {
        let doing = self.doing("look at");
        doing.or(self.now()).map(|stat| found(&stat))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let doing = self.doing("read");
        let end = self.stat.size.min(at.saturating_add(into.len() as u64));
        let length = end.saturating_sub(at) as usize;
        if length == 0 {
            return doing.or(self.check()).map(|()| 0);
        }
        match self.file.read_exact_at(&mut into[..length], at) {
            Ok(()) => Ok(length),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                doing.fail(ErrorKind::Changed)
            }
            Err(error) => doing.fail(error.into()),
        }
    }

    fn path(&self) -> &StorePath {
        &self.path
    }
}
