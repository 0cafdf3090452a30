//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), as Linux has it since 4.9.

use super::AckInfo;
use hikyaku_units::Instant;
use std::collections::VecDeque;
use std::time::Duration;

pub(super) struct Bbr {
    state: State,
    /// Delivery rates in segments a second, with their rounds. The largest of the last ten rounds
    /// is used.
    rates: VecDeque<(u64, f64)>,
    least: f64,
    least_seen: Instant,
    round: u64,
    /// A round ends when a segment that was sent after this many acknowledgements is acknowledged.
    round_end: u64,
    /// Start-up: the rate at its last significant growth, and the number of rounds since.
    full: (f64, u32),
    window: f64,
    next_send: Instant,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Startup,
    Drain,
    /// The phase of the gain cycle, and when it began.
    ProbeBandwidth(usize, Instant),
    /// The end of the phase with few segments in flight, and whether the path was full before.
    ProbeRtt(Instant, bool),
}

const HIGH_GAIN: f64 = 2.885;
const GAIN_CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const MAX_FILTER_ROUNDS: u64 = 10;
const MIN_RTT_LIFETIME: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
const PROBE_RTT_WINDOW: f64 = 4.0;
const INITIAL_WINDOW: f64 = 10.0;
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// The round-trip time in seconds that is assumed before the first sample.
const ASSUMED_RTT: f64 = 0.001;

impl Bbr {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            state: State::Startup,
            rates: VecDeque::new(),
            least: f64::INFINITY,
            least_seen: now,
            round: 0,
            round_end: 0,
            full: (0.0, 0),
            window: INITIAL_WINDOW,
            next_send: now,
        }
    }

    pub(super) fn window(&self) -> usize {
        match self.state {
            State::ProbeRtt(..) => PROBE_RTT_WINDOW as usize,
            _ => self.window as usize,
        }
    }

    pub(super) const fn next_send(&self) -> Instant {
        self.next_send
    }

    pub(super) fn on_sent(&mut self, now: Instant) {
        let gap = Duration::from_secs_f64(1.0 / self.pacing().max(1.0));
        self.next_send = self.next_send.max(now) + gap;
    }

    fn rate(&self) -> f64 {
        self.rates.iter().map(|&(_, rate)| rate).fold(0.0, f64::max)
    }

    fn pacing(&self) -> f64 {
        let gain = match self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => 1.0 / HIGH_GAIN,
            State::ProbeBandwidth(phase, _) => GAIN_CYCLE[phase],
            State::ProbeRtt(..) => 1.0,
        };
        let rate = self.rate();
        let rate = if rate > 0.0 { rate } else { INITIAL_WINDOW / self.least.min(ASSUMED_RTT) };
        gain * rate
    }

    /// The bandwidth-delay product in segments.
    fn product(&self) -> f64 {
        self.rate() * self.least
    }

    pub(super) fn on_ack(&mut self, ack: &AckInfo) {
        let is_round = ack.acked_before >= self.round_end;
        if is_round {
            self.round += 1;
            self.round_end = ack.acked;
        }
        self.rates.push_back((self.round, ack.rate));
        while self.rates.front().is_some_and(|&(round, _)| round + MAX_FILTER_ROUNDS < self.round) {
            self.rates.pop_front();
        }
        // Only a rate larger than all later ones can become the maximum.
        while self.rates.len() > 1 && self.rates[self.rates.len() - 2].1 <= ack.rate {
            let at = self.rates.len() - 2;
            self.rates.remove(at);
        }
        let is_old = ack.now - self.least_seen > MIN_RTT_LIFETIME;
        if ack.rtt.latest <= self.least || is_old {
            (self.least, self.least_seen) = (ack.rtt.latest, ack.now);
        }
        self.step(ack, is_round, is_old);
        let gain = if self.state == State::Startup { HIGH_GAIN } else { 2.0 };
        let target = (gain * self.product()).max(PROBE_RTT_WINDOW);
        self.window = match self.state {
            State::Startup => (self.window + 1.0).min(target.max(INITIAL_WINDOW)),
            _ => (self.window + 1.0).min(target),
        };
    }

    fn step(&mut self, ack: &AckInfo, is_round: bool, is_old: bool) {
        let now = ack.now;
        match self.state {
            State::Startup if is_round => {
                let rate = self.rate();
                if rate >= self.full.0 * FULL_GROWTH {
                    self.full = (rate, 0);
                } else {
                    self.full.1 += 1;
                }
                if self.full.1 >= FULL_ROUNDS {
                    self.state = State::Drain;
                }
            }
            State::Drain if (ack.in_flight as f64) <= self.product() => {
                self.state = State::ProbeBandwidth(2, now);
            }
            State::ProbeBandwidth(phase, since) => {
                let lasted = (now - since).as_secs_f64() > self.least;
                let is_drained = (ack.in_flight as f64) <= self.product();
                let is_over = if GAIN_CYCLE[phase] < 1.0 { lasted || is_drained } else { lasted };
                if is_over {
                    self.state = State::ProbeBandwidth((phase + 1) % GAIN_CYCLE.len(), now);
                }
            }
            State::ProbeRtt(until, was_full) if now >= until => {
                self.least_seen = now;
                let next = State::ProbeBandwidth(2, now);
                self.state = if was_full { next } else { State::Startup };
            }
            _ => {}
        }
        if is_old && !matches!(self.state, State::ProbeRtt(..)) {
            let was_full = self.full.1 >= FULL_ROUNDS;
            let lasts = PROBE_RTT_TIME.max(Duration::from_secs_f64(ack.rtt.latest));
            self.state = State::ProbeRtt(now + lasts, was_full);
        }
    }

    /// Version 1 ignores single losses.
    pub(super) const fn on_loss(&mut self, _: Instant) {}

    pub(super) const fn on_timeout(&mut self) {
        self.window = 1.0;
    }
}
