//! How the drafts of a store are written: the parameters of a command with options for them, its observer, and commands and
//! blocks that are sent again.

use crate::ftp::Ftp;
use crate::reading::{AHEAD, Observer, Retry};
use crate::tuning::Connections;
use hikyaku_gridftp::{Channel, FtpError};
use hikyaku_store::{ErrorKind, StorePath};
use hikyaku_transfer::Links;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// How often a wait checks whether the user has stopped the transfer.
const LOOK: Duration = Duration::from_millis(100);

/// How drafts are written.
#[derive(Clone)]
pub struct Writing {
    /// The data connections of a file. Default: tuned.
    pub connections: Connections,
    /// Small files that are sent before the first of them is confirmed. Default: 20.
    pub ahead: usize,
    /// Commands about drafts, and blocks that were not confirmed, that are sent again. Default: none.
    pub retry: Retry,
    /// Receives the events of uploads.
    pub observer: Option<Arc<dyn Observer>>,
    /// A condition for each file before it gets its name. Default: none.
    pub condition: Option<Arc<dyn Condition>>,
    /// Whether a link at a target stands for the file to which it leads, so that a file takes its place. Default: it is a special file,
    /// which stays as it is.
    pub links: Links,
    /// The permission bits of new files and directories. Default: those that the caller names.
    pub modes: NewModes,
    /// Whether the caller has looked at the names of new files. Default: it has not.
    pub names: Names,
}

/// The permission bits of new files and directories.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NewModes {
    /// Those that the caller names are set.
    #[default]
    Named,
    /// The server chooses them.
    OfServer,
}

/// The check of the names of new files, and of their directories: a rename would put a file in the place of a device or FIFO.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Names {
    /// The store looks at each before it is made.
    #[default]
    Unknown,
    /// The caller has looked at all of them shortly before.
    Looked,
}

/// Asks the server for the checksum of a stored file by an algorithm (CKSM, GFD.047), in hexadecimal digits.
pub type Sum<'s> = dyn FnMut(&str) -> Result<String, FtpError> + 's;

/// A condition for a file that the server has stored, before it gets its name.
pub trait Condition: Send + Sync {
    /// Whether the file of this size for `path` may get its name. `sum` asks the server for its checksum.
    ///
    /// # Errors
    ///
    /// It may not, for this reason.
    fn check(&self, path: &StorePath, size: u64, sum: &mut Sum<'_>) -> Result<(), ErrorKind>;
}

impl Default for Writing {
    fn default() -> Self {
        let (connections, retry) = (Connections::default(), Retry::default());
        let (links, modes, names) = (Links::Kept, NewModes::default(), Names::default());
        let (observer, condition) = (None, None);
        Self { connections, ahead: AHEAD, retry, observer, condition, links, modes, names }
    }
}

impl fmt::Debug for Writing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writing").field("connections", &self.connections).finish_non_exhaustive()
    }
}

/// The attempts that are left after a failure.
pub(crate) struct Attempts<'f> {
    ftp: &'f Ftp,
    left: u32,
}

impl Attempts<'_> {
    /// Something has succeeded: a new count begins.
    pub(crate) fn renew(&mut self) {
        self.left = self.ftp.writing().retry.attempts;
    }

    /// Waits before another attempt.
    ///
    /// # Errors
    ///
    /// The error, if none is left or it does not pass.
    pub(crate) fn after(&mut self, error: FtpError) -> Result<(), FtpError> {
        let (retry, stop) = (self.ftp.writing().retry, &self.ftp.settings().stop);
        if self.left == 0 || !error.may_pass() || stop.load(Ordering::Relaxed) {
            return Err(error);
        }
        self.left -= 1;
        self.ftp.observed(|observer| observer.retries(&error));
        let begin = Instant::now();
        while begin.elapsed() < retry.interval {
            if stop.load(Ordering::Relaxed) {
                return Err(FtpError::Stopped);
            }
            thread::sleep(LOOK.min(retry.interval.saturating_sub(begin.elapsed())));
        }
        Ok(())
    }
}

impl Ftp {
    /// Attempts of something that has not failed yet.
    pub(crate) fn attempts(&self) -> Attempts<'_> {
        Attempts { ftp: self, left: self.writing().retry.attempts }
    }

    /// Does something in a session, and again after failures that may pass.
    pub(crate) fn with_retries<T>(
        &self,
        mut what: impl FnMut(&mut Channel) -> Result<T, FtpError>,
    ) -> Result<T, FtpError> {
        let mut attempts = self.attempts();
        loop {
            match self.with(&mut what) {
                Err(error) => attempts.after(error)?,
                done => return done,
            }
        }
    }

    /// Calls the observer of writes.
    pub(crate) fn observed(&self, tell: impl FnOnce(&dyn Observer)) {
        if let Some(observer) = self.writing().observer.as_deref() {
            tell(observer);
        }
    }

    /// The reason why a file at a path cannot be written. The observer receives the failure.
    pub(crate) fn refused(&self, path: &StorePath, error: FtpError) -> ErrorKind {
        let kind = self.why(path, &error);
        self.observed(|observer| observer.failed(Some(path), error));
        kind
    }
}
