//! A file that is open for reading, from one of the nodes that have it.

use crate::convert::found;
use crate::gfarm::{Gfarm, Trouble};
use crate::lane::Lane;
use hikyaku_gfarm::{Address, Metadata, Replica, Stat};
use hikyaku_store::{Doing, ErrorKind, Found, Open, Result, StorePath, doing};
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

/// An open file.
#[derive(Debug)]
pub(crate) struct GfarmOpen {
    path: StorePath,
    stat: Stat,
    lane: Mutex<Lane>,
}

impl GfarmOpen {
    /// Opens it at the first node that is up and lets it be opened.
    pub(crate) fn new(
        gfarm: &Gfarm,
        path: &StorePath,
        stat: &Stat,
        replicas: &[Replica],
    ) -> Result<Self> {
        let doing = doing("open", path);
        let nodes = doing.or(nodes(gfarm, stat, replicas))?;
        let mut trouble = Trouble::Refused(ErrorKind::Unreachable);
        for node in nodes {
            match open_at(gfarm, &node, path) {
                Ok(lane) => {
                    let opened = lane.file().map_or(stat, |file| &file.stat);
                    let stat = opened.clone();
                    return Ok(Self { path: path.clone(), stat, lane: Mutex::new(lane) });
                }
                Err(error) => trouble = error,
            }
        }
        doing.fail(trouble.kind())
    }

    const fn doing(&self, what: &'static str) -> Doing<'_> {
        doing(what, &self.path)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Lane) -> T) -> T {
        work(&mut self.lane.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn read(&self, range: Range<u64>, into: &mut [u8]) -> std::result::Result<(), Trouble> {
        let from = range.start;
        self.with(|lane| {
            lane.read(range, |at, block| {
                let at = (at - from) as usize;
                into[at..at + block.len()].copy_from_slice(block);
                ControlFlow::Continue(())
            })?;
            if lane.is_unchanged()? { Ok(()) } else { Err(Trouble::Refused(ErrorKind::Changed)) }
        })
    }
}

/// The nodes from which a file can be read.
pub(crate) fn nodes(
    gfarm: &Gfarm,
    stat: &Stat,
    replicas: &[Replica],
) -> std::result::Result<Vec<Address>, Trouble> {
    let hosts = gfarm.ask(Metadata::hosts)?.1;
    let of = |replica: &Replica| {
        let host = hosts.iter().find(|host| host.address.host == replica.host);
        host.map(|host| host.address.clone())
    };
    let good = replicas.iter().filter(|replica| {
        replica.is_up && replica.is_complete && replica.generation == stat.handle.generation
    });
    Ok(good.filter_map(of).collect())
}

fn open_at(gfarm: &Gfarm, node: &Address, path: &StorePath) -> std::result::Result<Lane, Trouble> {
    let mut lane = Lane::connect(gfarm, node)?;
    lane.open(path.as_bytes())?;
    Ok(lane)
}

impl Open for GfarmOpen {
    fn found(&self) -> Result<Found> {
        let doing = self.doing("look at");
        let stat = self.with(|lane| lane.stat());
        doing.or(stat).map(|stat| found(&stat))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let doing = self.doing("read");
        let end = self.stat.size.min(at.saturating_add(into.len() as u64));
        let length = end.saturating_sub(at) as usize;
        if length == 0 {
            let unchanged = doing.or(self.with(|lane| lane.is_unchanged()))?;
            return if unchanged { Ok(0) } else { doing.fail(ErrorKind::Changed) };
        }
        doing.or(self.read(at..end, &mut into[..length]))?;
        Ok(length)
    }

    fn path(&self) -> &StorePath {
        &self.path
    }
}

impl Drop for GfarmOpen {
    fn drop(&mut self) {
        // A connection that has ended took its open files with it.
        let _ = self.with(Lane::close);
    }
}
