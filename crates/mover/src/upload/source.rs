//! Where the bytes of an upload come from.

use crate::census::{File, ServerId};
use crate::fetch::FetchError;
use hikyaku_remote::Seen;
use hikyaku_store::{
    ErrorKind, Extent, Fetcher, FetcherTraits, Open, Store, StoreError, StorePath,
};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The source of an upload.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A store of this machine. Holes of its files stay holes.
    Store(&'a dyn Store),
    /// The channels of any other source, by their numbers in the plan, and what connects to one again.
    Channels(&'a [Arc<dyn Fetcher>], Redial<'a>),
}

/// Connects again to a server of the source whose connection was lost.
type Redial<'a> = &'a (dyn Fn(ServerId) -> Option<Arc<dyn Fetcher>> + Sync);

/// A file of a store that is read.
pub(super) struct Reading<'a> {
    pub(super) file: &'a File,
    pub(super) open: &'a dyn Open,
}

impl Reading<'_> {
    /// Whether it is the file that was found, before it is read.
    pub(super) fn begin(&self) -> Result<(), FetchError> {
        let found = self.open.found().map_err(FetchError::Source)?;
        if Seen::from(&found) == self.file.seen { Ok(()) } else { Err(changed(self.file)) }
    }

    /// Its bytes that are not in holes.
    pub(super) fn data(&self) -> Result<u64, FetchError> {
        let found = self.open.found().map_err(FetchError::Source)?;
        Ok(found.allocated.min(self.file.seen.size))
    }

    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> Result<(), FetchError> {
        match self.open.read_at(at, into) {
            Ok(length) if length == into.len() => Ok(()),
            // A short read, or an error, of a file that was truncated meanwhile is a change.
            read => {
                self.check()?;
                Err(read.err().map_or_else(|| changed(self.file), FetchError::Source))
            }
        }
    }

    /// Whether the file is still the one that was found.
    pub(super) fn check(&self) -> Result<(), FetchError> {
        self.begin()?;
        let is_unchanged = self.open.is_unchanged().map_err(FetchError::Source)?;
        if is_unchanged { Ok(()) } else { Err(changed(self.file)) }
    }

    /// Data and holes of a range, which cover it.
    pub(super) fn extents(&self, range: Range<u64>) -> Result<Vec<Extent>, FetchError> {
        let extents = self.open.extents(range.clone()).map_err(FetchError::Source)?;
        let mut end = range.start;
        for extent in &extents {
            let (Extent::Data(part) | Extent::Hole(part)) = extent;
            if part.start != end {
                return Err(changed(self.file));
            }
            end = part.end;
        }
        if end == range.end { Ok(extents) } else { Err(changed(self.file)) }
    }
}

fn changed(file: &File) -> FetchError {
    unreadable(file, ErrorKind::Changed)
}

/// Why a file cannot be read.
pub(super) fn unreadable(file: &File, kind: ErrorKind) -> FetchError {
    FetchError::Source(StoreError::new("read", &StorePath::from(file.path.clone()), kind))
}

/// The channels of a source while files are read. A channel has no more calls at once than it may have.
pub(super) struct Channels<'a> {
    all: Mutex<Vec<Channel>>,
    freed: Condvar,
    redial: Redial<'a>,
}

struct Channel {
    /// `None` if its connection is lost for good.
    fetcher: Option<Arc<dyn Fetcher>>,
    calls: u32,
}

/// A call of a channel.
pub(super) struct Call<'a> {
    channels: &'a Channels<'a>,
    pub(super) server: ServerId,
    pub(super) fetcher: Arc<dyn Fetcher>,
}

/// How often a thread that waits for a call checks whether the call is still wanted.
const LOOK: Duration = Duration::from_millis(100);

impl<'a> Channels<'a> {
    pub(super) fn new(fetchers: &[Arc<dyn Fetcher>], redial: Redial<'a>) -> Self {
        let channel =
            |fetcher: &Arc<dyn Fetcher>| Channel { fetcher: Some(fetcher.clone()), calls: 0 };
        let all = Mutex::new(fetchers.iter().map(channel).collect());
        Self { all, freed: Condvar::new(), redial }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Channel>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The largest file that all channels fetch together with others.
    pub(super) fn small_bytes(&self) -> u64 {
        let all = self.all();
        let fetchers = all.iter().filter_map(|channel| channel.fetcher.as_ref());
        fetchers.map(|fetcher| fetcher.traits().small_bytes).min().unwrap_or(0)
    }

    /// A call to one of these servers, that with the fewest calls, once one may have another call.
    ///
    /// # Errors
    ///
    /// The connections of all these servers are lost, or the call is not wanted any more.
    pub(super) fn call(
        &self,
        at: &[ServerId],
        is_over: impl Fn() -> bool,
    ) -> Result<Call<'_>, FetchError> {
        let mut all = self.all();
        loop {
            let there = |server: &ServerId| {
                let channel = all.get(server.0)?;
                Some((*server, channel.calls, channel.fetcher.as_ref()?.traits()))
            };
            let is_free =
                |(_, calls, traits): &(_, u32, FetcherTraits)| *calls < traits.requests_max.max(1);
            let mut there: Vec<_> = at.iter().filter_map(there).collect();
            if there.is_empty() {
                return Err(FetchError::OutOfReach);
            }
            there.retain(is_free);
            if let Some((server, ..)) = there.into_iter().min_by_key(|(_, calls, _)| *calls)
                && let Some(channel) = all.get_mut(server.0)
                && let Some(fetcher) = channel.fetcher.clone()
            {
                channel.calls += 1;
                return Ok(Call { channels: self, server, fetcher });
            }
            if is_over() {
                return Err(FetchError::Stopped);
            }
            all = self.freed.wait_timeout(all, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Call<'_> {
    /// Connects to the server again, if the call failed because the channel was lost. If that fails, the channel stays
    /// lost.
    pub(super) fn lost(&self) {
        if self.fetcher.is_alive() {
            return;
        }
        let again = (self.channels.redial)(self.server);
        if let Some(channel) = self.channels.all().get_mut(self.server.0)
            && channel.fetcher.as_ref().is_some_and(|now| Arc::ptr_eq(now, &self.fetcher))
        {
            channel.fetcher = again;
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(channel) = self.channels.all().get_mut(self.server.0) {
            channel.calls -= 1;
        }
        self.channels.freed.notify_all();
    }
}
