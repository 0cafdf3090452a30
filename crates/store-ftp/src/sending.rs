//! An upload that is under way: a thread that sends the blocks of a draft to the server.

use crate::ftp::Ftp;
use hikyaku_gridftp::{FtpError, Mode, Part, Plan, Progress, Transferred, Upload, Wanted};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Blocks that wait to be sent: of 1 MiB each in most cases.
const WAITING_MAX: usize = 8;
/// Blocks that a server in extended block mode is asked to store before it has confirmed the first of them.
const UNDER_WAY_MAX: usize = 4;

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
                    let under_way = VecDeque::new();
                    let mut plan = Blocks { path: &path, connections, from, under_way };
                    channel.upload(&mut plan, &counted)
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

/// Blocks in any order, each a part.
struct Blocks<'p> {
    path: &'p [u8],
    connections: u32,
    from: Receiver<Block>,
    /// Sizes of the blocks that are not confirmed.
    under_way: VecDeque<usize>,
}

impl<'p> Plan<'p, Upload<'p>> for Blocks<'p> {
    fn next(&mut self, under_way: Option<&Progress>) -> Option<Wanted<'p, Upload<'p>>> {
        let block = match under_way {
            None => self.from.recv().ok(),
            Some(_) if self.under_way.len() >= UNDER_WAY_MAX => None,
            Some(_) => self.from.try_recv().ok(),
        };
        let (offset, bytes) = block?;
        self.under_way.push_back(bytes.len());
        let part = Part { path: self.path, offset, length: bytes.len() as u64 };
        let supply = move |at: u64, into: &mut [u8]| {
            let start = usize::try_from(at - offset).map_err(io::Error::other)?;
            into.copy_from_slice(&bytes[start..start + into.len()]);
            Ok(())
        };
        Some(Wanted { part, connections: self.connections, with: Arc::new(supply) })
    }

    fn done(&mut self, _: &Transferred) {
        self.under_way.pop_front();
    }
}
