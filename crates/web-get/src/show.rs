//! The display: totals, and the decisions of the tuner.

use hikyaku_console::{Audience, Counts, Message, Totals};
use hikyaku_mover::Epoch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is shown of the files that are fetched one after the other, as their threads share it.
#[derive(Debug)]
pub(crate) struct Show {
    pub(crate) totals: Arc<Totals>,
    /// Which of those that fetch at once.
    part: usize,
}

impl Show {
    /// For `parts` that fetch at once; the totals are shared.
    pub(crate) fn all(audience: Audience, parts: usize) -> Vec<Self> {
        let totals = Totals::new(audience, parts);
        let show = |part| Self { totals: Arc::clone(&totals), part };
        (0..parts.max(1)).map(show).collect()
    }

    /// Changes the counts; the bytes that come are counted apart.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        self.totals.count(change);
    }

    /// Bytes that have come.
    pub(crate) fn counted(&self) -> &AtomicU64 {
        self.totals.counted(self.part)
    }

    /// How many bytes have come.
    pub(crate) fn sent(&self) -> u64 {
        self.counted().load(Ordering::Relaxed)
    }

    /// Bytes that were counted are fetched again.
    pub(crate) fn forget(&self, bytes: u64) {
        let less = |counted: u64| Some(counted.saturating_sub(bytes));
        let _ = self.counted().fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub(crate) fn tell(&self, message: Message) {
        self.totals.tell(message);
    }

    pub(crate) fn remark(&self, text: String) {
        self.totals.remark(text);
    }

    /// An epoch of the tuner is over.
    pub(crate) fn epoch(&self, epoch: &Epoch) {
        self.totals.decided(&epoch.measured, epoch.phase);
    }
}
