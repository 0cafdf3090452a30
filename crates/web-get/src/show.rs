//! The display: totals, and the decisions of the tuner.

use hikyaku_console::{Audience, Counts, Message, Totals};
use hikyaku_mover::Epoch;
use hikyaku_units::counted;
use serde_json::json;
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
        let Epoch { measured, phase } = epoch;
        let (bytes, elapsed) = (measured.bytes.bytes(), measured.elapsed.as_secs_f64());
        let (goodput, n) = (8.0 * measured.goodput(), measured.connections.round() as u64);
        let (phase, queue) = (phase.name(), measured.queue.map(|queue| queue.as_secs_f64()));
        match self.totals.audience() {
            Audience::Events => {
                let event = json!({
                    "event": "epoch",
                    "seconds": self.totals.elapsed().as_secs_f64(),
                    "connections": n,
                    "bytes": bytes,
                    "took": elapsed,
                    "bits_per_second": goodput as u64,
                    "phase": phase,
                    "queue": queue,
                    "added": measured.added,
                });
                self.tell(Message::Event(event.to_string()));
            }
            Audience::Lines => {
                let connections = counted(n, "connection");
                let queue = queue.map(|queue| format!(", packets wait {:.0} ms", queue * 1e3));
                let added = measured.added.map(|added| {
                    format!(", new ones bring {:.0} % of those before", added * 100.0)
                });
                let more = queue.unwrap_or_default() + &added.unwrap_or_default();
                self.remark(format!("{connections}: {:.1} Mbit/s ({phase}{more})", goodput / 1e6));
            }
            Audience::Person | Audience::Quiet | Audience::Document => {}
        }
    }
}
