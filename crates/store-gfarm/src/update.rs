//! A file that is changed in place.
//!
//! Each call opens the file at gfmd and at a node that has it, makes its change, and closes it at both. gfmd knows of the
//! change, and with it every reader, when the call returns; and no error comes later. Gfarm gives the content a new
//! generation each time, and makes the other replicas anew.

use crate::convert::found;
use crate::draft::open_at_a_node;
use crate::gfarm::{Gfarm, Trouble, one};
use crate::place::{Writer, Writers};
use hikyaku_gfarm::{Address, Metadata, OpenFile, Spool, Stat};
use hikyaku_store::{Doing, ErrorKind, Found, Open, Result, StorePath, SyncScope, doing};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file that is open for changes. Calls follow each other.
#[derive(Debug)]
pub(crate) struct GfarmUpdate {
    path: StorePath,
    /// The file, whose name another one may get.
    inode: u64,
    /// The file, open at gfmd for as long as this lives: gfmd gives the number of a file that was removed to a new one, but
    /// not that of an open file.
    held: Option<OpenFile>,
    writers: Arc<Writers>,
    at: Mutex<At>,
}

/// The node that has the file.
#[derive(Debug)]
struct At {
    node: Address,
    /// The connection to the node, until it is given back.
    spool: Option<Spool>,
    session: Arc<Metadata>,
    /// The file, while it is open.
    file: Option<OpenFile>,
}

impl GfarmUpdate {
    pub(crate) fn new(gfarm: &Gfarm, path: &StorePath) -> Result<Self> {
        let doing = doing("open", path);
        let opened = gfarm.ask(|session| session.open_to_write(path.as_bytes()));
        let (session, file) = doing.or(opened.and_then(|(session, file)| Ok((session, file?))))?;
        let inode = file.stat.handle.inode;
        match open_at_a_node(gfarm, &session, &file, 0) {
            Ok((spool, node)) => {
                let held = hold(&session, path, inode);
                let at = At { node, spool: Some(spool), session, file: Some(file) };
                let (path, writers) = (path.clone(), gfarm.writers.clone());
                let mut update = Self { path, inode, held: None, writers, at: Mutex::new(at) };
                update.held = doing.or(held)?;
                Ok(update)
            }
            Err(trouble) => {
                // The caller gets the error of the node.
                let _ = session.close(&[file]);
                doing.fail(trouble.kind())
            }
        }
    }

    const fn doing(&self, what: &'static str) -> Doing<'_> {
        doing(what, &self.path)
    }

    fn at(&self) -> MutexGuard<'_, At> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `work` use the open file, and closes it.
    fn with<T>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Spool, &OpenFile) -> std::result::Result<T, Trouble>,
    ) -> Result<T> {
        let mut at = self.at();
        let done = at.open(self.path.as_bytes(), self.inode).and_then(|()| at.with(work));
        let closed = at.close();
        drop(at);
        self.doing(what).or(done.and_then(|done| closed.map(|()| done)))
    }

    /// The metadata of the file at gfmd.
    fn stat(&self) -> std::result::Result<Stat, Trouble> {
        let stat = one(self.at().session.look(&[self.path.as_bytes()])?)?;
        match stat.handle.inode == self.inode {
            true => Ok(stat),
            false => Err(Trouble::Refused(ErrorKind::Gone)),
        }
    }
}

/// Opens a file at gfmd alone. `None` if this user may not read it.
fn hold(
    session: &Metadata,
    path: &StorePath,
    inode: u64,
) -> std::result::Result<Option<OpenFile>, Trouble> {
    match session.open(&[path.as_bytes()]).map_err(Trouble::from).and_then(one) {
        Ok(held) if held.stat.handle.inode == inode => Ok(Some(held)),
        Ok(held) => {
            session.close(&[held])?;
            Err(Trouble::Refused(ErrorKind::Gone))
        }
        Err(Trouble::Refused(ErrorKind::Denied)) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

impl At {
    fn open(&mut self, path: &[u8], inode: u64) -> std::result::Result<(), Trouble> {
        if self.file.is_some() {
            return Ok(());
        }
        let Some(spool) = &mut self.spool else { return Err(Trouble::Refused(ErrorKind::Gone)) };
        let file = self.session.open_to_write(path)??;
        let opened = match file.stat.handle.inode == inode {
            true => spool.open(&file).map_err(Trouble::from),
            false => Err(Trouble::Refused(ErrorKind::Gone)),
        };
        match opened {
            Ok(()) => self.file = Some(file),
            Err(trouble) => {
                self.session.close(&[file])?;
                return Err(trouble);
            }
        }
        Ok(())
    }

    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Spool, &OpenFile) -> std::result::Result<T, Trouble>,
    ) -> std::result::Result<T, Trouble> {
        match (&mut self.spool, &self.file) {
            (Some(spool), Some(file)) => work(spool, file),
            _ => Err(Trouble::Refused(ErrorKind::Gone)),
        }
    }

    /// Closes it at the node, then at gfmd.
    fn close(&mut self) -> std::result::Result<(), Trouble> {
        let (Some(file), Some(spool)) = (self.file.take(), &mut self.spool) else { return Ok(()) };
        let at_node = spool.close(&file);
        let told = self.session.close(&[file]);
        at_node?;
        one(told?).map(drop)
    }
}

impl Open for GfarmUpdate {
    fn found(&self) -> Result<Found> {
        self.doing("look at").or(self.stat()).map(|stat| found(&stat))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.with("read", |spool, file| {
            let end = file.stat.size.min(at.saturating_add(into.len() as u64));
            spool.read(file, at..end.max(at), |from, block| {
                let from = (from - at) as usize;
                into[from..from + block.len()].copy_from_slice(block);
                ControlFlow::Continue(())
            })?;
            Ok(end.saturating_sub(at) as usize)
        })
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.with("write", |spool, file| {
            spool.begin_write(file, at)?;
            spool.write(bytes)?;
            match spool.end_write()? == bytes.len() as u64 {
                true => Ok(()),
                false => Err(Trouble::Refused(ErrorKind::NoSpace)),
            }
        })
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.with("change the length of", |spool, file| Ok(spool.set_length(file, length)?))
    }

    fn sync(&self, _: SyncScope) -> Result<()> {
        self.with("sync", |spool, file| Ok(spool.sync(file)?))
    }
}

impl Drop for GfarmUpdate {
    fn drop(&mut self) {
        let held = self.held.take();
        let mut at = self.at();
        // Only a file that was opened and never used is open here.
        let _ = at.close();
        let _ = held.map(|held| at.session.close(&[held]));
        let (node, session) = (at.node.clone(), at.session.clone());
        let writer = at.spool.take().map(|spool| Writer { node: node.clone(), session, spool });
        drop(at);
        self.writers.end(&node, writer);
    }
}
