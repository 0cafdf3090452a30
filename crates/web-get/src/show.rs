//! The display: totals, and the decisions of the tuner.

use hikyaku_console::{Audience, Counts, Message, Totals};
use hikyaku_tuner::{Phase, Sample};
use hikyaku_units::counted;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time over which the rate is measured.
const RATE_OVER: Duration = Duration::from_secs(2);

/// What is shown of the files that are fetched one after the other, as their threads share it.
#[derive(Debug)]
pub(crate) struct Show {
    pub(crate) totals: Arc<Totals>,
    /// Which of those that fetch at once.
    part: usize,
    /// Bytes at an instant of late, and bytes a second before that.
    rate: Mutex<(Instant, u64, f64)>,
}

/// The measurement of one epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    pub(crate) sample: Sample,
    pub(crate) phase: Phase,
}

impl Show {
    /// For `parts` that fetch at once; the totals are shared.
    pub(crate) fn all(audience: Audience, parts: usize) -> Vec<Self> {
        let totals = Totals::new(audience, parts);
        let show = |part| {
            let rate = Mutex::new((Instant::now(), 0, 0.0));
            Self { totals: Arc::clone(&totals), part, rate }
        };
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

    /// Bytes a second, of all connections of a file together, of late.
    pub(crate) fn rate(&self) -> f64 {
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let bytes = self.counted().load(Ordering::Relaxed);
        let (since, before, known) = *rate;
        let elapsed = now.saturating_duration_since(since);
        let current = bytes.saturating_sub(before) as f64 / elapsed.as_secs_f64().max(1e-3);
        if elapsed >= RATE_OVER {
            *rate = (now, bytes, current);
        }
        if known > 0.0 { known } else { current }
    }

    pub(crate) fn tell(&self, message: Message) {
        self.totals.tell(message);
    }

    pub(crate) fn remark(&self, text: String) {
        self.totals.remark(text);
    }

    /// An epoch of the tuner is over.
    pub(crate) fn epoch(&self, epoch: &Epoch) {
        let Epoch { sample, phase } = epoch;
        let (n, bytes, elapsed) = (sample.n, sample.bytes.bytes(), sample.elapsed.as_secs_f64());
        let goodput = 8.0 * bytes as f64 / elapsed.max(1e-6);
        let phase = phase.name();
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
                });
                self.tell(Message::Event(event.to_string()));
            }
            Audience::Lines => {
                let connections = counted(n, "connection");
                self.remark(format!("{connections}: {:.1} Mbit/s ({phase})", goodput / 1e6));
            }
            Audience::Person | Audience::Quiet | Audience::Document => {}
        }
    }
}
