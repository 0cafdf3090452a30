//! A file that is read only as long as its client wants it. What is computed of it, such as a window of a picture, ends soon after the
//! client has gone or has cut its request, because the next read fails.

use hikyaku_store::{ErrorKind, Extent, Found, Open, Result, StoreError, StorePath, SyncScope};
use std::ops::{ControlFlow, Range};

/// See the head of this file.
pub(super) struct WhileWanted<'a> {
    pub(super) inner: &'a dyn Open,
    pub(super) is_wanted: &'a (dyn Fn() -> bool + Send + Sync),
}

impl WhileWanted<'_> {
    fn check(&self) -> Result<()> {
        match (self.is_wanted)() {
            true => Ok(()),
            false => Err(StoreError::new("read", &StorePath::ROOT, ErrorKind::Gone)),
        }
    }
}

impl Open for WhileWanted<'_> {
    fn is_unchanged(&self) -> Result<bool> {
        self.inner.is_unchanged()
    }

    fn found(&self) -> Result<Found> {
        self.inner.found()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.check()?;
        self.inner.read_at(at, into)
    }

    fn stream(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64> {
        self.check()?;
        self.inner.stream(range, &mut |bytes| match (self.is_wanted)() {
            true => each(bytes),
            false => ControlFlow::Break(()),
        })
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write_at(at, bytes)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.inner.set_len(length)
    }

    fn extents(&self, range: Range<u64>) -> Result<Vec<Extent>> {
        self.check()?;
        self.inner.extents(range)
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.inner.sync(scope)
    }
}
