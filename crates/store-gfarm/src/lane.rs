//! A connection to a node, and the file that is open on it.

use crate::gfarm::{Gfarm, Trouble, one};
use hikyaku_gfarm::{Address, CallError, Metadata, OpenFile, Spool, Stat};
use hikyaku_store::ErrorKind;
use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// A connection to a node. It keeps a file open for the next range of it, which then costs one round trip.
#[derive(Debug)]
pub(crate) struct Lane {
    spool: Spool,
    /// The session to which the connection and the open file belong.
    session: Arc<Metadata>,
    file: Option<OpenFile>,
    node: Address,
}

impl Lane {
    pub(crate) fn connect(gfarm: &Gfarm, node: &Address) -> Result<Self, Trouble> {
        let (session, _) = gfarm.ask(|session| session.look(&[b""]))?;
        let spool = Spool::connect(node, gfarm.account(), session.process());
        let spool = spool.map_err(|error| Trouble::of_node(&error))?;
        Ok(Self { spool, session, file: None, node: node.clone() })
    }

    /// A connection through the socket of this machine; `None` if the node is not here.
    pub(crate) fn connect_local(gfarm: &Gfarm, node: &Address) -> Result<Option<Self>, Trouble> {
        let session = gfarm.session();
        let spool = Spool::connect_local(node, gfarm.account(), session.process());
        let spool = spool.map_err(|error| Trouble::of_node(&error))?;
        Ok(spool.map(|spool| Self { spool, session, file: None, node: node.clone() }))
    }

    /// The node.
    pub(crate) const fn node(&self) -> &Address {
        &self.node
    }

    /// The descriptor of a replica on this machine, and what gfmd knew when it was opened.
    pub(crate) fn descriptor(&mut self, path: &[u8]) -> Result<(File, Stat), Trouble> {
        let file = one(self.session.open(&[path])?)?;
        let opened = self.spool.descriptor(&file);
        if opened.is_ok() {
            self.spool.close(&file)?;
        }
        self.session.close(std::slice::from_ref(&file))?;
        Ok((opened?, file.stat))
    }

    pub(crate) const fn spool(&self) -> &Spool {
        &self.spool
    }

    pub(crate) const fn session(&self) -> &Arc<Metadata> {
        &self.session
    }

    pub(crate) const fn file(&self) -> Option<&OpenFile> {
        self.file.as_ref()
    }

    /// Opens the file at `path`, after it has closed the one that was open.
    pub(crate) fn open(&mut self, path: &[u8]) -> Result<&OpenFile, Trouble> {
        self.close()?;
        let file = one(self.session.open(&[path])?)?;
        if let Err(error) = self.spool.open(&file) {
            self.session.close(&[file])?;
            return Err(error.into());
        }
        Ok(self.file.insert(file))
    }

    /// Closes the file that is open.
    pub(crate) fn close(&mut self) -> Result<(), Trouble> {
        if let Some(file) = self.file.take() {
            self.spool.close(&file)?;
            self.session.close(&[file])?;
        }
        Ok(())
    }

    /// Reads a range of the open file.
    pub(crate) fn read(
        &mut self,
        range: Range<u64>,
        each: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Trouble> {
        let Some(file) = &self.file else { return Err(CallError::Short.into()) };
        Ok(self.spool.read(file, range, each)?)
    }

    /// Reads files of at most a mebibyte that are open at gfmd, and hands each to `each` with its index.
    pub(crate) fn read_small(
        &mut self,
        files: &[(usize, OpenFile)],
        mut each: impl FnMut(usize, Result<&[u8], CallError>) -> ControlFlow<()>,
    ) -> Result<(), Trouble> {
        for (index, file) in files {
            let opened = self.spool.open(file);
            let (is_open, content) = match opened {
                Ok(()) => (true, self.spool.read_small(file)),
                Err(error) => (false, Err(error)),
            };
            if let Err(error @ (CallError::Lost(_) | CallError::Protocol(_))) = content {
                return Err(error.into());
            }
            let is_enough = each(*index, content).is_break();
            if is_open {
                self.spool.close(file)?;
            }
            if is_enough {
                break;
            }
        }
        Ok(())
    }

    /// The present metadata of the open file at gfmd.
    pub(crate) fn stat(&self) -> Result<Stat, Trouble> {
        let file = self.file.as_ref().ok_or(Trouble::Refused(ErrorKind::Gone))?;
        one(self.session.stat(std::slice::from_ref(file))?)
    }

    /// Whether the open content is still that of gfmd: no writer has closed the file since.
    pub(crate) fn is_unchanged(&self) -> Result<bool, Trouble> {
        let stat = self.stat()?;
        let is_same =
            |file: &OpenFile| stat.handle == file.stat.handle && stat.size == file.stat.size;
        Ok(self.file.as_ref().is_some_and(is_same))
    }
}
