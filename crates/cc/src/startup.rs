//! Start-up by trains: the capacity is found without ever filling the pipe beyond it.
//!
//! Each round sends one *train*: packets over an eighth of the round-trip time, four times as many
//! as the round before. While the link carries a train as fast as it was sent, it has proven that
//! rate for that long. The first train that arrives stretched has met the capacity, and its rate of
//! arrival *is* the capacity. A train at up to four times the capacity, lasting an eighth of a round
//! trip, puts at most 3/8 of a bandwidth-delay product into the queue, once; doubling a full window
//! until the queue shows puts in a whole one.

use crate::sample::{AckEvent, Limit, Settled};
use core::time::Duration;
use hikyaku_units::Instant;
use libm::{fmax, fmin, sqrt};
use train::{PACKET, Spread, Train};

mod train;

/// Packets of the first train: RFC 9000's ten would add two rounds, and 64 packets are less than a
/// browser's first burst of parallel connections.
pub(crate) const FIRST_PACKETS: u64 = 64;
// spec: rate-1
const GROWTH: f64 = 4.0;
/// A train of which less than this share arrives in time, beyond what the path loses anyway, has
/// met a bottleneck: stretched by a queue, or thinned by its overflow.
const HELD: f64 = 0.8;
/// Below this there is no doubt; between the two, jitter may have done it.
const SURELY: f64 = 0.6;
/// Loss that differs by no more than chance allows between trains is the path's own: three standard
/// deviations and a hundredth.
const SIGMAS: f64 = 3.0;
const SAME_LOSS: f64 = 0.01;
/// Part of a train's size that may be sent before it.
const WORDS: f64 = 0.25;
/// Part of the first train that must arrive. Otherwise it is sent again at a quarter of the rate, at which no queue
/// overflows. No path in the supported range loses half of all packets by itself.
const HEAVY: f64 = 0.5;
const SLOWER: u32 = 4;
/// Maximum number of slower trains.
const SLOWER_TRAINS: u32 = 2;
/// Minimum number of packets of a train.
const LEAST_PACKETS: f64 = 32.0;
/// A train may take this many times its length before the sender is called too slow for it: less
/// would mistake a descheduled process for a slow one.
const SLOW_SENDER: u32 = 8;
/// A train that was held up like the one before, but carried this many times as much, met jitter and
/// not a bottleneck.
const MORE: f64 = 1.3;
/// Maximum number of consecutive trains without enough known arrivals.
const MAX_UNSEEN: u32 = 3;

/// The result of a round of start-up.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Finding {
    /// The train is in flight.
    Waiting,
    /// The link carried this many bytes a second, and perhaps carries more.
    Proven(f64),
    /// The link carries this many bytes a second.
    Capacity(f64),
}

#[derive(Clone, Debug)]
pub(crate) struct Startup {
    size: f64,
    length: Duration,
    /// The length of the next train.
    next_length: Duration,
    train: Train,
    proven: Option<f64>,
    /// The share of the last train that arrived.
    arrived: Option<f64>,
    /// Whether it lost no more than the trains before it.
    as_before: bool,
    /// Packets and losses of the train judged last.
    judged: (u64, u64),
    /// Delivery rate of a train that was delayed, but not clearly.
    doubtful: Option<f64>,
    /// Consecutive trains without enough known arrivals.
    unseen: u32,
    /// The first train, if most of it was lost.
    heavy: Option<Heavy>,
    /// Bytes sent before the first train: an application's first words.
    words: u64,
    /// Packets of all trains by acknowledgements, and by the receiver's counts.
    settled: Settled,
    counted: Counted,
}

/// The receiver's counts of all trains.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    packets: f64,
    arrived: f64,
}

impl Counted {
    fn with(self, share: f64, packets: f64) -> Self {
        Self { packets: self.packets + packets, arrived: self.arrived + packets * share }
    }

    fn share(self) -> Option<f64> {
        (self.packets > 0.0).then(|| self.arrived / self.packets)
    }
}

/// A first train of which little arrived: the share, of how many packets, and how many slower ones
/// have been sent since.
#[derive(Clone, Copy, Debug)]
struct Heavy {
    arrived: f64,
    packets: f64,
    slower: u32,
}

impl Startup {
    /// Start-up whose first train has `size` bytes.
    pub(crate) fn new(size: f64, base_rtt: Duration) -> Self {
        Self {
            size,
            length: train_length(base_rtt),
            next_length: train_length(base_rtt),
            train: Train::default(),
            proven: None,
            arrived: None,
            as_before: true,
            judged: (0, 0),
            doubtful: None,
            unseen: 0,
            heavy: None,
            words: 0,
            settled: Settled::default(),
            counted: Counted::default(),
        }
    }

    /// The round trip is known better than at the begin: the next train is as long as fits it.
    pub(crate) fn set_rtt(&mut self, base_rtt: Duration) {
        self.next_length = train_length(base_rtt);
    }

    /// Bytes that may still be sent in this round.
    pub(crate) fn allowance(&self) -> u64 {
        if self.train.cut_short { 0 } else { (self.size as u64).saturating_sub(self.train.sent) }
    }

    /// Bytes that may be sent with `in_flight` on their way. An application that has less to send
    /// than a train must not wait for the train's answer: it may keep a train's worth in flight.
    pub(crate) fn allowance_beside(&self, in_flight: u64) -> u64 {
        if self.train.cut_short {
            (self.size as u64).saturating_sub(in_flight)
        } else {
            self.allowance()
        }
    }

    /// The train's speed in bytes a second.
    pub(crate) fn rate(&self) -> f64 {
        self.size / self.length.as_secs_f64()
    }

    /// The train size that has this speed.
    pub(crate) fn rate_to_size(&self, rate: f64) -> f64 {
        rate * self.length.as_secs_f64()
    }

    pub(crate) fn on_sent(&mut self, now: Instant, packet_number: u64, bytes: u64) {
        if self.allowance() == 0 {
            return;
        }
        self.train.first.get_or_insert((packet_number, now));
        self.train.last = Some((packet_number, now));
        self.train.sent += bytes;
    }

    /// The sender had no data: a train with a gap is no measurement of the link. A few bytes that an application sends
    /// first do not begin a train.
    pub(crate) fn on_starved(&mut self) {
        if self.train.sent == 0 || !self.allowance_left() {
            return;
        }
        let words = self.words + self.train.sent;
        if self.proven.is_none() && words as f64 <= WORDS * self.size {
            self.words = words;
            self.train = Train::default();
        } else {
            self.train.cut_short = true;
        }
    }

    const fn allowance_left(&self) -> bool {
        self.train.sent < self.size as u64
    }

    /// Packets of the last train, and how many of them were lost, if they were no more than the
    /// path loses anyway.
    pub(crate) fn path_loss(&self) -> Option<(u64, u64)> {
        self.as_before.then_some(self.judged)
    }

    /// Whether the last train may have overflowed a queue. The first one always may.
    pub(crate) const fn may_have_overflowed(&self) -> bool {
        !self.as_before || self.proven.is_none()
    }

    /// When the round must be judged even without further news.
    pub(crate) fn deadline(&self, srtt: Duration) -> Option<Instant> {
        let (_, last) = self.train.last?;
        (self.allowance() == 0).then(|| last + srtt + srtt / 2 + self.length * 4 + ACK_SLACK)
    }

    pub(crate) fn on_ack(&mut self, event: &AckEvent<'_>) -> Finding {
        self.settled.arrived += event.settled.arrived;
        self.settled.lost += event.settled.lost;
        let Some((first, _)) = self.train.first else { return Finding::Waiting };
        self.train.acked.add(event.acked.packets, event.acked.bytes);
        self.train.lost.add(event.lost.packets, event.lost.bytes);
        let last = match self.train.last {
            Some((last, _)) if self.allowance() == 0 => last,
            _ => u64::MAX,
        };
        let members = first..=last;
        for &arrival in event.arrivals.iter().filter(|a| members.contains(&a.packet_number)) {
            self.train.push(arrival);
        }
        if event.limit == Limit::Other {
            self.on_starved();
        }
        let over =
            self.allowance() == 0 && self.train.last.is_some_and(|(last, _)| event.largest >= last);
        match self.held_by_sender(event.now) {
            Some(rate) => Finding::Capacity(rate),
            None if over || self.clearly_stretched() => self.judge(),
            None => Finding::Waiting,
        }
    }

    /// A train that takes many times its length to send has met the sender's own limit: its
    /// processor or its interface. Longer trains would only hide that there is a window at all.
    fn held_by_sender(&self, now: Instant) -> Option<f64> {
        let (_, began) = self.train.first?;
        let elapsed = now - began;
        let slow = self.allowance() > 0 && elapsed > self.length * SLOW_SENDER + ACK_SLACK;
        slow.then(|| self.train.sent as f64 / elapsed.as_secs_f64())
    }

    /// Judges the round with the known arrivals. A rate that a train has proven stays proven if a later train is slower:
    /// then a host has delayed that one.
    pub(crate) fn judge(&mut self) -> Finding {
        match self.judge_train() {
            Finding::Capacity(rate) => {
                Finding::Capacity(fmax(rate, HELD * self.proven.unwrap_or(0.0)))
            }
            other => other,
        }
    }

    fn judge_train(&mut self) -> Finding {
        let train = core::mem::take(&mut self.train);
        if train.cut_short {
            return self.judge_cut_short(&train);
        }
        let Some((arrived, packets)) = train.arrived() else { return self.judge_unseen(&train) };
        self.unseen = 0;
        let contradiction = self.contradiction(arrived, packets);
        if self.arrived.is_none()
            && let Some(finding) = self.among_others(arrived, packets)
        {
            return finding;
        }
        // The first train has no train to compare with, so its loss counts as ambient.
        let expected = self.arrived.unwrap_or(arrived);
        let rate = self.rate();
        let chance = SIGMAS * sqrt(expected * (1.0 - expected) / packets);
        self.as_before = arrived >= expected - chance - SAME_LOSS;
        self.judged = (packets as u64, (packets * (1.0 - arrived)) as u64);
        let spread = train.spread();
        if let Some(spread) = spread
            && spread.carried < HELD * expected * spread.offered
        {
            return self.held(&spread, expected);
        }
        if let Some(share) = contradiction {
            self.as_before = false;
            return Finding::Capacity(share * self.proven.take().unwrap_or(rate) / GROWTH);
        }
        self.doubtful = None;
        self.arrived = Some(arrived);
        self.go_on(rate, rate * GROWTH);
        Finding::Proven(rate)
    }

    /// The acknowledged share of packets, if the receiver counts far more than it acknowledges. Its counts are false then,
    /// start-up ends, and only the rate of the train before may be true. Acknowledgements settle later than counts arrive,
    /// hence the smaller one of the counted shares with this train and without.
    fn contradiction(&mut self, arrived: f64, packets: f64) -> Option<f64> {
        let (before, counted) = (self.counted.share(), self.counted.with(arrived, packets));
        self.counted = counted;
        let known = (self.settled.arrived + self.settled.lost) as f64;
        let share = self.settled.arrived as f64 / fmax(known, 1.0);
        let told = counted.share().map(|now| fmin(now, before.unwrap_or(now)))?;
        (known >= LEAST_PACKETS && share < HELD * told).then_some(share)
    }

    /// A first train with heavy loss may have met other flows in a full queue. A slower train of as many packets
    /// distinguishes that from a path with heavy loss. If it arrives, trains continue from its rate: the first one met the
    /// overflow of another flow's growth, or was too fast itself. If a part of it is lost as well, it is sent once more,
    /// because such an overflow ends within two round trips.
    fn among_others(&mut self, arrived: f64, packets: f64) -> Option<Finding> {
        let Some(heavy) = self.heavy.take() else {
            if arrived >= HEAVY {
                return None;
            }
            self.heavy = Some(Heavy { arrived, packets, slower: 1 });
            self.as_before = false;
            self.length = self.next_length * SLOWER;
            return Some(Finding::Waiting);
        };
        let before = heavy.arrived;
        let chance = SIGMAS * sqrt(before * (1.0 - before) * (1.0 / packets + 1.0 / heavy.packets));
        let is_same = arrived <= before + chance + SAME_LOSS;
        if is_same || arrived >= HELD {
            return None;
        }
        self.as_before = false;
        if heavy.slower < SLOWER_TRAINS {
            self.heavy = Some(Heavy { slower: heavy.slower + 1, ..heavy });
            return Some(Finding::Waiting);
        }
        Some(Finding::Capacity(arrived * self.rate()))
    }

    /// A train with a gap proves no rate. But if its packets were clearly delayed, by half as much again as a whole train
    /// needs, it has met the capacity.
    fn judge_cut_short(&mut self, train: &Train) -> Finding {
        let long = train.sent as f64 >= self.size / 4.0;
        let held = |spread: &Spread| spread.carried < SURELY * SURELY / HELD * spread.offered;
        match train.spread().filter(|spread| long && held(spread)) {
            Some(spread) if self.proven.is_some() => {
                self.as_before = false;
                Finding::Capacity(spread.carried)
            }
            _ => self.proven.map_or(Finding::Waiting, Finding::Proven),
        }
    }

    /// A train of which too few arrivals are known. It is sent again: it may have come before the
    /// handshake's last packet. If that goes on, the path is as bad as it looks.
    fn judge_unseen(&mut self, train: &Train) -> Finding {
        let total = (train.acked.packets + train.lost.packets).max(1);
        let share = train.acked.packets as f64 / total as f64;
        self.unseen += 1;
        self.as_before = false;
        if train.acked.packets > 0 && self.unseen > MAX_UNSEEN {
            return Finding::Capacity(share * self.rate());
        }
        self.proven.map_or(Finding::Waiting, Finding::Proven)
    }

    /// Judges a delayed train. If the delay is clear, or repeated without a higher rate, the rate is the capacity.
    /// Otherwise jitter may be the cause: the rate is proven, and a faster train distinguishes the two.
    fn held(&mut self, spread: &Spread, expected: f64) -> Finding {
        let sure = spread.carried < SURELY * expected * spread.offered;
        let before = self.doubtful.replace(spread.carried);
        match before {
            Some(before) if spread.carried < MORE * before => {
                Finding::Capacity(fmax(spread.carried, before))
            }
            None | Some(_) if !sure => {
                let proven = spread.carried / expected;
                self.go_on(proven, fmin(2.0 * self.rate(), GROWTH * proven));
                Finding::Proven(proven)
            }
            _ => Finding::Capacity(spread.carried),
        }
    }

    /// Prepares the next train.
    fn go_on(&mut self, proven: f64, rate: f64) {
        self.proven = Some(proven);
        self.length = self.next_length;
        self.size = fmax(self.rate_to_size(rate), LEAST_PACKETS * PACKET);
    }

    /// A stretched train is known as such before its end: more than half of its own length has
    /// passed at the receiver than should have.
    fn clearly_stretched(&self) -> bool {
        let enough = self.train.sent as f64 > self.size / 2.0;
        let expected = self.arrived.unwrap_or(1.0);
        enough
            && self.train.spread().is_some_and(|spread| {
                spread.carried < HELD * HELD * expected * spread.offered
                    && spread.received > self.length.as_secs_f64() * 0.75
            })
    }
}

/// An eighth of the round trip, but long enough to be measured with timers of a fraction of a
/// millisecond.
fn train_length(base_rtt: Duration) -> Duration {
    (base_rtt / 8).max(Duration::from_millis(2).min(base_rtt / 2)).max(Duration::from_micros(200))
}

/// The receiver acknowledges at the latest after this (`docs/internals/protocol.md`, ack-3).
const ACK_SLACK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests;
