//! The way of a stream's bytes from the driver to the application.
//!
//! The queue needs no bound of its own: the peer may send only what flow control gave it, and
//! credit comes back when the application has taken bytes, not when they have arrived here. How many
//! small pieces they are the driver counts.

use crate::sync::{AtomicU64, AtomicWaker, SegQueue};
use hikyaku_proto::{CloseReason, Delivery};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// An item of a stream. Parts come first, then one of the others.
pub(crate) enum Item {
    /// Bytes.
    Part(Delivery),
    /// All bytes have come.
    End,
    /// The peer gave up, with this code.
    Reset(u64),
    /// The connection ended before the stream.
    Lost(CloseReason),
}

/// Whether the bytes that an application has taken should be reported to the transport now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Later,
    Due,
}

/// A queue of items, one writer and one reader.
#[derive(Default)]
pub(crate) struct Inbox {
    items: SegQueue<Item>,
    waker: AtomicWaker,
    taken: AtomicU64,
    /// How much of that the transport knows of, and how much more may be taken before it should.
    told: AtomicU64,
    step: AtomicU64,
    /// Zero, or one more than the code with which the application wants no more.
    stop: AtomicU64,
}

impl Inbox {
    pub(crate) fn push(&self, item: Item) {
        self.items.push(item);
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<Item> {
        if let Some(item) = self.items.pop() {
            return Poll::Ready(item);
        }
        self.waker.register(context.waker());
        self.items.pop().map_or(Poll::Pending, Poll::Ready)
    }

    /// The application took `bytes`. Returns whether that should be reported to the transport.
    pub(crate) fn take(&self, bytes: u64) -> Told {
        let taken = self.taken.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let untold = taken.saturating_sub(self.told.load(Ordering::Acquire));
        if untold >= self.step.load(Ordering::Acquire) { Told::Due } else { Told::Later }
    }

    /// The transport has a report of `taken` bytes, and should get the next one after `step` more.
    pub(crate) fn set_told(&self, taken: u64, step: u64) {
        self.told.store(taken, Ordering::Release);
        self.step.store(step, Ordering::Release);
    }

    /// Sum of the bytes that the application has taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }

    /// The application wants no more.
    pub(crate) fn set_stop(&self, code: u64) {
        self.stop.store(code.saturating_add(1), Ordering::Release);
    }

    pub(crate) fn stop(&self) -> Option<u64> {
        self.stop.load(Ordering::Acquire).checked_sub(1)
    }

    /// Releases all parts that no reader will take, and passes the length of each to `let_go`.
    pub(crate) fn clear(&self, mut let_go: impl FnMut(usize)) {
        while let Some(item) = self.items.pop() {
            if let Item::Part(part) = item {
                let_go(part.run.len());
            }
        }
    }
}
