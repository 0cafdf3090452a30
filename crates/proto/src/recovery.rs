//! The sender's part of loss recovery: what is in flight, what is lost, and when to send a probe.

mod asking;
mod draft;
mod repairs;
mod unreported;

pub(crate) use asking::Next;
pub(crate) use draft::Draft;
pub(crate) use repairs::Again;

use self::repairs::{PathState, Repairs};
use self::unreported::{Due, Unreported};
use crate::mtu::BASE_DATAGRAM_BYTES;
use crate::sent::{Content, Fate, Outcome, Sent, SentLog};
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_cc::{AckEvent, Controller, Limit};
use hikyaku_units::Instant;
use hikyaku_wire::{Ack, Frame, StreamId};

/// The state of all packets from their transmission until they are known to have arrived or are
/// given up.
pub(crate) struct Recovery {
    pub(crate) controller: Controller,
    log: SentLog,
    next_pn: u64,
    next_skip: u64,
    rng: fastrand::Rng,
    pub(crate) repairs: Repairs,
    frames_again: Vec<Frame>,
    newest_sent: Option<Instant>,
    last_ack: Option<Instant>,
    /// When an acknowledgement last reported a packet that was not known to have arrived.
    last_arrival: Option<Instant>,
    largest: u64,
    samples_left: usize,
    ce: u64,
    reorder_factor: u32,
    judge_at: Option<Instant>,
    probes_unanswered: u32,
    /// When the last packet was sent that no probe has followed yet.
    last_unprobed: Option<Instant>,
    last_probe: Option<Instant>,
    /// When a packet was last sent while none was in flight.
    busy_since: Instant,
    outage: Outage,
    unreported: Unreported,
    /// How long a busy receiver takes for its answers; zero of one that is not.
    late: Duration,
    last_delay: Duration,
    limit: Limit,
    pub(crate) totals: Totals,
}

/// Whether the path carries anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outage {
    /// Acknowledgements arrive.
    No,
    /// No acknowledgement has arrived for so long that only probes are sent.
    Since(Instant),
}

/// Running totals for statistics.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Totals {
    pub(crate) acked_packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) spurious: u64,
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) resent_bytes: u64,
    pub(crate) outages: u64,
    /// Accepted samples of arrival times.
    pub(crate) samples: u64,
}

/// What the connection must do after an ACK.
#[derive(Default)]
pub(crate) struct AckResult {
    pub(crate) arrived: Vec<(StreamId, u64, u64)>,
    /// Streams whose end the receiver has.
    pub(crate) fins: Vec<StreamId>,
    pub(crate) probes_arrived: Vec<u16>,
    pub(crate) probes_lost: Vec<u16>,
    pub(crate) full_arrived: u64,
    pub(crate) full_lost: u64,
    pub(crate) forged: bool,
    /// Packets newly acknowledged, and newly reported congestion marks.
    pub(crate) acked: u64,
    pub(crate) marked: u64,
}

/// Minimum reordering window. Reordering below a millisecond may come from the queues of one host.
/// On a path with a round-trip time of a few milliseconds the minimum is a quarter of it, but not
/// below the resolution of timers.
const REORDER_WINDOW_MIN: Duration = Duration::from_millis(1);
const SHORT_PATH_REORDER_WINDOW_MIN: Duration = Duration::from_micros(250);
const REORDER_FACTOR_MAX: u32 = 8;
// spec: loss-5
/// If no packet is acknowledged for this long, and for three round-trip times, the path is
/// considered down.
const OUTAGE_AFTER: Duration = Duration::from_secs(1);
/// Packet numbers skipped at random among those that can be in flight at once. A receiver that
/// acknowledges a window it has not received acknowledges one of them. This holds for a train at
/// start-up as well.
const SKIPS_IN_FLIGHT: u64 = 4;
/// One in this many skips is of two consecutive numbers.
const SKIPS_PER_PAIR: u32 = 4;
/// Maximum samples of arrival times that are accepted for each acknowledged packet. It is above one
/// because probes are answered several times, and because a full report repeats samples.
const SAMPLES_PER_PACKET: u64 = 4;
const SAMPLES_MAX: u64 = 1 << 14;
/// Mean distance in packets between two skipped numbers: minimum and maximum.
const SKIP_SPACING_MIN: u64 = 8;
const SKIP_SPACING_MAX: u64 = 1 << 13;

impl Recovery {
    pub(crate) fn new(controller: Controller, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        Self {
            controller,
            log: SentLog::default(),
            next_pn: 0,
            next_skip: SKIP_SPACING_MIN + rng.u64(0..2 * SKIP_SPACING_MIN),
            rng,
            repairs: Repairs::default(),
            frames_again: Vec::new(),
            newest_sent: None,
            last_ack: None,
            last_arrival: None,
            largest: 0,
            samples_left: SAMPLES_MAX as usize,
            ce: 0,
            reorder_factor: 1,
            judge_at: None,
            probes_unanswered: 0,
            last_unprobed: None,
            last_probe: None,
            outage: Outage::No,
            unreported: Unreported::None,
            busy_since: Instant::ZERO,
            late: Duration::ZERO,
            last_delay: Duration::ZERO,
            limit: Limit::Controller,
            totals: Totals::default(),
        }
    }

    /// The next packet number. Some are skipped, to detect a receiver that acknowledges packets it
    /// has not received.
    // spec: ack-6
    // spec: pn-1
    pub(crate) fn take_packet_number(&mut self) -> u64 {
        if self.next_pn >= self.next_skip {
            // Some skips are of two numbers. Otherwise a receiver that fills in all gaps but those
            // of one number would not be detected.
            let count = if self.rng.u32(0..SKIPS_PER_PAIR) == 0 { 2 } else { 1 };
            for _ in 0..count {
                self.log.skip(self.next_pn);
                self.next_pn += 1;
            }
            self.next_skip = self.next_pn + 1 + self.rng.u64(0..2 * self.skip_spacing());
        }
        self.next_pn += 1;
        self.next_pn - 1
    }

    fn skip_spacing(&self) -> u64 {
        let under_way = self.controller.window() + self.log.in_flight();
        (under_way / (SKIPS_IN_FLIGHT * u64::from(BASE_DATAGRAM_BYTES)))
            .clamp(SKIP_SPACING_MIN, SKIP_SPACING_MAX)
    }

    pub(crate) const fn next_packet_number(&self) -> u64 {
        self.next_pn
    }

    pub(crate) fn on_sent(&mut self, sent: Sent, bytes: u64) {
        let last = sent.first + u64::from(sent.count) - 1;
        self.controller.on_sent(sent.at, last, bytes);
        self.repairs.on_sent(sent.at);
        self.totals.sent_packets += u64::from(sent.count);
        self.totals.sent_bytes += bytes;
        if let Content::Data { generation: 1.., len, .. } = &sent.content {
            self.totals.resent_bytes += u64::from(*len);
        }
        if !matches!(&sent.content, Content::Control(frames) if frames.is_empty()) {
            self.last_unprobed = Some(sent.at);
        }
        if self.log.in_flight() == 0 {
            self.busy_since = sent.at;
        }
        self.log.push(sent);
    }

    /// Records that packets from now on take another path with a round-trip time of about `rtt`.
    pub(crate) fn on_new_path(&mut self, rtt: Duration, datagram: u64) {
        self.controller.set_datagram(datagram);
        self.controller.on_new_path(self.next_pn, rtt);
        self.reorder_factor = 1;
    }

    /// Records a packet that needs no acknowledgement.
    pub(crate) const fn on_sent_untracked(&mut self, bytes: u64) {
        self.totals.sent_packets += 1;
        self.totals.sent_bytes += bytes;
    }

    /// Records what limited the sender.
    pub(crate) fn on_limited(&mut self, limit: Limit) {
        if limit == Limit::Other {
            self.controller.on_starved();
        }
        if limit != Limit::Controller {
            self.limit = limit;
        }
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.log.in_flight()
    }

    /// The number of records held, and how many times a record was visited.
    pub(crate) fn work(&self) -> (usize, u64) {
        (self.log.len(), self.log.visits())
    }

    /// The number of frames held until they are acknowledged.
    pub(crate) const fn unacked_frames(&self) -> usize {
        self.log.frames() + self.frames_again.len()
    }

    pub(crate) fn floor(&self) -> u64 {
        self.log.floor().min(self.next_pn)
    }

    /// Bytes that congestion control allows to send now.
    pub(crate) fn allowance(&self) -> u64 {
        match self.outage {
            Outage::No => self.controller.allowance(self.log.in_flight()),
            Outage::Since(_) => 0,
        }
    }

    /// Excludes all packets sent until now from the measurement of the path.
    pub(crate) fn on_dead_path(&mut self, now: Instant) {
        self.controller.on_outage(now, self.next_pn);
    }

    pub(crate) fn on_ack(&mut self, now: Instant, ack: &Ack, full: u32) -> AckResult {
        let mut outcome = Outcome::default();
        self.log.apply(ack, self.next_pn, &mut outcome);
        if outcome.forged {
            return AckResult { forged: true, ..AckResult::default() };
        }
        // An ACK that acknowledges no new packet does not show that the path works.
        if outcome.acked.packets > 0 {
            self.last_arrival = Some(now);
            if self.outage != Outage::No {
                self.outage = Outage::No;
                self.on_dead_path(now);
            }
        }
        self.limit_samples(&mut outcome);
        let rtt = outcome
            .arrivals
            .last()
            .filter(|a| a.packet_number == ack.largest && ack.largest > self.largest)
            .map(|a| (now - a.sent).saturating_sub(Duration::from_micros(ack.delay_micros)));
        if rtt.is_some() {
            self.on_answer(Duration::from_micros(ack.delay_micros));
        }
        // A round trip ends when a packet sent after its start has arrived, so the largest
        // acknowledged number counts even if the ACK states a smaller one.
        self.largest = self.largest.max(ack.largest).max(outcome.largest);
        self.last_ack = Some(now);
        self.newest_sent = self.newest_sent.max(outcome.newest_sent);
        if outcome.acked.packets > 0 {
            self.probes_unanswered = 0;
        }
        self.on_spurious(outcome.spurious);
        self.judge(now, &mut outcome);
        self.unreported.on_ack(now, (self.log.oldest(), self.newest_sent), self.answer_time());
        let marked = ack.ce.saturating_sub(self.ce);
        self.ce = self.ce.max(ack.ce);
        self.controller.on_ack(&AckEvent {
            now,
            arrivals: &outcome.arrivals,
            rtt,
            acked: outcome.acked,
            lost: outcome.lost,
            settled: outcome.settled,
            marked,
            largest: self.largest,
            next_packet_number: self.next_pn,
            in_flight: self.log.in_flight(),
            limit: core::mem::replace(&mut self.limit, Limit::Controller),
        });
        let acked = outcome.acked.packets;
        AckResult { acked, marked, ..self.finish(now, outcome, full) }
    }

    /// Drops samples in excess of the number of acknowledged packets, because rate control stores
    /// the samples of a round trip.
    fn limit_samples(&mut self, outcome: &mut Outcome) {
        let room = self.samples_left as u64 + outcome.acked.packets * SAMPLES_PER_PACKET;
        let room = room.min(SAMPLES_MAX) as usize;
        outcome.arrivals.truncate(room);
        self.samples_left = room - outcome.arrivals.len();
        self.totals.samples += outcome.arrivals.len() as u64;
    }

    fn on_spurious(&mut self, packets: u64) {
        self.totals.spurious += packets;
        if packets > 0 {
            self.reorder_factor = (self.reorder_factor * 2).min(REORDER_FACTOR_MAX);
        }
    }

    /// How long a packet is considered reordered before it is declared lost.
    // spec: loss-2
    pub(crate) fn reorder_window(&self) -> Duration {
        let base = self.controller.base_rtt().unwrap_or_else(|| self.srtt());
        let short = (base / 4).clamp(SHORT_PATH_REORDER_WINDOW_MIN, REORDER_WINDOW_MIN);
        let least = (base / 8).max(self.controller.jitter() * 4).max(short);
        (least * self.reorder_factor).min(self.srtt().max(REORDER_WINDOW_MIN))
    }

    pub(crate) fn srtt(&self) -> Duration {
        self.controller.srtt()
    }

    fn judge(&mut self, now: Instant, outcome: &mut Outcome) {
        let (Some(newest), Some(last_ack)) = (self.newest_sent, self.last_ack) else { return };
        let window = self.reorder_window();
        // Without a newer ACK, the passage of time advances the limit. Otherwise the last packets
        // of a transmission would never be declared lost.
        let line = newest + (now - last_ack);
        let waiting = self.log.judge(line.before(window), outcome);
        self.judge_at = waiting
            .map(|sent| now + window.saturating_sub(line - sent) + SHORT_PATH_REORDER_WINDOW_MIN);
    }

    fn finish(&mut self, now: Instant, outcome: Outcome, full: u32) -> AckResult {
        self.totals.acked_packets += outcome.acked.packets;
        self.totals.lost_packets += outcome.lost.packets;
        let mut result = AckResult::default();
        let path = PathState {
            srtt: self.srtt(),
            ambient_loss: self.controller.ambient_loss(),
            window: self.controller.window(),
        };
        let copies = self.repairs.copies(now, &outcome, path);
        for fate in outcome.fates {
            match fate {
                Fate::Arrived { stream, offset, len } => {
                    result.full_arrived += len / u64::from(full.max(1));
                    result.arrived.push((stream, offset, len));
                }
                Fate::Lost { stream, offset, len, generation } => {
                    result.full_lost += len / u64::from(full.max(1));
                    let generation = generation.saturating_add(1);
                    let again = Again { stream, offset, len, generation };
                    self.repairs.push(now, again, copies, path.srtt);
                }
                Fate::FinArrived(stream) => result.fins.push(stream),
                Fate::ControlLost(frames) => self.frames_again.extend(frames),
                Fate::ProbeArrived(size) => result.probes_arrived.push(size),
                Fate::ProbeLost(size) => result.probes_lost.push(size),
            }
        }
        self.repairs.on_time(now);
        let memory = self.srtt() * 2;
        self.log.forget(now, memory);
        let passed =
            self.newest_sent.and_then(|at| self.unreported.passed_over(at, self.answer_time()));
        if let Some(before) = passed {
            self.log.forget_behind(now, memory, before);
        }
        result
    }

    pub(crate) fn take_frames_again(&mut self) -> Vec<Frame> {
        core::mem::take(&mut self.frames_again)
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let repair = self.repairs.next_timeout();
        let end = self.unreported_end().map(|(at, _)| at);
        [self.judge_at, self.controller.next_timeout(), self.outage_at(), repair, end]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the packets that the receiver does not report on are declared lost, and the sending
    /// time up to which this applies.
    fn unreported_end(&self) -> Option<(Instant, Instant)> {
        match self.unreported.next(self.answer_time()) {
            Some((at, Due::End(until))) => Some((at, until)),
            Some((_, Due::Probe)) | None => None,
        }
    }

    fn outage_at(&self) -> Option<Instant> {
        let heard = self.busy_since.max(self.last_arrival.unwrap_or_default());
        match self.outage {
            _ if self.log.in_flight() == 0 => None,
            Outage::No => Some(heard + OUTAGE_AFTER.max(self.srtt() * 3)),
            Outage::Since(_) => None,
        }
    }

    pub(crate) fn on_timeout(&mut self, now: Instant, full: u32) -> AckResult {
        if self.outage_at().is_some_and(|at| at <= now) {
            self.outage = Outage::Since(now);
            self.unreported.on_outage();
            self.totals.outages += 1;
        }
        self.controller.on_timeout(now);
        self.repairs.on_time(now);
        // spec: loss-6
        let end = self.unreported_end().filter(|(at, _)| *at <= now);
        if end.is_none() && self.judge_at.is_none_or(|at| at > now) {
            return AckResult::default();
        }
        if let Some((_, until)) = end {
            self.log.give_up(until);
            self.unreported.on_end();
        }
        let mut outcome = Outcome::default();
        self.judge(now, &mut outcome);
        self.controller.on_ack(&AckEvent {
            now,
            arrivals: &[],
            rtt: None,
            acked: outcome.acked,
            lost: outcome.lost,
            settled: outcome.settled,
            marked: 0,
            largest: self.largest,
            next_packet_number: self.next_pn,
            in_flight: self.log.in_flight(),
            limit: self.limit,
        });
        self.finish(now, outcome, full)
    }

    pub(crate) const fn outage(&self) -> Outage {
        self.outage
    }

    /// Whether no packet in flight awaits an acknowledgement. (Acknowledged packets stay in the log
    /// for a limited time.)
    pub(crate) fn is_idle(&self) -> bool {
        self.log.in_flight() == 0 && self.repairs.is_empty()
    }
}

#[cfg(test)]
mod tests;
