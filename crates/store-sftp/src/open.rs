//! Open files.

use crate::convert::reason;
use crate::reading::Reading;
use crate::store::Sftp;
use hikyaku_sftp::{Asked, Attributes, Extension, Handle, Request};
use hikyaku_store::{Access, ErrorKind, Found, Open, Result, StorePath, SyncScope, doing};
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

/// An open file.
pub(crate) struct SftpOpen {
    pub(crate) store: Sftp,
    pub(crate) path: StorePath,
    pub(crate) handle: Handle,
    pub(crate) access: Access,
    /// Its metadata before it was opened.
    pub(crate) before: Attributes,
}

impl Drop for SftpOpen {
    fn drop(&mut self) {
        // Every write was answered before, so this answer is not awaited.
        drop(self.store.inner.client.ask(&Request::Close(self.handle.bytes())));
    }
}

impl SftpOpen {
    fn now(&self) -> Asked<Attributes> {
        self.store.inner.client.attributes(&Request::FStat(self.handle.bytes()))
    }

    /// Whether the metadata are those of the file as it was opened. A file of /proc has a size of zero, and a new time at
    /// each request.
    fn is_same(&self, now: &Attributes) -> bool {
        let modified = |of: &Attributes| of.times.map(|(_, modified)| modified);
        let is_same_time = self.before.size == Some(0) || modified(now) == modified(&self.before);
        self.access == Access::Update || (now.size == self.before.size && is_same_time)
    }

    /// The end of a range that is worth a request: behind the known size only the end would be found.
    fn end(&self, range: &Range<u64>) -> u64 {
        match self.before.size {
            Some(size @ 1..) if self.access == Access::Read => range.end.min(size),
            _ => range.end,
        }
    }

    /// Checks that a read which ended at `end` has reached the end of the file as it was opened.
    fn ends_at(&self, end: u64) -> std::result::Result<(), ErrorKind> {
        let now = self.now().map_err(|failed| reason(&failed))?;
        match self.is_same(&now) && now.size.is_none_or(|size| end >= size) {
            true => Ok(()),
            false => Err(ErrorKind::Changed),
        }
    }

    fn read(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64> {
        let (doing, inner) = (doing("read", &self.path), &self.store.inner);
        let (mut flow, end) = (ControlFlow::Continue(()), self.end(&range));
        let mut passed = |bytes: &[u8]| {
            flow = each(bytes);
            flow
        };
        let length = match range.start < end {
            true => {
                let (client, held, blocks) = (&inner.client, &inner.held, self.store.block());
                let file = Reading { client, handle: &self.handle, blocks, held };
                let read = file.read(range.start..end, &mut passed);
                doing.or(read.map_err(|failed| reason(&failed)))?
            }
            false => 0,
        };
        if flow.is_continue() && range.start + length < range.end {
            doing.or(self.ends_at(range.start + length))?;
        }
        Ok(length)
    }

    fn writable(&self) -> std::result::Result<(), ErrorKind> {
        if self.access == Access::Update { Ok(()) } else { Err(ErrorKind::ReadOnly) }
    }
}

impl Open for SftpOpen {
    fn found(&self) -> Result<Found> {
        let doing = doing("look at", &self.path);
        let now = doing.or(self.now().map_err(|failed| reason(&failed)))?;
        doing.or(self.store.of_entry(&self.path, &now))
    }

    fn is_unchanged(&self) -> Result<bool> {
        let now = self.now().map_err(|failed| reason(&failed));
        Ok(self.is_same(&doing("read", &self.path).or(now)?))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let (mut done, end) = (0, at.saturating_add(into.len() as u64));
        self.read(at..end, &mut |bytes| {
            into[done..done + bytes.len()].copy_from_slice(bytes);
            done += bytes.len();
            ControlFlow::Continue(())
        })?;
        Ok(done)
    }

    fn stream(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64> {
        self.read(range, each)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let doing = doing("write", &self.path);
        doing.or(self.writable())?;
        let (client, block) = (&self.store.inner.client, self.store.block());
        let (mut under_way, mut done) = (VecDeque::new(), Ok(()));
        for (number, data) in (0..).zip(bytes.chunks(block.write)) {
            if under_way.len() >= block.window(block.write)
                && let Some(first) = under_way.pop_front()
            {
                let ended = client.is_done(first);
                done = done.and(ended);
            }
            let offset = at + number * block.write as u64;
            let write = Request::Write { handle: self.handle.bytes(), offset, data };
            under_way.push_back(client.ask(&write));
        }
        // All answers are awaited, also after a failure.
        for ticket in under_way {
            let ended = client.is_done(ticket);
            done = done.and(ended);
        }
        doing.or(done.map_err(|failed| self.store.why_not_written(&failed)))
    }

    fn set_len(&self, length: u64) -> Result<()> {
        let doing = doing("set the length", &self.path);
        doing.or(self.writable())?;
        let attributes = Attributes { size: Some(length), ..Attributes::default() };
        let set = Request::FSetStat(self.handle.bytes(), attributes);
        let set = self.store.inner.client.done(&set);
        doing.or(set.map_err(|failed| self.store.why_not_written(&failed)))
    }

    fn sync(&self, _: SyncScope) -> Result<()> {
        let client = &self.store.inner.client;
        if self.access == Access::Read || !client.version().has(Extension::Sync) {
            return Ok(());
        }
        let synced = client.done(&Request::Sync(self.handle.bytes()));
        doing("sync", &self.path).or(synced.map_err(|failed| self.store.why_not_written(&failed)))
    }
}
