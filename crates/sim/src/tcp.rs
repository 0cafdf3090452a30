//! A model of a TCP flow: numbered segments, each acknowledged by itself, with the window of CUBIC
//! or BBR. Lost segments are counted but not retransmitted, because their bytes are not checked.

mod bbr;
mod cubic;

use crate::pair::SERVER;
use crate::scenario::TICK;
use bbr::Bbr;
use cubic::Cubic;
use hikyaku_units::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// The congestion control of a TCP flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// RFC 9438, with the slow start of Linux (HyStart).
    Cubic,
    /// Version 1 (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr,
}

/// Both ends of a flow.
pub(crate) struct Tcp {
    began: Instant,
    wake: Instant,
    next: u64,
    outstanding: BTreeMap<u64, Sent>,
    highest: u64,
    /// Losses of segments below this number belong to a congestion event that was already handled.
    recovery: u64,
    rtt: Rtt,
    timeout: Duration,
    last_heard: Instant,
    law: Law,
    /// Segments in flight at most: what the receiver's buffer takes.
    window_max: usize,
    /// The number of acknowledged segments.
    acked: u64,
    acked_at: Instant,
    answers: Vec<u64>,
    arrived: u64,
    progress: Vec<u64>,
}

/// The state of a segment in flight.
#[derive(Clone, Copy)]
struct Sent {
    at: Instant,
    acked: u64,
    acked_at: Instant,
}

enum Law {
    Cubic(Cubic),
    Bbr(Bbr),
}

/// Round-trip times of a flow, in seconds.
#[derive(Clone, Copy)]
pub(super) struct Rtt {
    pub(super) latest: f64,
    pub(super) least: f64,
    smooth: f64,
    varies: f64,
}

/// What an acknowledgement reports to the congestion control.
pub(super) struct AckInfo {
    pub(super) now: Instant,
    pub(super) number: u64,
    pub(super) next: u64,
    pub(super) rtt: Rtt,
    /// Segments acknowledged in total, and before this one was sent.
    pub(super) acked: u64,
    pub(super) acked_before: u64,
    /// The delivery rate while it was in flight, in segments a second.
    pub(super) rate: f64,
    pub(super) in_flight: usize,
}

const SEGMENT_BYTES: u32 = 1500;
const ACK_BYTES: u32 = 52;
/// Payload bytes of a segment with time stamps.
const PAYLOAD_BYTES: u64 = 1448;
/// A segment is lost when one sent this many later has arrived.
const REORDERING_SEGMENTS: u64 = 3;
/// Minimum retransmission timeout, as in Linux.
const TIMEOUT_MIN: Duration = Duration::from_millis(200);
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

impl Tcp {
    pub(crate) fn new(now: Instant, congestion: Congestion) -> Self {
        Self {
            began: now,
            wake: now,
            next: 0,
            outstanding: BTreeMap::new(),
            highest: 0,
            recovery: 0,
            rtt: Rtt { latest: 0.0, least: f64::INFINITY, smooth: 0.0, varies: 0.0 },
            timeout: Duration::from_secs(1),
            last_heard: now,
            law: match congestion {
                Congestion::Cubic => Law::Cubic(Cubic::new()),
                Congestion::Bbr => Law::Bbr(Bbr::new(now)),
            },
            window_max: usize::MAX,
            acked: 0,
            acked_at: now,
            answers: Vec::new(),
            arrived: 0,
            progress: Vec::new(),
        }
    }

    /// Limits the segments in flight.
    pub(crate) fn within(self, segments: usize) -> Self {
        Self { window_max: segments.max(1), ..self }
    }

    /// Payload bytes that have arrived.
    pub(crate) const fn arrived(&self) -> u64 {
        self.arrived * PAYLOAD_BYTES
    }

    /// The last round-trip time that was measured.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        (self.acked > 0).then(|| Duration::from_secs_f64(self.rtt.latest))
    }

    fn window(&self) -> usize {
        self.law.window().min(self.window_max)
    }

    pub(crate) fn wake(&self, host: usize) -> Instant {
        match host {
            SERVER if !self.answers.is_empty() => Instant::ZERO,
            SERVER => Instant::from_nanos(u64::MAX),
            _ => self.wake,
        }
    }

    pub(crate) fn note(&mut self, now: Instant) {
        if now >= self.began {
            let ticks = ((now - self.began).as_nanos() / TICK.as_nanos()) as usize;
            if self.progress.len() < ticks {
                self.progress.resize(ticks, self.arrived * PAYLOAD_BYTES);
            }
        }
    }

    pub(crate) fn end(self) -> Vec<u64> {
        self.progress
    }

    pub(crate) fn deliver(&mut self, now: Instant, to: usize, number: u64) {
        if to == SERVER {
            self.arrived += 1;
            self.answers.push(number);
        } else {
            self.on_ack(now, number);
        }
    }

    /// Lets one end send what it may.
    pub(crate) fn turn(&mut self, now: Instant, at: usize, send: &mut dyn FnMut(u64, u32)) {
        if at == SERVER {
            self.answers.drain(..).for_each(|number| send(number, ACK_BYTES));
            return;
        }
        if !self.outstanding.is_empty() && now >= self.last_heard + self.timeout {
            self.on_timeout(now);
        }
        while self.outstanding.len() < self.window() && self.law.may_send(now) {
            if self.outstanding.is_empty() {
                self.last_heard = now;
                self.acked_at = now;
            }
            let sent = Sent { at: now, acked: self.acked, acked_at: self.acked_at };
            self.outstanding.insert(self.next, sent);
            send(self.next, SEGMENT_BYTES);
            self.next += 1;
            self.law.on_sent(now);
        }
        self.wake = (self.last_heard + self.timeout).max(now + Duration::from_micros(1));
        if self.outstanding.len() < self.window()
            && let Some(at) = self.law.next_send()
        {
            self.wake = self.wake.min(at);
        }
    }

    fn on_ack(&mut self, now: Instant, number: u64) {
        self.last_heard = now;
        let Some(sent) = self.outstanding.remove(&number) else { return };
        self.rtt.sample((now - sent.at).as_secs_f64());
        let timeout = Duration::from_secs_f64(self.rtt.smooth + 4.0 * self.rtt.varies);
        self.timeout = timeout.clamp(TIMEOUT_MIN, TIMEOUT_MAX);
        self.acked += 1;
        self.acked_at = now;
        self.highest = self.highest.max(number);
        let took = (now - sent.acked_at).as_secs_f64();
        let ack = AckInfo {
            now,
            number,
            next: self.next,
            rtt: self.rtt,
            acked: self.acked,
            acked_before: sent.acked,
            rate: (self.acked - sent.acked) as f64 / took.max(1e-6),
            in_flight: self.outstanding.len(),
        };
        // As in Linux, a window that is not used does not grow.
        let is_recovering = number < self.recovery || self.law.window() > self.window_max;
        self.law.on_ack(&ack, is_recovering);
        while let Some(entry) = self.outstanding.first_entry()
            && *entry.key() + REORDERING_SEGMENTS < self.highest
        {
            let lost = *entry.key();
            entry.remove();
            if lost >= self.recovery {
                self.recovery = self.next;
                self.law.on_loss(now);
            }
        }
    }

    /// Handles a retransmission timeout: all segments in flight are lost.
    fn on_timeout(&mut self, now: Instant) {
        self.outstanding.clear();
        self.recovery = self.next;
        self.last_heard = now;
        self.timeout = (self.timeout * 2).min(TIMEOUT_MAX);
        self.law.on_timeout();
    }
}

impl Rtt {
    /// The estimator of RFC 6298.
    fn sample(&mut self, took: f64) {
        if self.least.is_infinite() {
            (self.smooth, self.varies) = (took, took / 2.0);
        }
        self.varies += ((took - self.smooth).abs() - self.varies) / 4.0;
        self.smooth += (took - self.smooth) / 8.0;
        self.latest = took;
        self.least = self.least.min(took);
    }
}

impl Law {
    fn window(&self) -> usize {
        match self {
            Self::Cubic(cubic) => cubic.window(),
            Self::Bbr(bbr) => bbr.window(),
        }
    }

    fn may_send(&self, now: Instant) -> bool {
        self.next_send().is_none_or(|at| at <= now)
    }

    /// When the next segment may leave, if segments are paced.
    fn next_send(&self) -> Option<Instant> {
        match self {
            Self::Cubic(_) => None,
            Self::Bbr(bbr) => Some(bbr.next_send()),
        }
    }

    fn on_sent(&mut self, now: Instant) {
        if let Self::Bbr(bbr) = self {
            bbr.on_sent(now);
        }
    }

    fn on_ack(&mut self, ack: &AckInfo, is_recovering: bool) {
        match self {
            Self::Cubic(_) if is_recovering => {}
            Self::Cubic(cubic) => cubic.on_ack(ack),
            Self::Bbr(bbr) => bbr.on_ack(ack),
        }
    }

    fn on_loss(&mut self, now: Instant) {
        match self {
            Self::Cubic(cubic) => cubic.on_loss(),
            Self::Bbr(bbr) => bbr.on_loss(now),
        }
    }

    fn on_timeout(&mut self) {
        match self {
            Self::Cubic(cubic) => cubic.on_timeout(),
            Self::Bbr(bbr) => bbr.on_timeout(),
        }
    }
}
