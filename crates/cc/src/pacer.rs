//! Release times: a rate turned into "how many bytes may leave now" and "when may more leave".

use core::num::NonZeroU32;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Rate};
use libm::{fmax, sqrt};

/// A schedule of release times at one rate.
///
/// It remembers when the next byte is due. A sender that wakes late may catch up what it missed,
/// but at most four batches' time: more would turn one late wake-up into a burst for the queue.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: Option<Rate>,
    next: Instant,
    rtt: Duration,
    grain: Grain,
    sharers: NonZeroU32,
}

/// How long batches are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grain {
    /// As long as the path bears.
    #[default]
    Usual,
    /// As short as a processor bears: of a batch that comes to a full queue one packet finds room.
    Fine,
}

impl Pacer {
    /// A pacer; without a rate it never holds anything back.
    pub const fn new(rate: Option<Rate>) -> Self {
        let (next, rtt) = (Instant::ZERO, Duration::from_secs(1));
        Self { rate, next, rtt, grain: Grain::Usual, sharers: NonZeroU32::MIN }
    }

    /// Changes the rate. What was released before keeps its price.
    pub const fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
    }

    /// The rate.
    pub const fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The path's round trip is about this long: batches are to be short beside it.
    pub const fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// Others fill the queue, or do not.
    pub const fn set_grain(&mut self, grain: Grain) {
        self.grain = grain;
    }

    /// This many connections send by one thread, this one among them. Each has longer batches at longer intervals, so that the
    /// thread sends no more of them a second than for one connection.
    pub const fn set_sharers(&mut self, sharers: NonZeroU32) {
        self.sharers = sharers;
    }

    /// The number of connections that send by one thread.
    pub const fn sharers(&self) -> NonZeroU32 {
        self.sharers
    }

    /// The batch that a sender should build at this rate: so much that the batch itself adds no more
    /// than a third of the target queue, and less on short paths.
    pub fn batch(&self) -> u64 {
        let Some(rate) = self.rate else { return u64::MAX };
        let usual = batch_time(self.rtt, rate, self.sharers);
        let time = match self.grain {
            Grain::Usual => usual,
            Grain::Fine => usual.min(FINE_BATCH),
        };
        rate.in_time(time).bytes()
    }

    /// Whether something may leave at `now`.
    pub fn is_due(&self, now: Instant) -> bool {
        self.rate.is_none() || self.next <= now
    }

    /// When the next byte may leave.
    pub fn next_release(&self) -> Option<Instant> {
        self.rate.map(|_| self.next)
    }

    /// Says that `bytes` left at `now`.
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        if let Some(rate) = self.rate {
            let start = self.next.max(now.before(self.catch_up(rate)));
            self.next = start + rate.time_for(DataSize::from_bytes(bytes)).min(MAX_STEP);
        }
    }

    /// The most lateness that is made good.
    fn catch_up(&self, rate: Rate) -> Duration {
        (batch_time(self.rtt, rate, self.sharers) * 4).clamp(LEAST_CATCH_UP, MOST_CATCH_UP)
    }

    /// Forgets the past: the sender had nothing to send, so it has nothing to catch up.
    pub fn on_idle(&mut self, now: Instant) {
        self.next = self.next.max(now);
    }
}

/// How long a batch may take on a path of this round-trip time at this rate, if this many connections send by one thread.
pub(crate) fn batch_time(rtt: Duration, rate: Rate, sharers: NonZeroU32) -> Duration {
    let slower = fmax(GIGABIT / fmax(rate.bytes_per_sec(), 1.0), 1.0);
    let by_rate = BATCH_AT_1G.mul_f64(sqrt(slower)).min(LONGEST_BATCH);
    let alone = (rtt / BATCHES_PER_RTT).max(SHORTEST_BATCH).min(by_rate);
    if sharers == NonZeroU32::MIN {
        return alone;
    }
    alone.max(SHORTEST_BATCH.saturating_mul(sharers.get()).min(LONGEST_OF_MANY))
}

/// Half a millisecond at a gigabit per second, and as the target queue more at less: many slow
/// connections would cost a processor most of its time otherwise.
const BATCH_AT_1G: Duration = Duration::from_micros(500);
/// A gigabit per second in bytes: what the constants here and in the law are stated for.
pub(crate) const GIGABIT: f64 = 125e6;
/// Wake-ups are often later than this on a busy machine.
const LEAST_CATCH_UP: Duration = Duration::from_millis(1);
const MOST_CATCH_UP: Duration = Duration::from_millis(4);
const LONGEST_BATCH: Duration = Duration::from_millis(2);
/// A packet at 100 Mbit/s.
const FINE_BATCH: Duration = Duration::from_micros(120);
/// Timers are hardly better than this. Of several connections each may take this long for its batch in turn.
const SHORTEST_BATCH: Duration = Duration::from_micros(50);
/// The longest batch of one of many connections. In the time that one of them takes, all of them send as much as a connection
/// alone sends in [`SHORTEST_BATCH`] each, so that a queue on the path does not become longer.
const LONGEST_OF_MANY: Duration = Duration::from_millis(10);
/// A path's queue holds some part of a round trip: a quarter where it is small. A batch is an eighth
/// of that.
const BATCHES_PER_RTT: u32 = 32;
/// A rate of almost zero must not push the next release beyond reach of a later rate.
const MAX_STEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
