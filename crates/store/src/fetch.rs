//! Channels of requests for bytes of files: what a scheduler distributes work over.

mod heads;
mod paced;
mod segments;
mod stored;

pub use heads::{Asked, Heads, Incomplete};
pub use paced::Paced;
pub use segments::Segments;
pub use stored::{fetcher, fetcher_by_file, fetcher_of_files, fetchers};

use crate::abilities::Latency;
use crate::error::ErrorKind;
use crate::found::Time;
use crate::path::StorePath;
use crate::walk::ContentToken;
use hikyaku_transfer::{SegmentHash, SegmentIndex};
use hikyaku_units::Rate;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A channel of requests for bytes: a daemon, a node of a Gfarm file system, a connection to a web server or a bucket. Calls
/// block. At most [`FetcherTraits::requests_max`] threads call at once.
pub trait Fetcher: Send + Sync {
    /// How a scheduler uses the channel.
    fn traits(&self) -> FetcherTraits;

    /// Fetches ranges of a file. `arrived` is called with the number of bytes as they come, `each` with every segment that is
    /// right. Returns the number of segments that came damaged. After a cut, `each` gets the segments before it, and the call
    /// succeeds.
    ///
    /// # Errors
    ///
    /// The file cannot be read, has another version than the wanted one, or the channel is lost.
    fn ranges(
        &self,
        file: &Wanted,
        asked: &Asked<'_>,
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(Segment<'_>),
    ) -> Result<usize, FetchError>;

    /// The holes in a file, in order: their bytes are zeros and need not be fetched. They begin and end as segments do. Default:
    /// none is known.
    ///
    /// # Errors
    ///
    /// Those of [`Fetcher::ranges`].
    fn holes(&self, _file: &Wanted) -> Result<Vec<Range<u64>>, FetchError> {
        Ok(Vec::new())
    }

    /// Fetches small files whole: `each` is called once for every file, with its index and its content or the error. After a
    /// cut it is not called for files behind the cut, and the call succeeds.
    ///
    /// # Errors
    ///
    /// The channel is lost.
    fn small(
        &self,
        files: &[&Wanted],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), FetchError>;

    /// Limits the rate of the bytes that come. The sender keeps to it, or this end reads no faster.
    fn limit(&self, rate: Option<Rate>);

    /// The round-trip time, measured now or before.
    fn round_trip(&self) -> Duration;

    /// Whether its bytes come through a network. Default: they do.
    fn latency(&self) -> Latency {
        Latency::RoundTrip
    }

    /// The round-trip time of the request under way, queues included; `None` if it is not known.
    fn latest_round_trip(&self) -> Option<Duration> {
        None
    }

    /// The time for which its requests have waited for a limit of this end's rate. Default: none is known.
    fn paused(&self) -> Duration {
        Duration::ZERO
    }

    /// The number of connections to its server that an earlier transfer has held without a queue on the path. Default: none is known.
    fn held_before(&self) -> Option<u32> {
        None
    }

    /// Notes that a transfer has held this number of connections to its server without a queue; `None`: a queue stood.
    fn note_held(&self, _: Option<u32>) {}

    /// Whether the other end answers. May wait for it.
    fn is_alive(&self) -> bool;

    /// Nothing is requested until the next call: the channel may close what a new request opens again.
    fn rest(&self) {}

    /// Ends its requests; the channel cannot be used any more. The other end gets the text `why` if the protocol can carry it.
    fn close(&self, why: &str);
}

/// How a scheduler uses a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetcherTraits {
    /// Requests that may be under way at once.
    pub requests_max: u32,
    /// Bytes of one request for a large file: from a request's fixed cost, and from what the service accepts. `None` if the
    /// scheduler chooses freely. With [`FetcherTraits::WHOLE_FILE`] a file is one request, so that its bytes come in order.
    pub request_bytes: Option<u64>,
    /// The largest file that is fetched by [`Fetcher::small`]; 0 if each file is a request of its own.
    pub small_bytes: u64,
    /// The cost of cutting a request.
    pub cutting: Cutting,
    /// The choice of the number of connections to its server.
    pub connections: ConnectionCount,
    /// Whether a range may begin within a segment.
    pub begins: Begins,
}

impl FetcherTraits {
    /// The bytes of a request for a file of any size.
    pub const WHOLE_FILE: u64 = u64::MAX;
}

/// The first byte of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begins {
    /// Any, so that the rest of a segment can be requested. The channel uses the heads of a request ([`Asked::heads`]).
    Anywhere,
    /// The first one of a segment: the other end proves whole segments.
    WithSegment,
}

/// The choice of the number of connections to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionCount {
    /// The channel.
    Own,
    /// Its user: the channel is one connection, and as many of them are used as bring more.
    Tuned,
}

/// The cost of ending a request early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cutting {
    /// Nothing: a message to the sender ends it.
    Free,
    /// The connection: the rest of the answer would come.
    ClosesConnection,
    /// A request runs to its end.
    Never,
}

/// A file that is fetched, as a walk has found it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Its path.
    pub path: StorePath,
    /// Its size.
    pub size: u64,
    /// Its modification time.
    pub modified: Time,
    /// Its content, if the walk knows it. A file with another content is refused as `Changed`.
    pub content: Option<ContentToken>,
}

/// A segment of a file whose bytes are right, as far as the channel can prove it.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Its number in the file.
    pub index: SegmentIndex,
    /// The hash of its bytes.
    pub hash: SegmentHash,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FetchError {
    /// The file cannot be read; other files can.
    #[error("{0}")]
    File(ErrorKind),
    /// The server accepts no further connection for the time being. It goes on with those that it has.
    #[error("the server accepts no further connection")]
    Full,
    /// The channel is lost, and what was requested over it has to come by another one.
    #[error("{0}")]
    Lost(String),
}

/// Ends a request early, from another thread.
#[derive(Default)]
pub struct Cut {
    state: Mutex<CutState>,
}

#[derive(Default)]
struct CutState {
    at: Option<u64>,
    hook: Option<Hook>,
}

/// Sends a cut to the sender.
type Hook = Box<dyn Fn(u64) + Send>;

impl Cut {
    /// Bytes from `from` on, counted over all ranges or files of the request, are not wanted.
    pub fn at(&self, from: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.at = Some(state.at.map_or(from, |at| at.min(from)));
        if let Some(hook) = &state.hook {
            hook(from);
        }
    }

    /// Whether a cut ends a request after its first `done` bytes.
    pub fn is_reached(&self, done: u64) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.at.is_some_and(|at| done >= at)
    }

    /// Calls `hook` for each cut, at once if there was one before. A fetcher whose sender
    /// accepts cuts uses it. The hook must not wait.
    pub fn on_cut(&self, hook: impl Fn(u64) + Send + 'static) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = state.at {
            hook(at);
        }
        state.hook = Some(Box::new(hook));
    }
}

impl fmt::Debug for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.state.lock().unwrap_or_else(PoisonError::into_inner).at;
        f.debug_struct("Cut").field("at", &at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
