//! An open file: each read is a command of its own, and a stream is one command for the whole range.

use crate::convert::{found, reason};
use crate::ftp::Ftp;
use hikyaku_gridftp::{Channel, Facts, FtpError, Part};
use hikyaku_store::{Ability, Doing, ErrorKind, Found, Open, Result, StorePath, SyncScope, doing};
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Blocks of a stream that wait for the caller.
const BLOCKS_MAX: usize = 16;

/// A file that is open to be read.
pub(crate) struct FtpOpen {
    ftp: Ftp,
    path: StorePath,
    /// At the time when it was opened.
    facts: Facts,
}

impl FtpOpen {
    pub(crate) fn new(ftp: &Ftp, path: &StorePath, facts: Facts) -> Self {
        Self { ftp: ftp.clone(), path: path.clone(), facts }
    }

    fn doing(&self, what: &'static str) -> Doing<'_> {
        doing(what, &self.path)
    }

    fn size(&self) -> u64 {
        self.facts.size.unwrap_or(0)
    }

    /// Whether the path still has the file that was opened.
    fn check(&self, doing: Doing<'_>) -> Result<()> {
        let full = self.ftp.full(&self.path);
        match self.ftp.with(|channel| channel.facts(&full)) {
            Ok(Some(now)) if self.facts.is_unchanged(&now) => Ok(()),
            Ok(Some(_)) => doing.fail(ErrorKind::Changed),
            Ok(None) => doing.fail(ErrorKind::Gone),
            Err(error) => doing.fail(reason(&error)),
        }
    }
}

/// Reads a part of a file into a buffer of its length, over one connection.
pub(crate) fn read_part(
    channel: &mut Channel,
    (path, offset): (&[u8], u64),
    into: &mut [u8],
) -> std::result::Result<(), FtpError> {
    let part = Part { path, offset, length: into.len() as u64 };
    let into = Mutex::new(into);
    let store = |at: u64, bytes: &[u8]| {
        let start = usize::try_from(at - offset).map_err(io::Error::other)?;
        let mut into = into.lock().unwrap_or_else(PoisonError::into_inner);
        into[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    };
    channel.get(&part, 1, &AtomicU64::new(0), store).map(drop)
}

impl Open for FtpOpen {
    fn found(&self) -> Result<Found> {
        Ok(found(&self.facts, &self.path))
    }

    fn is_unchanged(&self) -> Result<bool> {
        match self.check(self.doing("look at")) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind, ErrorKind::Changed | ErrorKind::Gone) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let doing = self.doing("read");
        let left = usize::try_from(self.size().saturating_sub(at)).unwrap_or(usize::MAX);
        let length = into.len().min(left);
        if length == 0 {
            return Ok(0);
        }
        let full = self.ftp.full(&self.path);
        let read = self.ftp.with(|channel| read_part(channel, (&full, at), &mut into[..length]));
        // A server reads the file that has the path by now.
        self.check(doing)?;
        doing.or(read.map_err(|error| reason(&error)))?;
        Ok(length)
    }

    fn stream(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64> {
        let doing = self.doing("read");
        let range = range.start..range.end.min(self.size());
        if range.is_empty() {
            return Ok(0);
        }
        let full = self.ftp.full(&self.path);
        let part = Part { path: &full, offset: range.start, length: range.end - range.start };
        let (blocks, from) = sync_channel::<(u64, Vec<u8>)>(BLOCKS_MAX);
        let (read, passed) = thread::scope(|scope| {
            let transfer = scope.spawn(|| {
                let blocks = Mutex::new(blocks);
                // The caller has broken off if it does not take a block.
                let store = |at: u64, bytes: &[u8]| {
                    let blocks = blocks.lock().unwrap_or_else(PoisonError::into_inner);
                    let sent = blocks.send((at, bytes.to_vec()));
                    sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
                };
                self.ftp.with(|channel| channel.get(&part, 1, &AtomicU64::new(0), store))
            });
            let mut at = range.start;
            // One connection carries the blocks of a part in their order.
            for (offset, bytes) in from {
                if offset != at {
                    break;
                }
                at += bytes.len() as u64;
                if each(&bytes).is_break() {
                    return (None, at - range.start);
                }
            }
            let read = transfer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (Some(read), at - range.start)
        });
        match read {
            None => Ok(passed),
            Some(Ok(_)) if passed == range.end - range.start => Ok(passed),
            Some(read) => {
                self.check(doing)?;
                doing.fail(read.err().map_or(ErrorKind::Damaged, |error| reason(&error)))
            }
        }
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        self.doing("write").fail(ErrorKind::Unsupported(Ability::Update))
    }

    fn set_len(&self, _: u64) -> Result<()> {
        self.doing("set the length of").fail(ErrorKind::Unsupported(Ability::Update))
    }

    fn sync(&self, _: SyncScope) -> Result<()> {
        Ok(())
    }
}
