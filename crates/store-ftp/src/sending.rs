//! An upload that is under way: a thread that sends the blocks of a draft to the server, and sends again the bytes that
//! the server has not stored when a connection is lost.

mod blocks;
mod in_order;

use crate::ftp::Ftp;
use blocks::Blocks;
use hikyaku_gridftp::{FtpError, Mode};
use in_order::InOrder;
use std::collections::BTreeSet;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Blocks that wait to be sent: of 1 MiB each in most cases.
const WAITING_MAX: usize = 8;

/// Bytes at an offset of the file.
struct Block {
    /// Its number among the blocks of the upload, from 0.
    number: u64,
    offset: u64,
    bytes: Vec<u8>,
}

/// Bytes that were taken over, and may have to be sent again.
#[derive(Clone)]
struct Piece {
    offset: u64,
    bytes: Arc<Vec<u8>>,
    /// The numbers of its blocks.
    numbers: Vec<u64>,
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
    fn from(Block { number, offset, bytes }: Block) -> Self {
        Self { offset, bytes: Arc::new(bytes), numbers: vec![number] }
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

enum Count {
    /// The thread runs.
    Blocks(Known),
    /// The thread has ended.
    Over,
}

/// The confirmed blocks of a thread that runs.
#[derive(Default)]
struct Known {
    /// All blocks with lower numbers are confirmed.
    below: u64,
    /// Other confirmed ones. Blocks are sent in any order.
    others: BTreeSet<u64>,
    /// The confirmation of all blocks with lower numbers is awaited.
    awaited: u64,
}

impl Default for Count {
    fn default() -> Self {
        Self::Blocks(Known::default())
    }
}

impl Confirmed {
    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The confirmation of all blocks with lower numbers is awaited.
    fn awaited(&self) -> u64 {
        match &*self.count() {
            Count::Blocks(known) => known.awaited,
            Count::Over => 0,
        }
    }

    fn add(&self, numbers: Vec<u64>) {
        if let Count::Blocks(known) = &mut *self.count() {
            known.others.extend(numbers);
            while known.others.remove(&known.below) {
                known.below += 1;
            }
        }
        self.changed.notify_all();
    }

    fn end(&self) {
        *self.count() = Count::Over;
        self.changed.notify_all();
    }

    /// Waits until all blocks with lower numbers are confirmed.
    fn wait(&self, number: u64) -> Result<(), Ended> {
        let mut count = self.count();
        if let Count::Blocks(known) = &mut *count {
            known.awaited = known.awaited.max(number);
        }
        let is_missing =
            |count: &mut Count| matches!(count, Count::Blocks(known) if known.below < number);
        let count = self.changed.wait_while(count, is_missing);
        match *count.unwrap_or_else(PoisonError::into_inner) {
            Count::Blocks(_) => Ok(()),
            Count::Over => Err(Ended),
        }
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
        self.confirmed.wait(self.pushed)
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

    /// Hands the bytes at an offset to the thread. Waits while too many blocks wait.
    pub(crate) fn push(&mut self, offset: u64, bytes: Vec<u8>) -> Result<(), Ended> {
        let block = Block { number: self.pushed, offset, bytes };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_confirmed_in_any_order_are_awaited_one_by_one() {
        let confirmed = Arc::<Confirmed>::default();
        confirmed.add(vec![1, 3]);
        let mark = Mark { pushed: 3, confirmed: Arc::clone(&confirmed) };
        let waits = thread::spawn(move || mark.wait().is_ok());
        while confirmed.awaited() < 3 {
            thread::yield_now();
        }
        // Three blocks are confirmed, and of the first three one is not.
        confirmed.add(vec![0]);
        assert!(matches!(&*confirmed.count(), Count::Blocks(known) if known.below == 2));
        assert!(!waits.is_finished());
        confirmed.add(vec![2]);
        assert!(waits.join().unwrap());
        assert!(matches!(&*confirmed.count(), Count::Blocks(known) if known.below == 4));
        confirmed.end();
        assert!(confirmed.wait(0).is_err());
    }
}
