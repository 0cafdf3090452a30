//! The time in which goodput is measured: what a rule judges.
//!
//! A window is not counted if this end delayed the connections for more than [`DOUBT`] of it, or if fewer
//! carried bytes than were asked for.

use crate::look::{Carried, Look, Measured, Standing};
use alloc::collections::BTreeMap;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant};

/// A window does not count if it was disturbed for more than this share of it.
const DOUBT: f64 = 0.25;

/// A window that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    began: Instant,
    looked: Instant,
    bytes: u64,
    held_up: Duration,
    /// Bytes of each connection at the beginning, and in the middle.
    each: BTreeMap<u32, u64>,
    middle: Option<(Instant, BTreeMap<u32, u64>)>,
    /// Seconds, summed over the connections that carried bytes.
    carried: f64,
    /// Seconds with fewer connections than were asked for.
    few: f64,
    /// Waiting times of the last looks; those of the first half are dropped.
    queues: Queues,
}

/// Means of waiting times: before and after the middle of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Queues {
    sum: f64,
    looks: u32,
}

/// The use of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Counts,
    /// This end has limited it.
    HeldUp,
    /// Fewer connections carried bytes than were asked for: this many at the end.
    Few(u32),
}

impl Window {
    pub(crate) fn begin(look: &Look<'_>) -> Self {
        Self {
            began: look.now,
            looked: look.now,
            bytes: look.bytes.bytes(),
            held_up: look.held_up,
            each: bytes_of(look),
            middle: None,
            carried: 0.0,
            few: 0.0,
            queues: Queues::default(),
        }
    }

    /// Adds the time since the last look, in which `n` were asked for. The window is to have `length`.
    pub(crate) fn add(
        &mut self,
        look: &Look<'_>,
        (n, queue): (u32, Option<Duration>),
        length: Duration,
    ) {
        let (open, seconds) = (look.connections.len(), (look.now - self.looked).as_secs_f64());
        self.looked = look.now;
        self.carried += open as f64 * seconds;
        self.few += if has_most(open, n) { 0.0 } else { seconds };
        if self.elapsed() < length / 2 {
            self.queues = Queues::default();
        } else {
            self.middle.get_or_insert_with(|| (look.now, bytes_of(look)));
        }
        if let Some(queue) = queue {
            self.queues.sum += queue.as_secs_f64();
            self.queues.looks += 1;
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.looked - self.began
    }

    pub(crate) fn bytes(&self, look: &Look<'_>) -> u64 {
        look.bytes.bytes().saturating_sub(self.bytes)
    }

    pub(crate) fn measured(&self, look: &Look<'_>) -> Measured {
        let elapsed = self.elapsed();
        let mean = self.queues.sum / f64::from(self.queues.looks);
        Measured {
            connections: self.carried / elapsed.as_secs_f64().max(1e-9),
            bytes: DataSize::from_bytes(self.bytes(look)),
            elapsed,
            queue: Duration::try_from_secs_f64(mean).ok(),
            standing: Standing::Unknown,
            added: None,
            asked: 0,
        }
    }

    pub(crate) fn verdict(&self, look: &Look<'_>) -> Verdict {
        let held_up = (look.held_up.saturating_sub(self.held_up)).as_secs_f64();
        if held_up > DOUBT * self.carried {
            return Verdict::HeldUp;
        }
        match self.few > DOUBT * self.elapsed().as_secs_f64() {
            true => Verdict::Few(look.connections.len() as u32),
            false => Verdict::Counts,
        }
    }

    /// The mean rate of the connections that `is_one` names, in bytes a second; `None` if there is none.
    pub(crate) fn rate_of(&self, look: &Look<'_>, is_one: impl Fn(u32) -> bool) -> Option<f64> {
        let count = look.connections.iter().filter(|one| is_one(one.id)).count();
        let (bytes, seconds) = (since(look, &self.each, is_one), self.elapsed().as_secs_f64());
        (count > 0 && seconds > 0.0).then(|| bytes as f64 / seconds / count as f64)
    }

    /// The rate of these connections in the second half, as a multiple of that in the first half: more than 2 in slow start.
    pub(crate) fn growth_of(&self, look: &Look<'_>, is_one: impl Fn(u32) -> bool) -> f64 {
        let Some((at, middle)) = &self.middle else { return 1.0 };
        let (all, late) = (since(look, &self.each, &is_one), since(look, middle, &is_one));
        let (before, after) = (*at - self.began, look.now - *at);
        let early = all.saturating_sub(late) as f64 / before.as_secs_f64().max(1e-6);
        late as f64 / after.as_secs_f64().max(1e-6) / early.max(1.0)
    }
}

/// The bytes that each connection has carried.
pub(crate) fn bytes_of(look: &Look<'_>) -> BTreeMap<u32, u64> {
    look.connections.iter().map(|one| (one.id, one.bytes.bytes())).collect()
}

/// The bytes that the connections which `is_one` names have carried since they had these.
fn since(look: &Look<'_>, had: &BTreeMap<u32, u64>, is_one: impl Fn(u32) -> bool) -> u64 {
    let chosen = look.connections.iter().filter(|one| is_one(one.id));
    let carried = |one: &Carried| {
        let before = had.get(&one.id).copied().unwrap_or(0);
        one.bytes.bytes().saturating_sub(before)
    };
    chosen.map(carried).sum()
}

/// Whether as many connections carry bytes as were asked for, but for an eighth: on a lossy path one of many waits for its second
/// SYN, which takes a second.
pub(crate) const fn has_most(open: usize, n: u32) -> bool {
    8 * open >= 7 * n as usize
}

/// A queue stands if packets wait for more than this share of the round trip, and more than this time.
const STANDING_SHARE: u32 = 8;
const STANDING_MIN: Duration = Duration::from_millis(2);
/// A longer wait is a queue on any path: slow start ends when packets wait for 16 ms (HyStart), and leaves them waiting.
const STANDING_MAX: Duration = Duration::from_millis(12);
/// Packets that wait for this many times the delay of the server wait in a queue.
const SERVER_FACTOR: u32 = 2;

/// The delay of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delay {
    pub(crate) least: Option<Duration>,
    /// Waiting time that is known to be no queue: a server that paces its connections delays packets as well.
    of_server: Duration,
}

impl Delay {
    pub(crate) const fn new() -> Self {
        Self { least: None, of_server: Duration::ZERO }
    }

    /// The least round-trip time that was seen.
    pub(crate) fn round_trip(&self) -> Duration {
        self.least.unwrap_or_default()
    }

    /// How long packets wait in queues now: the lower quartile of the connections' round trips, less the least that was seen.
    /// One connection on a slow machine would be taken for a queue otherwise.
    pub(crate) fn look(&mut self, look: &Look<'_>) -> Option<Duration> {
        let mut all: alloc::vec::Vec<Duration> =
            look.connections.iter().filter_map(|one| one.round_trip).collect();
        all.sort_unstable();
        let handshake = (!look.round_trip.is_zero()).then_some(look.round_trip);
        let seen = all.first().copied().into_iter().chain(handshake).chain(self.least);
        self.least = seen.min();
        let quartile = all.get(all.len() / 4)?;
        Some(quartile.saturating_sub(self.round_trip()))
    }

    /// Whether packets that wait for this time wait in a queue of the path.
    pub(crate) fn is_queue(&self, waits: Duration) -> bool {
        let jitter = (self.round_trip() / STANDING_SHARE).clamp(STANDING_MIN, STANDING_MAX);
        waits > jitter.max(self.of_server * SERVER_FACTOR)
    }

    /// The path is not full although packets wait for this time.
    pub(crate) fn is_of_server(&mut self, waits: Duration) {
        self.of_server = self.of_server.max(waits);
    }
}
