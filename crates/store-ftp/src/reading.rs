//! How the channels of a store read files: the parameters of a command with options for them, and its observer.

use crate::fetcher::FtpFetcher;
use crate::ftp::Ftp;
use crate::steering::Steering;
use crate::tuning::Connections;
use hikyaku_gridftp::{FtpError, Transferred};
use hikyaku_store::{Fetcher, StorePath};
use hikyaku_transfer::Links;
use hikyaku_tuner::{Decision, Measured, Phase};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Small files that a channel requests before the first of them is complete.
pub(crate) const AHEAD: usize = 20;

/// How channels read files.
#[derive(Clone)]
pub struct Reading {
    /// Whether a link stands for the file to which it leads. Default: it is a special file, which is not read.
    pub links: Links,
    /// The data connections of a file. Default: tuned.
    pub connections: Connections,
    /// Small files that are requested before the first of them is complete. Default: 20.
    pub ahead: usize,
    /// Requests that are sent again. Default: none.
    pub retry: Retry,
    /// Receives the events of the channels.
    pub observer: Option<Arc<dyn Observer>>,
}

/// Requests that are sent again after a failure that may pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retry {
    /// The number of attempts that follow the first one. Bytes that have come begin a new count.
    pub attempts: u32,
    /// The time before each of them.
    pub interval: Duration,
}

/// Receives the events of channels that read files, and of uploads, from any thread.
pub trait Observer: Send + Sync {
    /// A chunk is complete: the tuner's decision, its bytes, and its transfer.
    fn chunk(&self, asked: &Decision, bytes: u64, done: &Transferred);

    /// A measurement of a tuned number of connections is complete, with what the rule was doing. Default: nothing.
    fn epoch(&self, _: &Measured, _: Phase) {}

    /// A request has failed, and is sent again.
    fn retries(&self, error: &FtpError);

    /// A file cannot be read or written; or the channel is lost, if there is no path.
    fn failed(&self, path: Option<&StorePath>, error: FtpError);
}

impl Default for Reading {
    fn default() -> Self {
        let (connections, retry) = (Connections::default(), Retry::default());
        Self { links: Links::Kept, connections, ahead: AHEAD, retry, observer: None }
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("links", &self.links).finish_non_exhaustive()
    }
}

impl Ftp {
    /// Channels that read files, each over a session of its own. They have their number of connections in common if it is tuned.
    pub fn readers(&self, count: usize, reading: &Reading) -> Vec<Arc<dyn Fetcher>> {
        let steering = Steering::of_downloads(&reading.connections);
        let fetcher = || {
            let steering = steering.clone();
            Arc::new(FtpFetcher::new(self, reading.clone(), steering)) as Arc<dyn Fetcher>
        };
        std::iter::repeat_with(fetcher).take(count).collect()
    }
}
