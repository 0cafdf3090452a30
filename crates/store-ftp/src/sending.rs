//! An upload that is under way: a thread that sends the blocks of a draft to the server, and sends again the bytes that
//! the server has not stored when a connection is lost.

mod blocks;
mod in_order;

use crate::ftp::Ftp;
use blocks::Blocks;
use hikyaku_gridftp::{FtpError, Mode};
use in_order::InOrder;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Blocks that wait to be sent: of 1 MiB each in most cases.
const WAITING_MAX: usize = 8;

/// Bytes at an offset of the file.
pub(crate) type Block = (u64, Vec<u8>);

/// Bytes that were taken over, and may have to be sent again.
#[derive(Clone)]
struct Piece {
    offset: u64,
    bytes: Arc<Vec<u8>>,
    /// The number of blocks in it.
    blocks: u64,
}

impl Piece {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn end(&self) -> u64 {
        self.offset + self.length()
    }
}

impl From<Block> for Piece {
    fn from((offset, bytes): Block) -> Self {
        Self { offset, bytes: Arc::new(bytes), blocks: 1 }
    }
}

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
    /// Begins an upload to `path`, over at most this number of data connections. In stream mode the blocks follow each other,
    /// from `offset` on.
    pub(crate) fn begin(ftp: &Ftp, path: Vec<u8>, offset: u64, connections_max: u32) -> Self {
        let (blocks, from) = sync_channel(WAITING_MAX);
        let (ftp, confirmed) = (ftp.clone(), Arc::<Confirmed>::default());
        let told = Arc::clone(&confirmed);
        let thread = thread::spawn(move || {
            let _slot = ftp.slot();
            let sent = match ftp.traits().mode {
                Mode::Stream => InOrder::new(from, offset).send(&ftp, &path),
                Mode::Extended => Blocks::new(&ftp, (&path, connections_max), from, &told).send(),
            };
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

/// The next block; `None` behind the last one.
fn next_of(from: &Receiver<Block>) -> Option<Piece> {
    from.recv().ok().map(Piece::from)
}
