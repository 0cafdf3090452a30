//! The sender's half of reliability: what is in flight, what is lost, when to ask.

mod repairs;

pub(crate) use repairs::Again;

use self::repairs::{Circumstances, LOSSY, Repairs};
use crate::mtu::BASE;
use crate::sent::{Content, Fate, MAX_RUN, Outcome, Sent, SentLog};
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_cc::{AckEvent, Controller, Limit};
use hikyaku_units::Instant;
use hikyaku_wire::{Ack, Frame, StreamId};

/// Everything between "sent" and "known to have arrived".
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
    /// When something was last newly known to have arrived.
    last_arrival: Option<Instant>,
    largest: u64,
    ce: u64,
    reorder_factor: u32,
    judge_at: Option<Instant>,
    probes_unanswered: u32,
    /// When the last packet was sent that no question has followed yet.
    unasked: Option<Instant>,
    asked: Option<Instant>,
    /// When something was sent while nothing was under way.
    busy_since: Instant,
    outage: Outage,
    limit: Limit,
    pub(crate) totals: Totals,
}

/// Whether anything comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outage {
    /// Acknowledgements come.
    No,
    /// None has come for so long that only probes are sent.
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
}

/// What the connection must do after an ACK.
#[derive(Default)]
pub(crate) struct AckResult {
    pub(crate) arrived: Vec<(StreamId, u64, u64)>,
    pub(crate) probes_arrived: Vec<u16>,
    pub(crate) probes_lost: Vec<u16>,
    pub(crate) full_arrived: u64,
    pub(crate) full_lost: u64,
    pub(crate) forged: bool,
    /// Packets newly known to have arrived, and how many newly reported marks there were.
    pub(crate) acked: u64,
    pub(crate) marked: u64,
}

/// Below a millisecond, what overtakes may be queues of one host; a path of a few milliseconds
/// cannot wait for them, and a quarter of one is what timers can tell.
const MIN_REORDER: Duration = Duration::from_millis(1);
const SHORTEST_REORDER: Duration = Duration::from_micros(250);
/// A host that has other work answers this late.
const MAX_SLACK: Duration = Duration::from_millis(25);
/// With more loss than [`LOSSY`], so many questions are asked within two round trips.
const QUICK_PROBES: u32 = 4;
const MIN_SLACK: Duration = Duration::from_millis(2);
const MAX_REORDER_FACTOR: u32 = 8;
// spec: loss-5
/// When nothing is known to have arrived for this long (and for three round trips) the path is down.
const OUTAGE_AFTER: Duration = Duration::from_secs(1);
/// The pause between questions to a path that is down: short, so that data flow again soon.
const OUTAGE_PROBE: Duration = Duration::from_millis(250);
/// After so many that went unheard the pause doubles, twice: to a second, less than the two within which users
/// expect it to go on.
const OUTAGE_PROBES: u32 = 12;
/// So many numbers are left out of those that may be under way at once, at random: who acknowledges a
/// window that it has not seen is caught by that one. A train of start-up is one too.
const SKIPS: u64 = 4;
/// One of so many times it is two in a row.
const PAIRS: u32 = 4;
/// They are at least and at most so many packets apart, in the mean.
const LEAST_SPACING: u64 = 8;
const MOST_SPACING: u64 = 1 << 13;

impl Recovery {
    pub(crate) fn new(controller: Controller, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        Self {
            controller,
            log: SentLog::default(),
            next_pn: 0,
            next_skip: LEAST_SPACING + rng.u64(0..2 * LEAST_SPACING),
            rng,
            repairs: Repairs::default(),
            frames_again: Vec::new(),
            newest_sent: None,
            last_ack: None,
            last_arrival: None,
            largest: 0,
            ce: 0,
            reorder_factor: 1,
            judge_at: None,
            probes_unanswered: 0,
            unasked: None,
            asked: None,
            outage: Outage::No,
            busy_since: Instant::ZERO,
            limit: Limit::Controller,
            totals: Totals::default(),
        }
    }

    /// The next packet number. Now and then one is left out, to catch a receiver that
    /// acknowledges what it has not seen.
    // spec: ack-6
    // spec: pn-1
    pub(crate) fn take_packet_number(&mut self) -> u64 {
        if self.next_pn >= self.next_skip {
            // Two at times, or who fills only wide holes would not be found out.
            let count = if self.rng.u32(0..PAIRS) == 0 { 2 } else { 1 };
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
        (under_way / (SKIPS * u64::from(BASE))).clamp(LEAST_SPACING, MOST_SPACING)
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
            self.unasked = Some(sent.at);
        }
        if self.log.in_flight() == 0 {
            self.busy_since = sent.at;
        }
        self.log.push(sent);
    }

    /// Packets from now on take another path, of which a round trip takes about `rtt`.
    pub(crate) fn on_new_path(&mut self, rtt: Duration, datagram: u64) {
        self.controller.set_datagram(datagram);
        self.controller.on_new_path(self.next_pn, rtt);
        self.reorder_factor = 1;
    }

    /// A packet that nobody needs to acknowledge.
    pub(crate) const fn on_sent_untracked(&mut self, bytes: u64) {
        self.totals.sent_packets += 1;
        self.totals.sent_bytes += bytes;
    }

    /// What kept the sender from sending.
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

    pub(crate) fn floor(&self) -> u64 {
        self.log.floor().min(self.next_pn)
    }

    /// Bytes that may be sent now.
    pub(crate) fn allowance(&self) -> u64 {
        match self.outage {
            Outage::No => self.controller.allowance(self.log.in_flight()),
            Outage::Since(_) => 0,
        }
    }

    /// Nothing of what was sent until now says what the path carries.
    pub(crate) fn on_dead_path(&mut self, now: Instant) {
        self.controller.on_outage(now, self.next_pn);
    }

    pub(crate) fn on_ack(&mut self, now: Instant, ack: &Ack, full: u32) -> AckResult {
        let mut outcome = Outcome::default();
        self.log.apply(ack, self.next_pn, &mut outcome);
        if outcome.forged {
            return AckResult { forged: true, ..AckResult::default() };
        }
        // An acknowledgement of nothing is no sign of life.
        if outcome.acked.packets > 0 {
            self.last_arrival = Some(now);
            if self.outage != Outage::No {
                self.outage = Outage::No;
                self.on_dead_path(now);
            }
        }
        let rtt = outcome
            .arrivals
            .last()
            .filter(|a| a.packet_number == ack.largest && ack.largest > self.largest)
            .map(|a| (now - a.sent).saturating_sub(Duration::from_micros(ack.delay_micros)));
        self.largest = self.largest.max(ack.largest);
        self.last_ack = Some(now);
        self.newest_sent = self.newest_sent.max(outcome.newest_sent);
        if outcome.acked.packets > 0 {
            self.probes_unanswered = 0;
        }
        self.on_spurious(outcome.spurious);
        self.judge(now, &mut outcome);
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

    fn on_spurious(&mut self, packets: u64) {
        self.totals.spurious += packets;
        if packets > 0 {
            self.reorder_factor = (self.reorder_factor * 2).min(MAX_REORDER_FACTOR);
        }
    }

    /// How long a packet may be overtaken before it counts as lost.
    // spec: loss-2
    pub(crate) fn reorder_window(&self) -> Duration {
        let base = self.controller.base_rtt().unwrap_or_else(|| self.srtt());
        let short = (base / 4).clamp(SHORTEST_REORDER, MIN_REORDER);
        let least = (base / 8).max(self.controller.jitter() * 4).max(short);
        (least * self.reorder_factor).min(self.srtt().max(MIN_REORDER))
    }

    pub(crate) fn srtt(&self) -> Duration {
        self.controller.srtt()
    }

    fn judge(&mut self, now: Instant, outcome: &mut Outcome) {
        let (Some(newest), Some(last_ack)) = (self.newest_sent, self.last_ack) else { return };
        let window = self.reorder_window();
        // With no newer ACK, time itself moves the line: nothing else would judge the last packets.
        let line = newest + (now - last_ack);
        let waiting = self.log.judge(line.before(window), outcome);
        self.judge_at =
            waiting.map(|sent| now + window.saturating_sub(line - sent) + SHORTEST_REORDER);
    }

    fn finish(&mut self, now: Instant, outcome: Outcome, full: u32) -> AckResult {
        self.totals.acked_packets += outcome.acked.packets;
        self.totals.lost_packets += outcome.lost.packets;
        let mut result = AckResult::default();
        let path = Circumstances {
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
                Fate::ControlLost(frames) => self.frames_again.extend(frames),
                Fate::ProbeArrived(size) => result.probes_arrived.push(size),
                Fate::ProbeLost(size) => result.probes_lost.push(size),
            }
        }
        self.repairs.on_time(now);
        self.log.forget(now, self.srtt() * 2);
        result
    }

    pub(crate) fn take_frames_again(&mut self) -> Vec<Frame> {
        core::mem::take(&mut self.frames_again)
    }

    /// The time-out after which the peer is asked what it has.
    fn probe_timeout(&self) -> Duration {
        let srtt = self.srtt();
        // Where many questions are lost, the next one does not wait for the answer to the last.
        if self.controller.ambient_loss() > LOSSY && self.probes_unanswered <= QUICK_PROBES {
            return (srtt / 2).max(MIN_SLACK / 2);
        }
        let base = srtt * 3 / 2 + srtt.clamp(MIN_SLACK, MAX_SLACK);
        base * 2_u32.pow(self.probes_unanswered.min(6))
    }

    /// When the peer must be asked what it has: shortly after the last packet when nothing follows
    /// it, then after ever longer silences.
    // spec: loss-3
    pub(crate) fn ask_at(&self) -> Option<Instant> {
        if let Outage::Since(since) = self.outage {
            return Some(self.asked.unwrap_or(since) + self.outage_pause());
        }
        if let Some(sent) = self.unasked {
            return Some(sent + self.reorder_window());
        }
        Some(self.asked?.max(self.last_ack.unwrap_or_default()) + self.probe_timeout())
    }

    /// Between two questions an answer has time to come (RFC 8085, section 3.1.1: no more than one a round trip
    /// without an answer), and the longer nothing comes the fewer are asked.
    fn outage_pause(&self) -> Duration {
        let doublings = (self.probes_unanswered / OUTAGE_PROBES).min(2);
        (OUTAGE_PROBE * 2_u32.pow(doublings)).max(self.srtt() * 3 / 2)
    }

    /// The question was sent.
    pub(crate) const fn on_asked(&mut self, now: Instant) {
        if self.unasked.is_none() {
            self.probes_unanswered += 1;
        }
        self.unasked = None;
        self.asked = Some(now);
    }

    /// A packet came after so long a silence: the path works again, and the next question need not wait
    /// as long as those that went unheard.
    // spec: loss-3
    pub(crate) fn on_heard(&mut self, silence: Duration) {
        if silence > self.srtt() * 3 + MAX_SLACK {
            self.probes_unanswered = 0;
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let repair = self.repairs.next_timeout();
        [self.judge_at, self.controller.next_timeout(), self.outage_at(), repair]
            .into_iter()
            .flatten()
            .min()
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
            self.totals.outages += 1;
        }
        self.controller.on_timeout(now);
        self.repairs.on_time(now);
        if self.judge_at.is_none_or(|at| at > now) {
            return AckResult::default();
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

    /// Whether nothing is under way of which it is to be heard whether it has arrived. (What has is in the log for a
    /// while.)
    pub(crate) fn is_idle(&self) -> bool {
        self.log.in_flight() == 0 && self.repairs.is_empty()
    }
}

/// A record being filled while a batch is built.
pub(crate) struct Draft {
    pub(crate) sent: Sent,
    pub(crate) bytes: u64,
}

impl Draft {
    /// Whether packet `pn` with `len` bytes of `stream` at `offset` continues this record.
    pub(crate) fn continues(&self, pn: u64, again: &Again) -> bool {
        match &self.sent.content {
            &Content::Data { stream, offset, len, chunk, generation } => {
                self.sent.count < MAX_RUN
                    && self.sent.first + u64::from(self.sent.count) == pn
                    && stream == again.stream
                    && generation == again.generation
                    && offset + u64::from(len) == again.offset
                    && len % chunk == 0
                    && again.len <= u64::from(chunk)
            }
            Content::Control(_) | Content::Probe(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;
