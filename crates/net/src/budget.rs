//! A bound on what writers have given and the driver has not taken, over all streams of a connection.
//!
//! A stream may hold as much as is left for all: with `n` streams that cannot go on each holds `1 / (n + 1)` of the
//! budget, and a stream that can go on still finds as much (the dynamic thresholds of Choudhury and Hahne, 1998).

use crate::link::StreamLink;
use crate::outbox::Intent;
use crate::sync::{AtomicU64, SegQueue, fence};
use hikyaku_units::DataSize;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that a writer is expected to write when it is woken.
const WRITE_BYTES: u64 = 64 << 10;

pub(crate) struct Budget {
    most: u64,
    used: AtomicU64,
    /// Bytes of all streams that the driver has taken and the transport has not sent.
    ready: AtomicU64,
    /// Writers that wait, in turn.
    waiting: SegQueue<Arc<StreamLink>>,
}

impl Budget {
    pub(crate) fn new(most: DataSize) -> Self {
        Self {
            most: most.bytes().max(1),
            used: AtomicU64::new(0),
            ready: AtomicU64::new(0),
            waiting: SegQueue::new(),
        }
    }

    /// All there is.
    pub(crate) const fn most(&self) -> u64 {
        self.most
    }

    /// Bytes that are left for all streams.
    pub(crate) fn left(&self) -> u64 {
        self.most.saturating_sub(self.used.load(Ordering::Acquire))
    }

    /// The bytes from which the size of a piece is derived: those left here and in the transport, which takes one piece of
    /// each stream even if it is full.
    pub(crate) fn left_for_pieces(&self) -> u64 {
        self.left().min(self.most.saturating_sub(self.ready.load(Ordering::Acquire)))
    }

    /// The transport holds `bytes` that it has not sent.
    pub(crate) fn set_ready(&self, bytes: u64) {
        self.ready.store(bytes, Ordering::Release);
    }

    /// Whether a stream that holds `held` bytes may get more. One piece it may get whatever its size.
    pub(crate) fn has_room(&self, held: u64) -> bool {
        let left = self.left();
        left > 0 && (held == 0 || held < left)
    }

    /// A writer has given `bytes`.
    pub(crate) fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes as u64, Ordering::AcqRel);
    }

    /// The driver has taken `bytes`, or they are no more.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes as u64, Ordering::AcqRel);
    }

    /// The writer of `stream` waits for its turn.
    pub(crate) fn wait(&self, stream: &Arc<StreamLink>) {
        if !stream.waits.swap(true, Ordering::AcqRel) {
            self.waiting.push(stream.clone());
        }
        // The writer looks at the budget after this, the driver at the line after it has given back: one of them sees
        // what the other has done.
        fence(Ordering::SeqCst);
    }

    /// Wakes as many writers as there is room for, in turn: all of them if half of it is free, for a writer that is
    /// woken need not write.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        let left = self.left();
        let share = if left >= self.most / 2 { u64::MAX } else { left.div_ceil(WRITE_BYTES) };
        let mut count = share.min(self.waiting.len() as u64);
        while count > 0 {
            let Some(stream) = self.waiting.pop() else { return };
            stream.waits.swap(false, Ordering::AcqRel);
            if stream.outbox.intent() == Intent::Write {
                stream.outbox.wake();
                count -= 1;
            }
        }
    }
}
