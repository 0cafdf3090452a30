//! A file that arrives in order, and whose length is not known before its end.

use super::{Receiver, SMALL, Stopped};
use crate::disk::{Job, Poured};
use crate::error::PairError;
use hikyaku_fs::{FsError, Zeros};
use hikyaku_transfer::{Entry, EntryId, FileHash, Pass};
use std::sync::Arc;

/// The one that is under way.
pub(super) struct Pouring {
    id: EntryId,
    /// Nothing, if it could not be made or is not wanted: what comes of it is passed over.
    open: Option<Open>,
}

struct Open {
    poured: Poured,
    all: blake3::Hasher,
}

impl Receiver<'_> {
    pub(super) fn begin_stream(&mut self, entry: &Entry) -> Result<(), Stopped> {
        if self.pouring.is_some() || self.disk.options.rules.pass == Pass::DryRun {
            return Err(self
                .disk
                .fault
                .report(PairError::ended("the sender begins a stream out of place")));
        }
        self.disk.meter.set_spent();
        let open = self.open_stream(entry)?;
        self.pouring = Some(Pouring { id: entry.id, open });
        Ok(())
    }

    fn open_stream(&mut self, entry: &Entry) -> Result<Option<Open>, Stopped> {
        let Some(path) = self.free_place(entry)? else { return Ok(None) };
        self.disk.pending.add();
        let plan = match self.plan(entry, &path, 0) {
            Ok(Some(plan)) => plan,
            Ok(None) => {
                self.leave(0)?;
                return Ok(None);
            }
            Err(error) => {
                self.disk.fail(path.as_bytes(), &error);
                return Ok(None);
            }
        };
        let slot = self.slot()?;
        match self.disk.create(&plan, self.landing.take_stream()) {
            Ok(draft) => {
                let draft = Arc::new(draft);
                let hash = FileHash([0; 32]);
                let poured = Poured { plan, draft, size: 0, hash, slot };
                Ok(Some(Open { poured, all: blake3::Hasher::new() }))
            }
            Err(error) => {
                self.disk.fail(path.as_bytes(), &error);
                Ok(None)
            }
        }
    }

    pub(super) fn piece(
        &mut self,
        id: EntryId,
        hash: FileHash,
        bytes: &[u8],
    ) -> Result<(), Stopped> {
        let fault = self.disk.fault;
        if bytes.is_empty() || bytes.len() as u64 > SMALL {
            return Err(fault.report(PairError::ended("a piece of a stream that is none")));
        }
        let Some(Pouring { open, .. }) = self.pouring.as_mut().filter(|p| p.id == id) else {
            return Ok(());
        };
        let Some(Open { poured, all }) = open else { return Ok(()) };
        if blake3::hash(bytes).as_bytes() != &hash.0 {
            let shown = poured.plan.path.shown();
            return Err(fault
                .report(PairError::ended(format_args!("{shown}: not the bytes that were sent"))));
        }
        all.update(bytes);
        match write(poured, bytes) {
            Ok(()) => {
                poured.size += bytes.len() as u64;
                self.disk.meter.add_bytes(bytes.len() as u64);
            }
            Err(error) => {
                let path = poured.plan.path.clone();
                // It goes with its unfinished file.
                *open = None;
                self.disk.fail(path.as_bytes(), &error);
            }
        }
        Ok(())
    }

    // spec: copy-stream-1
    pub(super) fn end_stream(
        &mut self,
        id: EntryId,
        size: u64,
        hash: FileHash,
    ) -> Result<(), Stopped> {
        let Some(Pouring { open, .. }) = self.pouring.take_if(|pouring| pouring.id == id) else {
            return Ok(());
        };
        let Some(Open { mut poured, all }) = open else { return Ok(()) };
        if (size, hash.0) != (poured.size, *all.finalize().as_bytes()) {
            let shown = poured.plan.path.shown();
            return Err(self.disk.fault.report(PairError::ended(format_args!(
                "{shown}: not all of the bytes that were sent"
            ))));
        }
        poured.hash = hash;
        // The pool lives as long as this thread.
        let _ = self.jobs.send(Job::Poured(poured));
        Ok(())
    }

    /// It could not be read to its end: what has come of it is void.
    pub(super) fn drop_stream(&mut self, id: Option<EntryId>) {
        if let Some(Pouring { open: Some(_), .. }) =
            self.pouring.take_if(|pouring| Some(pouring.id) == id)
        {
            self.disk.pending.done();
        }
    }
}

fn write(Poured { draft, size, .. }: &Poured, bytes: &[u8]) -> Result<(), FsError> {
    draft.write_at(*size, bytes, Zeros::Written)
}
