//! Where the bytes of an upload come from.

use crate::census::{File, ServerId};
use crate::fetch::{FetchError, Redial};
use hikyaku_store::{ErrorKind, Fetcher, FetcherTraits, StoreError, StorePath};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The source of an upload.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Its channels, by their numbers in the plan.
    pub channels: &'a [Arc<dyn Fetcher>],
    /// Connects to a channel again whose connection was lost.
    pub redial: Redial<'a>,
    /// The servers that the meter of the upload has.
    pub counted: Counted,
}

/// The servers that a meter counts bytes for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Those of the source, by the bytes that come.
    Source,
    /// Those of the target, by the bytes that they have written.
    Target,
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
