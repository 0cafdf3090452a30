//! An upload that is under way: a thread that sends the blocks of a draft to the server.

use crate::ftp::Ftp;
use hikyaku_gridftp::{FtpError, Mode, Part, Plan, Progress, Transferred, Upload, Wanted};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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
}

/// The thread has ended before its time: its upload has failed.
pub(crate) struct Ended;

impl Sending {
    /// Begins an upload to `path`. In stream mode the blocks follow each other, from `offset` on.
    pub(crate) fn begin(ftp: &Ftp, path: Vec<u8>, offset: u64, connections: u32) -> Self {
        let (blocks, from) = sync_channel(WAITING_MAX);
        let ftp = ftp.clone();
        let thread = thread::spawn(move || {
            let counted = AtomicU64::new(0);
            ftp.with(|channel| match channel.mode() {
                Mode::Stream => channel.put_blocks((&path, offset), &counted, &mut || {
                    Ok(from.recv().ok().map(|(_, bytes)| bytes))
                }),
                Mode::Extended => {
                    channel.upload(&mut Blocks::new(&path, connections, from), &counted)
                }
            })
        });
        Self { blocks, thread }
    }

    /// Hands a block to the thread. Waits while too many of them wait.
    pub(crate) fn push(&self, block: Block) -> Result<(), Ended> {
        self.blocks.send(block).map_err(|_| Ended)
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
    /// The number of parts that are not confirmed.
    under_way: usize,
}

impl<'p> Blocks<'p> {
    const fn new(path: &'p [u8], connections: u32, from: Receiver<Block>) -> Self {
        Self { path, connections, from, next: None, under_way: 0 }
    }
}

impl<'p> Plan<'p, Upload<'p>> for Blocks<'p> {
    fn next(&mut self, under_way: Option<&Progress>) -> Option<Wanted<'p, Upload<'p>>> {
        if under_way.is_some() && self.under_way >= UNDER_WAY_MAX {
            return None;
        }
        let block = self.next.take().or_else(|| match under_way {
            None => self.from.recv().ok(),
            Some(_) => self.from.try_recv().ok(),
        });
        let (offset, mut bytes) = block?;
        while bytes.len() < PART_BYTES_MAX
            && let Ok((at, more)) = self.from.try_recv()
        {
            if at != offset + bytes.len() as u64 {
                self.next = Some((at, more));
                break;
            }
            bytes.extend_from_slice(&more);
        }
        self.under_way += 1;
        let part = Part { path: self.path, offset, length: bytes.len() as u64 };
        let supply = move |at: u64, into: &mut [u8]| {
            let start = usize::try_from(at - offset).map_err(io::Error::other)?;
            into.copy_from_slice(&bytes[start..start + into.len()]);
            Ok(())
        };
        Some(Wanted { part, connections: self.connections, with: Arc::new(supply) })
    }

    fn done(&mut self, _: &Transferred) {
        self.under_way -= 1;
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
        let mut plan = Blocks::new(b"/f", 4, from);
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
