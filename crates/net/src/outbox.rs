//! The way of a stream's bytes from the application to the driver.

use crate::error::WriteError;
use crate::sync::{ArrayQueue, AtomicU64, AtomicUsize, AtomicWaker, OnceLock};
use bytes::Bytes;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// Pieces that wait for the driver, at most.
const PIECES: usize = 64;
/// Bytes that wait for the driver: a writer stops above this many, and is woken at half of it, so
/// that it writes for a while when it gets the processor.
const HIGH: usize = 1 << 20;
const LOW: usize = HIGH / 2;

/// A bounded ring of pieces, one writer and one reader.
pub(crate) struct Outbox {
    ring: ArrayQueue<Bytes>,
    waiting: AtomicUsize,
    /// What the writer wants beside writing; see [`Intent`].
    intent: AtomicU64,
    verdict: OnceLock<Verdict>,
    waker: AtomicWaker,
}

/// What the writer wants of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Intent {
    /// To write more.
    Write,
    /// To end after what was written.
    Finish,
    /// To give up, with this code.
    Reset(u64),
}

/// How the stream's sending half ended.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// All of it arrived.
    Delivered,
    /// It did not.
    Failed(WriteError),
}

const WRITE: u64 = 0;
const FINISH: u64 = 1;
const RESET: u64 = 2;

impl Outbox {
    pub(crate) fn new() -> Self {
        Self {
            ring: ArrayQueue::new(PIECES),
            waiting: AtomicUsize::new(0),
            intent: AtomicU64::new(WRITE),
            verdict: OnceLock::new(),
            waker: AtomicWaker::new(),
        }
    }

    /// Whether there is room for a piece.
    pub(crate) fn poll_room(&self, context: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        self.poll(context, |verdict| match verdict {
            Some(Verdict::Failed(error)) => Some(Err(error.clone())),
            Some(Verdict::Delivered) => Some(Err(WriteError::Finished)),
            None => self.has_room().then_some(Ok(())),
        })
    }

    /// Whether all has arrived at the peer.
    pub(crate) fn poll_delivered(&self, context: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        self.poll(context, |verdict| match verdict? {
            Verdict::Failed(error) => Some(Err(error.clone())),
            Verdict::Delivered => Some(Ok(())),
        })
    }

    fn poll<T>(
        &self,
        context: &mut Context<'_>,
        check: impl Fn(Option<&Verdict>) -> Option<T>,
    ) -> Poll<T> {
        if let Some(found) = check(self.verdict.get()) {
            return Poll::Ready(found);
        }
        self.waker.register(context.waker());
        check(self.verdict.get()).map_or(Poll::Pending, Poll::Ready)
    }

    fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Acquire) < HIGH && !self.ring.is_full()
    }

    /// Appends a piece, for which there must be room.
    pub(crate) fn push(&self, bytes: Bytes) {
        self.waiting.fetch_add(bytes.len(), Ordering::AcqRel);
        let pushed = self.ring.push(bytes);
        debug_assert!(pushed.is_ok(), "the writer asked for room first");
    }

    pub(crate) fn set_intent(&self, intent: Intent) {
        let word = match intent {
            Intent::Write => WRITE,
            Intent::Finish => FINISH,
            Intent::Reset(code) => RESET.saturating_add(code),
        };
        self.intent.store(word, Ordering::Release);
    }

    /// To be read before the ring is emptied, so that "end after this" comes after it.
    pub(crate) fn intent(&self) -> Intent {
        match self.intent.load(Ordering::Acquire) {
            WRITE => Intent::Write,
            FINISH => Intent::Finish,
            word => Intent::Reset(word - RESET),
        }
    }

    /// The next piece.
    pub(crate) fn pop(&self) -> Option<Bytes> {
        let bytes = self.ring.pop()?;
        self.waiting.fetch_sub(bytes.len(), Ordering::AcqRel);
        Some(bytes)
    }

    /// The driver took pieces.
    pub(crate) fn on_popped(&self) {
        if self.waiting.load(Ordering::Acquire) <= LOW {
            self.waker.wake();
        }
    }

    /// Ends the sending half.
    pub(crate) fn settle(&self, verdict: Verdict) {
        let _ = self.verdict.set(verdict);
        self.waker.wake();
    }
}
