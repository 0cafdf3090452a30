//! The way of a stream's bytes from the application to the driver.

use crate::budget::Budget;
use crate::error::WriteError;
use crate::sync::{ArrayQueue, AtomicBool, AtomicU64, AtomicUsize, AtomicWaker, OnceLock};
use bytes::Bytes;
use hikyaku_proto::Priority;
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
    /// The writer's request beside its bytes; see [`Intent`].
    intent: AtomicU64,
    /// Bytes that were sent of a stream that was cut; `None` if it had ended before.
    cut: OnceLock<Option<u64>>,
    is_urgent: AtomicBool,
    verdict: OnceLock<Verdict>,
    waker: AtomicWaker,
}

/// The request of the writer for the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Intent {
    /// To write more.
    Write,
    /// To end after what was written.
    Finish,
    /// To end after what was sent, and take back the rest.
    Cut,
    /// To end after what was written, with this code.
    BreakOff(u64),
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

/// The lowest bits of an intent are the request, the others its code.
const KIND_BITS: u32 = 3;
const WRITE: u64 = 0;
const FINISH: u64 = 1;
const CUT: u64 = 2;
const BREAK_OFF: u64 = 3;
const RESET: u64 = 4;
/// The largest code in the remaining bits. (A code on the wire has 62 bits.)
const MOST_CODE: u64 = u64::MAX >> KIND_BITS;

impl Outbox {
    pub(crate) fn new() -> Self {
        Self {
            ring: ArrayQueue::new(PIECES),
            waiting: AtomicUsize::new(0),
            intent: AtomicU64::new(WRITE),
            cut: OnceLock::new(),
            is_urgent: AtomicBool::new(false),
            verdict: OnceLock::new(),
            waker: AtomicWaker::new(),
        }
    }

    /// Whether there is room for a piece: `wait` is called before the last look if there is none for want of budget.
    pub(crate) fn poll_room(
        &self,
        context: &mut Context<'_>,
        budget: &Budget,
        wait: impl Fn(),
    ) -> Poll<Result<(), WriteError>> {
        self.poll(context, |verdict| match verdict {
            Some(Verdict::Failed(error)) => Some(Err(error.clone())),
            Some(Verdict::Delivered) => Some(Err(WriteError::Finished)),
            None if !self.has_room() => None,
            None if budget.has_room(self.held()) => Some(Ok(())),
            None => {
                // Registered before the next check: bytes that are returned meanwhile wake this writer.
                wait();
                budget.has_room(self.held()).then_some(Ok(()))
            }
        })
    }

    fn held(&self) -> u64 {
        self.waiting.load(Ordering::Acquire) as u64
    }

    /// How much was sent of a stream that was cut; `None` if it had ended before.
    pub(crate) fn poll_cut(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<u64>, WriteError>> {
        self.poll(context, |verdict| match (self.cut.get(), verdict) {
            (Some(size), _) => Some(Ok(*size)),
            (None, Some(Verdict::Failed(error))) => Some(Err(error.clone())),
            (None, Some(Verdict::Delivered)) => Some(Ok(None)),
            (None, None) => None,
        })
    }

    /// The driver has cut the stream.
    pub(crate) fn set_cut(&self, size: Option<u64>) {
        let _ = self.cut.set(size);
        self.waker.wake();
    }

    /// The writer should look again.
    pub(crate) fn wake(&self) {
        self.waker.wake();
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
    pub(crate) fn push(&self, bytes: Bytes, budget: &Budget) {
        budget.take(bytes.len());
        self.waiting.fetch_add(bytes.len(), Ordering::AcqRel);
        let pushed = self.ring.push(bytes);
        debug_assert!(pushed.is_ok(), "the writer asked for room first");
    }

    pub(crate) fn set_intent(&self, intent: Intent) {
        let word = match intent {
            Intent::Write => WRITE,
            Intent::Finish => FINISH,
            Intent::Cut => CUT,
            Intent::BreakOff(code) => BREAK_OFF | code.min(MOST_CODE) << KIND_BITS,
            Intent::Reset(code) => RESET | code.min(MOST_CODE) << KIND_BITS,
        };
        self.intent.store(word, Ordering::Release);
    }

    pub(crate) fn set_priority(&self, priority: Priority) {
        self.is_urgent.store(priority == Priority::Urgent, Ordering::Release);
    }

    pub(crate) fn priority(&self) -> Priority {
        if self.is_urgent.load(Ordering::Acquire) { Priority::Urgent } else { Priority::Normal }
    }

    /// To be read before the ring is emptied, so that "end after this" comes after it.
    pub(crate) fn intent(&self) -> Intent {
        let word = self.intent.load(Ordering::Acquire);
        let (kind, code) = (word & ((1 << KIND_BITS) - 1), word >> KIND_BITS);
        match kind {
            WRITE => Intent::Write,
            FINISH => Intent::Finish,
            CUT => Intent::Cut,
            BREAK_OFF => Intent::BreakOff(code),
            _ => Intent::Reset(code),
        }
    }

    /// The next piece.
    pub(crate) fn pop(&self, budget: &Budget) -> Option<Bytes> {
        let bytes = self.ring.pop()?;
        self.waiting.fetch_sub(bytes.len(), Ordering::AcqRel);
        budget.give_back(bytes.len());
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
