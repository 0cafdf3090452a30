//! When the sender sends a probe that asks for an acknowledgement: after its last packet, for
//! packets that the receiver does not report on, and on a path that is down.

use super::repairs::LOSSY_RATE;
use super::unreported::Due;
use super::{Outage, Recovery};
use core::time::Duration;
use hikyaku_units::Instant;

/// Additional delay of an answer by a busy host.
const ANSWER_DELAY_MAX: Duration = Duration::from_millis(25);
/// With more loss than [`LOSSY_RATE`], this many probes are sent within two round trips.
const QUICK_PROBES_MAX: u32 = 4;
const ANSWER_DELAY_MIN: Duration = Duration::from_millis(2);
/// Longest delay of a busy receiver that probes wait for.
const LATE_MAX: Duration = Duration::from_secs(1);
// spec: loss-5
/// The interval of probes on a path that is down. It is short, so that data transfer resumes soon.
const OUTAGE_PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// Unanswered probes after which the interval doubles. It doubles twice, to one second, so that the
/// transfer resumes within the two seconds that users tolerate.
const OUTAGE_PROBES: u32 = 12;

/// The event that is expected after the last packet. One that is known makes an early probe unnecessary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Unknown,
    /// Data that wait for pacing until then.
    Data(Instant),
    /// The receiver reports within this time.
    Report(Duration),
}

impl Recovery {
    /// The probe timeout: how long the sender waits for an answer.
    fn probe_timeout(&self) -> Duration {
        let srtt = self.srtt();
        // Where many probes are lost, the next one is not delayed until the answer to the last is
        // due.
        if self.controller.ambient_loss() > LOSSY_RATE && self.probes_unanswered <= QUICK_PROBES_MAX
        {
            return (srtt / 2).max(ANSWER_DELAY_MIN / 2) + self.late;
        }
        let base = srtt * 3 / 2 + srtt.clamp(ANSWER_DELAY_MIN, ANSWER_DELAY_MAX) + self.late;
        base * 2_u32.pow(self.probes_unanswered.min(6))
    }

    /// When the next probe is due: soon after the last packet if nothing follows it, then at
    /// increasing intervals. `next` is what follows.
    // spec: loss-3
    pub(crate) fn probe_at(&self, next: Next) -> Option<Instant> {
        if let Outage::Since(since) = self.outage {
            return Some(self.last_probe.unwrap_or(since) + self.outage_pause());
        }
        let after_the_last = match self.last_unprobed {
            Some(sent) => Some(match next {
                Next::Unknown => sent + self.reorder_window() + self.late,
                Next::Data(at) => (sent + self.reorder_window() + self.late).max(at),
                Next::Report(within) => sent + self.reorder_window().max(within) + self.late,
            }),
            None => self
                .last_probe
                .map(|at| at.max(self.last_ack.unwrap_or_default()) + self.probe_timeout()),
        };
        let for_unreported = match self.unreported.next(self.answer_time()) {
            Some((at, Due::Probe)) => Some(at),
            Some((_, Due::End(_))) | None => None,
        };
        [after_the_last, for_unreported].into_iter().flatten().min()
    }

    /// The interval of probes on a path that is down. It is longer than a round trip, so that an
    /// answer can arrive first (RFC 8085, section 3.1.1: at most one datagram a round trip without
    /// an answer). It grows with the duration of the outage.
    fn outage_pause(&self) -> Duration {
        let doublings = (self.probes_unanswered / OUTAGE_PROBES).min(2);
        (OUTAGE_PROBE_INTERVAL * 2_u32.pow(doublings)).max(self.srtt() * 3 / 2)
    }

    /// The time in which an answer arrives: a round trip, and the delay of a busy receiver.
    pub(super) fn answer_time(&self) -> Duration {
        self.srtt() + self.late
    }

    /// Records how long the receiver had a packet before it reported on it. A receiver that is too busy to answer in time gets
    /// busier with each probe, so that probes wait for it. Its delay is not in the round-trip time.
    pub(super) fn on_answer(&mut self, delay: Duration) {
        let is_late = delay > self.srtt().max(ANSWER_DELAY_MAX);
        let delay = if is_late { delay.min(LATE_MAX) } else { Duration::ZERO };
        // One late answer may have waited for a path that was down.
        let before = core::mem::replace(&mut self.last_delay, delay);
        self.late = delay.min(before).max(self.late - self.late / 8);
    }

    /// Records that a probe was sent.
    pub(crate) fn on_probe_sent(&mut self, now: Instant) {
        self.unreported.on_probe_sent(now, self.answer_time());
        if self.last_unprobed.is_none() {
            self.probes_unanswered += 1;
        }
        self.last_unprobed = None;
        self.last_probe = Some(now);
    }

    /// Records that a packet arrived after a silence of this length. The path works again, so the
    /// backoff of the probe timeout is reset.
    // spec: loss-3
    pub(crate) fn on_packet_received(&mut self, silence: Duration) {
        if silence > self.srtt() * 3 + ANSWER_DELAY_MAX {
            self.probes_unanswered = 0;
        }
    }
}
