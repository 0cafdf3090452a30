//! The model of a path: base delay, queueing delay, jitter, delivery rate.

use crate::compete::deaf::Company;
use crate::filters::{WindowedMin, quantile};
use crate::sample::{AckEvent, Arrival};
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::{Instant, Rate};
use libm::{fmax, fmin};

/// Figures of a path that are kept for the next connection over it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathHint {
    /// Delivery rate that the path carried.
    pub rate: Rate,
    /// Its base round-trip time.
    pub base_rtt: Duration,
}

/// Estimates from one sender's acknowledgements.
///
/// One-way delays are known up to a constant (the clocks differ), so only differences count: the
/// base is the smallest delay of the last ten seconds, beside others of five minutes, the queue is what a packet took beyond it.
#[derive(Clone, Debug)]
pub struct PathModel {
    owd: WindowedMin,
    rtt: WindowedMin,
    srtt: Option<Duration>,
    last: Option<Arrival>,
    /// Packets of the round: arrival by the receiver's clock in microseconds, and queueing delay in seconds.
    round: Vec<(u64, f64)>,
    /// The largest queueing delay of the round.
    peak: f64,
    /// The round's smallest round trip without the queueing delay of the forward path, and the number of samples.
    round_rtt: (f64, u32),
    /// The least by which the queue exceeded what the round trip leaves room for.
    round_excess: f64,
    /// The round's first packet number. Arrivals of earlier packets are not used for its rate.
    round_from: u64,
    round_first: Option<Arrival>,
    rate: Option<f64>,
    /// Negative rates: a windowed maximum.
    rates: WindowedMin,
    /// Negative rates of acknowledged packets by the sender's clock: a windowed maximum.
    acked: WindowedMin,
    /// The part of the largest rate that this flow can still get.
    share: f64,
    /// When the flow last yielded a part of its rate. Packets sent before do not raise `share`.
    given: Instant,
    /// Consecutive rounds with a standing queue and a rate below `share`, and the largest rate of them.
    taken: (u32, f64),
    queue: f64,
    /// The queueing delay over the last few arrivals.
    smooth_queue: f64,
    jitter: f64,
}

/// Window of the base delay: long enough to span several drains, short enough to follow clock skew
/// (50 ppm is 0.5 ms in ten seconds).
const BASE_WINDOW: Duration = Duration::from_secs(10);
/// Window of the base delay beside other flows that fill the queue. No drain of this flow empties it, so the base is
/// the delay from before their arrival. With a shorter window their queue would become a part of the base, and they
/// would seem to have ended. The cost: a path that became longer looks for this time as if they were still active.
const BASE_BESIDE: Duration = Duration::from_secs(300);
/// Window of the largest delivery rate: a path may carry it again.
const RATE_WINDOW: Duration = Duration::from_secs(40);
/// Factor between the rate by the receiver's clock and that by the sender's: rounds by the two contain slightly different
/// packets.
const BELIEVED: f64 = 1.1;
/// A flow that has less than this part of its share for [`TAKEN_ROUNDS`] consecutive rounds gets a smaller share.
const LESS: f64 = 0.95;
const TAKEN_ROUNDS: u32 = 4;
/// Lowest part of its share at which a round counts for that.
const TAKEN_AT_ONCE: f64 = 0.125;
/// Quantile of queueing delays that is the standing queue: all packets wait in it, while jitter and bursts delay only
/// some.
const STANDING: f64 = 0.1;
/// Microseconds of a piece. The standing queue is the mean of those of pieces, so that flows with long and with short
/// rounds measure the same queue while it changes.
const PIECE: u64 = 20_000;
const LEAST_PIECE: usize = 8;
/// Whether a queue is rising is judged by a round's last quarter, but at least [`LEAST_LATEST`] packets: a busy host does
/// not delay all of them.
const LATEST_PART: usize = 4;
const LEAST_LATEST: usize = 8;
/// A delay that grows by more than this between two arrivals cannot be our queue: a queue grows by
/// the excess of the rate over the capacity times the time that passed.
const STEP: f64 = 0.015;
/// The return path has become longer if in a round with at least this number of samples each round trip without the
/// flow's own queue exceeds the base by [`LONGER`] seconds and by [`LONGER_SHARE`] of it.
const LONGER_SAMPLES: u32 = 4;
const LONGER: f64 = 0.010;
/// Seconds of error from the rates of the two hosts' clocks and from rounding.
const CLOCKS: f64 = 0.0002;
const LONGER_SHARE: f64 = 1.0 / 8.0;

/// What happened to the base delay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Step {
    /// No change other than queueing.
    None,
    /// The path became longer by this many seconds at once.
    Longer(f64),
}

impl PathModel {
    pub(crate) const fn new() -> Self {
        Self {
            owd: WindowedMin::new(BASE_WINDOW),
            rtt: WindowedMin::new(BASE_WINDOW),
            srtt: None,
            last: None,
            round: Vec::new(),
            peak: 0.0,
            round_rtt: (f64::INFINITY, 0),
            round_excess: f64::INFINITY,
            round_from: 0,
            round_first: None,
            rate: None,
            rates: WindowedMin::new(RATE_WINDOW),
            acked: WindowedMin::new(BASE_WINDOW),
            share: 0.0,
            given: Instant::ZERO,
            taken: (0, 0.0),
            queue: 0.0,
            smooth_queue: 0.0,
            jitter: 0.0,
        }
    }

    /// Takes a round-trip time measured outside an acknowledgement (the handshake's).
    pub(crate) fn on_rtt(&mut self, now: Instant, rtt: Duration) {
        self.rtt.update(now, nanos(rtt));
        let srtt = self.srtt.unwrap_or(rtt);
        self.srtt = Some(srtt - srtt / 8 + rtt / 8);
    }

    pub(crate) fn on_ack(&mut self, event: &AckEvent<'_>) -> Step {
        let mut step = Step::None;
        for &arrival in event.arrivals {
            if let Step::Longer(by) = self.on_arrival(event.now, arrival) {
                step = Step::Longer(by);
            }
        }
        if let Some(rtt) = event.rtt {
            self.on_rtt(event.now, rtt);
            let (least, seen) = self.round_rtt;
            self.round_rtt = (fmin(least, rtt.as_secs_f64() - self.queue), seen + 1);
            let room = rtt.saturating_sub(self.base_rtt().unwrap_or(rtt));
            self.round_excess = fmin(self.round_excess, self.queue - room.as_secs_f64());
        }
        step
    }

    /// Closes the round of round-trip samples. Any delay of acknowledgements on the return path counts for the window.
    fn end_rtt_round(&mut self) -> Step {
        let excess = core::mem::replace(&mut self.round_excess, f64::INFINITY);
        if self.round_rtt.1 >= LONGER_SAMPLES && excess > CLOCKS {
            // No packet can wait longer than its round trip: the clocks have drifted.
            self.owd.shift((excess * 1e9) as i64);
            self.smooth_queue = fmax(self.smooth_queue - excess, 0.0);
        }
        let (least, seen) = core::mem::replace(&mut self.round_rtt, (f64::INFINITY, 0));
        let Some((_, base)) = self.rtt.get() else { return Step::None };
        let grown = least - base as f64 / 1e9;
        let clear = fmax(LONGER, LONGER_SHARE * base as f64 / 1e9);
        if seen < LONGER_SAMPLES || grown < clear {
            return Step::None;
        }
        self.rtt.shift((grown * 1e9) as i64);
        Step::Longer(grown)
    }

    fn on_arrival(&mut self, now: Instant, arrival: Arrival) -> Step {
        let owd = owd_nanos(&arrival);
        let mut step = Step::None;
        if let Some(last) = self.last {
            let grown = owd.saturating_sub(owd_nanos(&last)) as f64 / 1e9;
            let sent_apart = (arrival.sent - last.sent).as_secs_f64();
            let base = self.owd.get().map_or(owd, |(_, v)| v);
            let above = owd.saturating_sub(base) as f64 / 1e9;
            if grown > STEP + sent_apart && above > STEP && self.rate.is_some() {
                self.owd.shift((grown * 1e9) as i64);
                self.rtt.shift((grown * 1e9) as i64);
                self.round.clear();
                self.round_first = None;
                self.round_rtt = (f64::INFINITY, 0);
                self.smooth_queue = 0.0;
                step = Step::Longer(grown);
            }
        }
        self.owd.update(now, owd);
        let base = self.owd.get().map_or(owd, |(_, v)| v);
        self.queue = owd.saturating_sub(base).max(0) as f64 / 1e9;
        self.smooth_queue += (self.queue - self.smooth_queue) / 8.0;
        if arrival.packet_number >= self.round_from {
            self.round.push((arrival.received_micros, self.queue));
            self.peak = fmax(self.peak, self.queue);
            self.round_first.get_or_insert(arrival);
        }
        self.last = Some(arrival);
        step
    }

    /// Adds a round's rate of acknowledged packets, in bytes a second.
    pub(crate) fn note_acked(&mut self, now: Instant, rate: f64) {
        self.acked.update(now, -(rate as i64));
    }

    /// Upper bound of a credible delivery rate, in bytes a second. A receiver can send any counts and times, but a receiver
    /// that acknowledges packets it has not received is detected. So the bound follows the acknowledged packets.
    // spec: rate-5
    fn believable(&self) -> f64 {
        self.acked.get().map_or(f64::INFINITY, |(_, negative)| BELIEVED * -negative as f64)
    }

    /// Closes a round: its standing queue in seconds, its delivery rate in bytes a second.
    pub(crate) fn end_round(&mut self) -> Option<RoundPath> {
        let step = self.end_rtt_round();
        let round = core::mem::take(&mut self.round);
        let count = round.len();
        let first = self.round_first.take();
        let end = count - (count / LATEST_PART).max(LEAST_LATEST).min(count);
        let mut last: Vec<f64> = round[end..].iter().map(|&(_, queue)| queue).collect();
        let latest = quantile(&mut last, STANDING)?;
        let (queue, deviation) = standing(&round)?;
        // The estimate of jitter rises fast and falls slowly: jitter mistaken for a queue would stop the flow.
        let part = if deviation > self.jitter { 2.0 } else { 8.0 };
        self.jitter += (deviation - self.jitter) / part;
        let rate = first.zip(self.last).and_then(|(a, b)| {
            // A burst after a stall has the rate at which the host reads, not that of the path.
            let micros = b.received_micros.saturating_sub(a.received_micros);
            let enough =
                self.rtt.get().is_none_or(|(_, rtt)| i128::from(micros) * 4000 >= i128::from(rtt));
            rate_between(&a, &b).filter(|_| enough)
        });
        let rate = rate.map(|rate| fmin(rate, self.believable()));
        // The next round measures from this one's last arrival.
        self.round_first = self.last.filter(|last| last.packet_number >= self.round_from);
        if let (Some(rate), Some(last)) = (rate, self.last) {
            // Bytes that a stall held back count only over a time that contains the stall.
            let lasting = fmin(rate, self.rate.unwrap_or(rate));
            self.rates.update(last.sent, -(lasting as i64));
            if first.is_some_and(|first| first.sent >= self.given) {
                self.share = fmax(self.share, lasting);
            }
            self.rate = Some(rate);
        }
        let peak = core::mem::take(&mut self.peak);
        Some(RoundPath { queue, latest, peak, rate, arrivals: count, step })
    }

    /// Starts measuring afresh with packets from `from` on.
    pub(crate) fn forget_round(&mut self, from: u64) {
        self.round.clear();
        self.peak = 0.0;
        self.round_rtt = (f64::INFINITY, 0);
        self.round_first = None;
        self.round_from = from;
    }

    /// The largest queueing delay since the round began, in seconds.
    pub(crate) const fn peak(&self) -> f64 {
        self.peak
    }

    /// Sets the window of the base delay for a flow that is alone or beside others.
    pub(crate) fn remember_base(&mut self, company: Company) {
        let window = match company {
            Company::None => BASE_WINDOW,
            Company::Others => BASE_BESIDE,
        };
        self.owd.remember_for(window);
        self.rtt.remember_for(window);
    }

    /// Smallest round-trip time of the last ten seconds, beside others of five minutes.
    pub fn base_rtt(&self) -> Option<Duration> {
        self.rtt.get().map(|(_, v)| Duration::from_nanos(v.max(0) as u64))
    }

    /// Smoothed round-trip time (RFC 6298's average).
    pub const fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// The last packet's queueing delay.
    pub fn queue(&self) -> Duration {
        Duration::from_secs_f64(self.queue)
    }

    /// The queueing delay over the last few arrivals, in seconds.
    pub(crate) const fn smooth_queue(&self) -> f64 {
        self.smooth_queue
    }

    /// The smallest one-way delay of the same time, in nanoseconds and beside the difference of
    /// the clocks, and when it was last seen.
    pub(crate) fn base_delay(&self) -> Option<(Instant, i64)> {
        self.owd.get()
    }

    /// Median deviation of the queueing delay within a round, in seconds.
    pub(crate) const fn jitter(&self) -> f64 {
        self.jitter
    }

    /// Delivery rate of the last full round, in bytes of UDP payload a second.
    pub(crate) const fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// The largest delivery rate of the last while.
    pub(crate) fn largest_rate(&self) -> f64 {
        self.rates.get().map_or(0.0, |(_, negative)| -negative as f64)
    }

    /// The largest delivery rate that other flows have not taken since.
    pub(crate) fn known_rate(&self) -> f64 {
        fmin(self.largest_rate(), self.share)
    }

    /// Updates the share by a round's rate. While a queue stands the bottleneck is busy, so a lower rate means a smaller
    /// share. A few rounds may come from a busy host, though, and a rate near zero is another fault of the path.
    pub(crate) fn note_share(&mut self, rate: f64, has_queue: bool) {
        let is_less = rate < LESS * self.share && rate > TAKEN_AT_ONCE * self.share;
        if !(has_queue && is_less) {
            self.taken = (0, 0.0);
            return;
        }
        self.taken = (self.taken.0 + 1, fmax(self.taken.1, rate));
        if self.taken.0 >= TAKEN_ROUNDS {
            self.share = self.taken.1;
            self.taken = (0, 0.0);
        }
    }

    /// Yields all rate above `rate` to other flows.
    pub(crate) fn give(&mut self, now: Instant, rate: f64) {
        self.given = now;
        self.share = fmin(self.share, rate);
    }

    /// The path has carried this rate before.
    pub(crate) fn remember(&mut self, now: Instant, rate: f64) {
        self.rates.update(now, -(rate as i64));
        self.share = fmax(self.share, rate);
    }

    pub(crate) const fn set_rate(&mut self, rate: f64) {
        self.rate = Some(rate);
    }
}

/// Measurements of one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundPath {
    pub(crate) queue: f64,
    /// The standing queue of the round's last quarter.
    pub(crate) latest: f64,
    pub(crate) peak: f64,
    pub(crate) rate: Option<f64>,
    pub(crate) arrivals: usize,
    pub(crate) step: Step,
}

/// Bytes a second between two arrivals, by the receiver's clock: immune to what happens to ACKs.
pub(crate) fn rate_between(first: &Arrival, last: &Arrival) -> Option<f64> {
    let micros = last.received_micros.checked_sub(first.received_micros)?;
    let bytes = last.delivered.checked_sub(first.delivered)?;
    (micros > 0).then(|| bytes as f64 * 1e6 / micros as f64)
}

/// A round's standing queue, and the median deviation from the median of each piece; both in seconds. The samples are
/// (arrival in microseconds, queueing delay in seconds).
fn standing(round: &[(u64, f64)]) -> Option<(f64, f64)> {
    let (mut stood, mut deviated, mut at) = (0.0, 0.0, 0);
    while at < round.len() {
        let begin = round[at].0;
        let lies_beyond = |one: &(u64, f64)| one.0.saturating_sub(begin) >= PIECE;
        let long = round[at..].iter().position(lies_beyond).unwrap_or(round.len() - at);
        let mut end = at + long.max(LEAST_PIECE);
        if end + LEAST_PIECE > round.len() {
            end = round.len();
        }
        let mut queues: Vec<f64> = round[at..end].iter().map(|&(_, queue)| queue).collect();
        let weight = queues.len() as f64;
        stood += weight * quantile(&mut queues, STANDING)?;
        let middle = quantile(&mut queues, 0.5)?;
        queues.iter_mut().for_each(|queue| *queue = (*queue - middle).abs());
        deviated += weight * quantile(&mut queues, 0.5)?;
        at = end;
    }
    let all = round.len() as f64;
    (all > 0.0).then(|| (stood / all, deviated / all))
}

/// One-way delay including the difference of the clocks. Any value of the receiver's clock is possible.
fn owd_nanos(arrival: &Arrival) -> i64 {
    let received = i64::try_from(arrival.received_micros).unwrap_or(i64::MAX);
    received.saturating_mul(1000).saturating_sub(nanos(arrival.sent - Instant::ZERO))
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
