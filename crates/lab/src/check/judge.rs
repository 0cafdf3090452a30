//! Compares the measurement of a link with its settings.

use super::flow::{Flow, HEADER_BYTES, SINGLE_BYTES};
use crate::report::DirectionReport;
use hikyaku_link::FRAMING;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Tolerance of the delay in milliseconds: the time that waking an idle processor takes.
const DELAY_TOLERANCE_MS: f64 = 0.2;
/// Tolerance of the rate, as a fraction of it, in addition to what chance explains.
const RATE_TOLERANCE: f64 = 0.005;
/// Tolerance of the loss, as a fraction of it, unless chance explains more.
const LOSS_TOLERANCE: f64 = 0.05;
/// Number of standard deviations that are attributed to chance.
const STANDARD_DEVIATIONS: f64 = 4.0;
/// The flood is divided into this many parts and the median of their rates counts, so that a short
/// pause of the sender does not affect the result.
const RATE_PARTS: usize = 9;
/// Least number of messages in a part.
const PART_MESSAGES_MIN: usize = 8;

/// One direction of a link, as set and as measured.
#[derive(Clone, Debug, Serialize)]
pub struct WayCheck {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// The delay that is set, without jitter.
    pub delay_asked_ms: f64,
    /// The measured delay of single datagrams: the median, or the minimum if jitter or cross
    /// traffic adds to it.
    pub delay_ms: Option<f64>,
    /// The rate that is set, in bits per second with Ethernet framing.
    pub rate_asked: Option<u64>,
    /// The measured rate, corrected for losses behind the bottleneck.
    pub rate: Option<f64>,
    /// The loss that is set, as a fraction.
    pub loss_asked: f64,
    /// The fraction of the segments that left the queue and that the link lost.
    pub loss: f64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that arrived.
    pub arrived: u64,
    /// Datagrams that did not arrive and that the link's counters do not explain.
    pub unaccounted: i64,
    /// Deviations from the settings.
    pub faults: Vec<String>,
}

/// What the link counted during the measurement.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    offered: u64,
    lost: u64,
    /// Segments that left the queue.
    passed: u64,
    /// Segments that did not arrive intact.
    missing: u64,
    doubled: u64,
    policed: u64,
    cut: u64,
}

impl Counted {
    fn between(before: &DirectionReport, after: &DirectionReport) -> Self {
        let sum = |get: fn(&DirectionReport) -> u64| get(after) - get(before);
        Self {
            offered: sum(|way| way.segments),
            lost: sum(|way| way.lost),
            passed: sum(|way| way.delivered + way.lost),
            missing: sum(|way| way.segments) - sum(|way| way.delivered) + sum(|way| way.corrupted),
            doubled: sum(|way| way.duplicated),
            policed: sum(|way| way.policed),
            cut: sum(|way| way.cut),
        }
    }

    fn loss(&self) -> f64 {
        if self.passed == 0 { 0.0 } else { self.lost as f64 / self.passed as f64 }
    }
}

impl WayCheck {
    /// Compares the received `flow` with the link's reports before and after it.
    pub(super) fn new(
        [from, to]: [String; 2],
        flow: &Flow,
        before: &DirectionReport,
        after: &DirectionReport,
    ) -> Self {
        let counted = Counted::between(before, after);
        let arrived = flow.delays.len() as u64 + flow.received.datagrams;
        let whole = rate_of(&flow.received.messages, wire_bits(flow.payload));
        let mut way = Self {
            from,
            to,
            delay_asked_ms: after.delay_ms,
            delay_ms: delay_of(&flow.delays, after),
            rate_asked: after.rate_bits_per_sec,
            rate: whole.map(|rate| rate / (1.0 - counted.loss())),
            loss_asked: after.loss_share,
            loss: counted.loss(),
            sent: flow.sent,
            arrived,
            unaccounted: flow.sent as i64 + counted.doubled as i64
                - arrived as i64
                - counted.missing as i64,
            faults: Vec::new(),
        };
        way.faults = way.faults(flow, after, &counted);
        way
    }

    /// Whether the link behaves as set.
    pub fn is_as_asked(&self) -> bool {
        self.faults.is_empty()
    }

    fn faults(&self, flow: &Flow, asked: &DirectionReport, counted: &Counted) -> Vec<String> {
        if counted.offered != self.sent {
            let others = counted.offered.abs_diff(self.sent);
            return vec![format!(
                "other traffic in the lab: {others} segments do not belong to this measurement"
            )];
        }
        let mut faults = Vec::new();
        match self.delay_ms {
            None => faults.push("no single datagram arrived".to_owned()),
            Some(delay) if (delay - self.delay_asked_ms).abs() > DELAY_TOLERANCE_MS => {
                let off = delay - self.delay_asked_ms;
                faults.push(format!(
                    "the delay is off by {off:+.3} ms (tolerance {DELAY_TOLERANCE_MS})"
                ));
            }
            Some(_) => {}
        }
        // The variance of bursty losses is larger than that of single ones, because there are fewer
        // independent events.
        let variance = asked.loss_share * (2.0 * asked.loss_burst - 1.0);
        let by_chance = STANDARD_DEVIATIONS * (variance / counted.passed.max(1) as f64).sqrt();
        if (self.loss - self.loss_asked).abs() > by_chance.max(LOSS_TOLERANCE * self.loss_asked) {
            faults.push(format!("the loss is {:.4} %", self.loss * 100.0));
        }
        // A policer or an outage reduces the rate as intended, so the rate is not compared then.
        let has_all = counted.policed + counted.cut == 0;
        if let (Some(rate), Some(asked_rate), true) = (self.rate, self.rate_asked, has_all) {
            let share = rate / asked_rate as f64;
            // Cross traffic takes no more than its share.
            let least = 1.0 - asked.background_share - RATE_TOLERANCE - by_chance;
            if !(least..=1.0 + RATE_TOLERANCE + by_chance).contains(&share) {
                let off = 100.0 * (share - 1.0);
                faults.push(format!(
                    "the rate is off by {off:+.2} % (tolerance {})",
                    RATE_TOLERANCE * 100.0
                ));
            }
        }
        if flow.received.dropped_by_host > 0 {
            faults.push(format!(
                "the receiving host's socket dropped {}",
                flow.received.dropped_by_host
            ));
        } else if self.unaccounted != 0 {
            faults.push(format!("{} datagrams are unaccounted for", self.unaccounted));
        }
        faults
    }
}

/// Bits on the wire of a datagram with this payload.
pub(super) fn wire_bits(payload: usize) -> f64 {
    f64::from(payload as u32 + HEADER_BYTES + FRAMING) * 8.0
}

/// The delay that single datagrams show, less the time to serialize one.
fn delay_of(delays: &[Duration], asked: &DirectionReport) -> Option<f64> {
    let mut delays: Vec<f64> = delays.iter().map(|delay| delay.as_secs_f64() * 1e3).collect();
    delays.sort_by(f64::total_cmp);
    let adds = asked.jitter_ms > 0.0 || asked.background_share > 0.0;
    let one = if adds { delays.first() } else { delays.get(delays.len() / 2) }?;
    let sending = asked.rate_bits_per_sec.map_or(0.0, |rate| wire_bits(SINGLE_BYTES) / rate as f64);
    Some(one - sending * 1e3)
}

/// The rate at which messages arrived, in bits per second; each has a number of datagrams of `bits`
/// bits. The first third is left out, because the queue may not have been full until then.
fn rate_of(messages: &[(u64, u32)], bits: f64) -> Option<f64> {
    let messages = &messages[messages.len() / 3..];
    let parts = (messages.len() / PART_MESSAGES_MIN).clamp(1, RATE_PARTS);
    let each = messages.len().saturating_sub(1) / parts;
    let rate = |part: usize| {
        let (first, next) = (part * each, (part + 1) * each);
        let count: u32 = messages[first..next].iter().map(|(_, count)| count).sum();
        let nanos = messages[next].0.checked_sub(messages[first].0).filter(|nanos| *nanos > 0)?;
        Some(f64::from(count) * bits * 1e9 / nanos as f64)
    };
    let mut rates: Vec<f64> = (0..parts).filter(|_| each > 0).filter_map(rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

impl fmt::Display for WayCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let mbit = |rate: Option<f64>| text(rate.map(|rate| rate / 1e6), 3);
        write!(
            f,
            "{:>12} -> {:<12} {:>9.3} {:>9} ms  {:>10} {:>10} Mbit/s  {:>8.4} {:>8.4} %  {}",
            self.from,
            self.to,
            self.delay_asked_ms,
            text(self.delay_ms, 3),
            mbit(self.rate_asked.map(|rate| rate as f64)),
            mbit(self.rate.filter(|_| self.rate_asked.is_some())),
            self.loss_asked * 100.0,
            self.loss * 100.0,
            if self.is_as_asked() { "ok" } else { "DEVIATES: " },
        )?;
        f.write_str(&self.faults.join("; "))
    }
}
