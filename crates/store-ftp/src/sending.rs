//! An upload that is under way: a thread that sends the blocks of a draft to the server.

use crate::ftp::Ftp;
use hikyaku_gridftp::{FtpError, Mode, Part, Plan, Progress, Transferred, Upload, Wanted};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Blocks that wait to be sent: of 1 MiB each in most cases.
const WAITING_MAX: usize = 8;
/// Parts that a server in extended block mode is asked to store before it has confirmed the first of them.
const UNDER_WAY_MAX: usize = 4;
/// Bytes up to which waiting blocks are put together into a part. Parts under way and waiting blocks have up to 28 MiB: a path
/// carries the parts in a round trip.
const PART_BYTES_MAX: usize = 4 << 20;

/// Bytes at an offset of the file.
pub(crate) type Block = (u64, Vec<u8>);

/// The thread, and the way to it.
pub(crate) struct Sending {
    blocks: SyncSender<Block>,
    thread: JoinHandle<Result<(), FtpError>>,
    /// The number of blocks that were handed to the thread.
    pushed: u64,
    confirmed: Arc<Confirmed>,
}

/// The thread has ended before its time: its upload has failed.
pub(crate) struct Ended;

/// The blocks that the server has confirmed.
#[derive(Default)]
struct Confirmed {
    count: Mutex<Count>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Count {
    /// The number of confirmed blocks while the thread runs.
    Blocks(u64),
    /// The thread has ended.
    Over,
}

impl Default for Count {
    fn default() -> Self {
        Self::Blocks(0)
    }
}

impl Confirmed {
    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, blocks: u64) {
        if let Count::Blocks(count) = &mut *self.count() {
            *count += blocks;
        }
        self.changed.notify_all();
    }

    fn end(&self) {
        *self.count() = Count::Over;
        self.changed.notify_all();
    }
}

/// All blocks that were handed to a thread before.
pub(crate) struct Mark {
    pushed: u64,
    confirmed: Arc<Confirmed>,
}

impl Mark {
    /// Waits until the server has confirmed them.
    ///
    /// # Errors
    /// The thread has ended before.
    pub(crate) fn wait(self) -> Result<(), Ended> {
        let is_missing =
            |count: &mut Count| matches!(*count, Count::Blocks(count) if count < self.pushed);
        let count = self.confirmed.changed.wait_while(self.confirmed.count(), is_missing);
        match *count.unwrap_or_else(PoisonError::into_inner) {
            Count::Blocks(_) => Ok(()),
            Count::Over => Err(Ended),
        }
    }
}

impl Sending {
    /// Begins an upload to `path`. In stream mode the blocks follow each other, from `offset` on.
    pub(crate) fn begin(ftp: &Ftp, path: Vec<u8>, offset: u64, connections: u32) -> Self {
        let (blocks, from) = sync_channel(WAITING_MAX);
        let (ftp, confirmed) = (ftp.clone(), Arc::<Confirmed>::default());
        let told = Arc::clone(&confirmed);
        let thread = thread::spawn(move || {
            let counted = AtomicU64::new(0);
            let sent = ftp.with(|channel| match channel.mode() {
                Mode::Stream => channel.put_blocks((&path, offset), &counted, &mut || {
                    Ok(from.recv().ok().map(|(_, bytes)| bytes))
                }),
                Mode::Extended => {
                    let mut blocks = Blocks::new((&path, connections), from, &told);
                    channel.upload(&mut blocks, &counted)
                }
            });
            told.end();
            sent
        });
        Self { blocks, thread, pushed: 0, confirmed }
    }

    /// Hands a block to the thread. Waits while too many of them wait.
    pub(crate) fn push(&mut self, block: Block) -> Result<(), Ended> {
        self.pushed += 1;
        self.blocks.send(block).map_err(|_| Ended)
    }

    /// All blocks up to now.
    pub(crate) fn mark(&self) -> Mark {
        Mark { pushed: self.pushed, confirmed: Arc::clone(&self.confirmed) }
    }

    /// Waits until the server has confirmed all blocks.
    pub(crate) fn finish(self) -> Result<(), FtpError> {
        drop(self.blocks);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Blocks in any order. Those that wait and follow each other are one part.
struct Blocks<'p> {
    path: &'p [u8],
    connections: u32,
    from: Receiver<Block>,
    /// A block that was received and does not follow the last one.
    next: Option<Block>,
    /// The number of blocks in each part that is not confirmed.
    under_way: VecDeque<u64>,
    confirmed: &'p Confirmed,
}

impl<'p> Blocks<'p> {
    const fn new(
        (path, connections): (&'p [u8], u32),
        from: Receiver<Block>,
        confirmed: &'p Confirmed,
    ) -> Self {
        Self { path, connections, from, next: None, under_way: VecDeque::new(), confirmed }
    }
}

impl<'p> Plan<'p, Upload<'p>> for Blocks<'p> {
    fn next(&mut self, under_way: Option<&Progress>) -> Option<Wanted<'p, Upload<'p>>> {
        if under_way.is_some() && self.under_way.len() >= UNDER_WAY_MAX {
            return None;
        }
        let block = self.next.take().or_else(|| match under_way {
            None => self.from.recv().ok(),
            Some(_) => self.from.try_recv().ok(),
        });
        let ((offset, mut bytes), mut blocks) = (block?, 1);
        while bytes.len() < PART_BYTES_MAX
            && let Ok((at, more)) = self.from.try_recv()
        {
            if at != offset + bytes.len() as u64 {
                self.next = Some((at, more));
                break;
            }
            bytes.extend_from_slice(&more);
            blocks += 1;
        }
        self.under_way.push_back(blocks);
        let part = Part { path: self.path, offset, length: bytes.len() as u64 };
        let supply = move |at: u64, into: &mut [u8]| {
            let start = usize::try_from(at - offset).map_err(io::Error::other)?;
            into.copy_from_slice(&bytes[start..start + into.len()]);
            Ok(())
        };
        Some(Wanted { part, connections: self.connections, with: Arc::new(supply) })
    }

    fn done(&mut self, _: &Transferred) {
        self.confirmed.add(self.under_way.pop_front().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_blocks_that_follow_each_other_are_one_part() {
        const BLOCK: usize = PART_BYTES_MAX / 4;
        let (blocks, from) = sync_channel(16);
        for number in [0, 1, 2, 3, 4, 5, 9, 7] {
            blocks.send((number * BLOCK as u64, vec![number as u8; BLOCK])).unwrap();
        }
        drop(blocks);
        let confirmed = Confirmed::default();
        let mut plan = Blocks::new((b"/f", 4), from, &confirmed);
        let mut parts = Vec::new();
        while let Some(Wanted { part, with, .. }) = plan.next(None) {
            let mut last = [0];
            with(part.offset + part.length - 1, &mut last).unwrap();
            assert_eq!(u64::from(last[0]), (part.offset + part.length - 1) / BLOCK as u64);
            parts.push((part.offset / BLOCK as u64, part.length / BLOCK as u64));
        }
        assert_eq!(parts, [(0, 4), (4, 2), (9, 1), (7, 1)]);
    }
}
