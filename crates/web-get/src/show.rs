//! The display: totals, and the decisions of the tuner.

use hikyaku_console::{Audience, Counts, Message, Totals};
use hikyaku_mover::Epoch;
use hikyaku_tuner::{Measured, Standing};
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
        let is_standing = match measured.standing {
            Standing::Yes => Some(true),
            Standing::No => Some(false),
            Standing::Unknown => None,
        };
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
                    "is_standing": is_standing,
                    "added": measured.added,
                    "next": measured.asked,
                });
                self.tell(Message::Event(event.to_string()));
            }
            Audience::Lines => {
                let (all, each) = (goodput / 1e6, goodput / 1e6 / n.max(1) as f64);
                let (why, connections) = (why(measured), counted(n, "connection"));
                let next = measured.asked;
                self.remark(format!(
                    "{connections}: {all:.1} Mbit/s, {each:.1} each ({phase}{why}; next {next})"
                ));
            }
            Audience::Person | Audience::Quiet | Audience::Document => {}
        }
    }
}

/// The reasons of a decision, each with a comma before it.
fn why(measured: &Measured) -> String {
    let millis = measured.queue.map(|queue| queue.as_secs_f64() * 1e3);
    let queue = match (measured.standing, millis) {
        (Standing::Yes, Some(millis)) => format!(", a queue of {millis:.0} ms stands"),
        (Standing::No, Some(millis)) => format!(", packets wait {millis:.0} ms"),
        _ => String::new(),
    };
    let added = measured.added.map(|share| format!(", new ones bring {share:.2} of the old ones"));
    queue + &added.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_units::DataSize;
    use std::time::Duration;

    #[test]
    fn a_decision_has_its_reasons() {
        let measured = Measured {
            connections: 16.0,
            bytes: DataSize::from_bytes(1),
            elapsed: Duration::from_secs(1),
            queue: Some(Duration::from_millis(38)),
            standing: Standing::Yes,
            added: Some(0.954),
            asked: 16,
        };
        let text = ", a queue of 38 ms stands, new ones bring 0.95 of the old ones";
        assert_eq!(why(&measured), text);
        let free = Measured { standing: Standing::No, added: None, ..measured };
        assert_eq!(why(&free), ", packets wait 38 ms");
        assert_eq!(why(&Measured { standing: Standing::Unknown, queue: None, ..free }), "");
    }
}
