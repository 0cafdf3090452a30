//! One server: its state, its rate, and what it is asked for.

use crate::ask::Ask;
use crate::ids::AskId;
use crate::meter::Meter;
use crate::segments::SEGMENT_BYTES;
use crate::settings::{Asking, ServerSettings};
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::{Instant, Rate, RetryPolicy};

/// The time that a server has for the bytes that are asked for, on top of the round trip: it covers the time
/// between two looks at the plan.
const ASKED_TIME: Duration = Duration::from_millis(500);

/// A server with more than this to do, on top of the round trip, gives back what is beyond it.
const ASKED_TIME_MAX: Duration = Duration::from_secs(1);

/// The shortest silence after which a server with work is quiet.
const QUIET_MIN: Duration = Duration::from_secs(2);

/// What a server is known to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// It was never connected. Its caller is at it.
    New,
    /// It answers.
    Up,
    /// It has no connection.
    Lost(Retries),
    /// It has a connection and does not answer.
    Quiet(Retries),
}

/// Whether a server gets work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Duty {
    /// It does.
    Awake,
    /// Other servers of its pool do.
    Resting,
}

/// Whether the connection of a server is in use. It matters with [`Asking::Ranges`] only, where a cut costs the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Warmth {
    /// It has carried an ask to its end.
    Warm,
    /// It has to be opened, and begins with a small window.
    Cold,
}

/// Bytes in flight of a connection that has just begun (RFC 6928).
const WINDOW_BYTES: u64 = 14_600;

/// The retries of a server that does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Retries {
    /// How many there were.
    pub(crate) count: u32,
    /// When the next one is due.
    pub(crate) next: Instant,
}

impl Retries {
    /// The first retry is due some time after `now`.
    pub(crate) fn start(now: Instant) -> Self {
        Self { count: 0, next: now + RetryPolicy::DOWNLOAD.wait(1) }
    }

    /// One retry more, at `now`.
    pub(crate) fn again(self, now: Instant) -> Self {
        let count = self.count.saturating_add(1);
        Self { count, next: now + RetryPolicy::DOWNLOAD.wait(count.saturating_add(1)) }
    }
}

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) settings: ServerSettings,
    pub(crate) state: State,
    pub(crate) duty: Duty,
    /// The index of its pool.
    pub(crate) pool: Option<usize>,
    pub(crate) rtt: Duration,
    pub(crate) meter: Meter,
    /// Asks under way, in the order in which the server works on them.
    pub(crate) asks: Vec<Ask>,
    /// Bytes asked for that have not arrived.
    pub(crate) left: u64,
    /// The last sign of life, or the time from which its silence counts.
    pub(crate) heard: Instant,
    /// How long it was silent before its last ask was taken back. It counts on with the next one: other servers that
    /// take over from a frozen server again and again would hide its silence.
    silence: Duration,
    /// Whether its connection is open.
    warmth: Warmth,
    /// The file that it is in the middle of.
    pub(crate) current: Option<u32>,
    /// Bytes that arrived since the rate ceiling was last divided.
    pub(crate) arrived: u64,
    /// The limit that it was given.
    pub(crate) cap: Option<Rate>,
}

impl Server {
    /// A server that is not connected.
    pub(crate) fn new(settings: ServerSettings, begin: Rate) -> Self {
        Self {
            settings,
            state: State::New,
            duty: Duty::Awake,
            pool: None,
            rtt: Duration::ZERO,
            meter: Meter::new(begin),
            asks: Vec::new(),
            left: 0,
            heard: Instant::ZERO,
            silence: Duration::ZERO,
            warmth: Warmth::Cold,
            current: None,
            arrived: 0,
            cap: None,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Whether it answers and gets work.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_up() && self.duty == Duty::Awake
    }

    /// Whether its work may be taken over by others.
    pub(crate) fn gives_back(&self) -> bool {
        !matches!(self.settings.asking, Asking::Pieces(_))
    }

    /// Whether it gets work ahead of time, and loses it if it does not send.
    pub(crate) fn is_timed(&self) -> bool {
        self.settings.asking == Asking::Timed
    }

    /// Whether it may be asked for more at this rate.
    pub(crate) fn has_room(&self, rate: f64) -> bool {
        let is_short = match self.settings.asking {
            Asking::Timed => self.left < self.target(rate),
            Asking::Pieces(_) | Asking::Ranges(_) => true,
        };
        is_short && self.asks.len() < self.settings.asks_max
    }

    /// Its rate in bytes a second, at least 1.
    pub(crate) fn rate(&self, now: Instant) -> f64 {
        let waiting = self.asks.iter().find(|ask| ask.left() > 0);
        self.meter.rate(waiting.map(|ask| ask.due), now).bytes_per_sec().max(1.0)
    }

    /// The bytes that it should have to do at this rate: enough for a round trip and some time.
    pub(crate) fn target(&self, rate: f64) -> u64 {
        (rate * (self.rtt + ASKED_TIME).as_secs_f64()) as u64
    }

    /// The bytes beyond which it gives work back.
    pub(crate) fn target_max(&self, rate: f64) -> u64 {
        (rate * (self.rtt + ASKED_TIME_MAX).as_secs_f64()) as u64
    }

    /// The silence after which it is quiet.
    pub(crate) fn patience(&self) -> Duration {
        QUIET_MIN.max(self.rtt * 4)
    }

    /// When it is quiet if nothing is heard of it, and loses its work. `None` without an ask. An ask counts until its end: that
    /// all of its bytes have arrived is not certain, because some of those that did may be of parts that were cut off. The
    /// client of a server that cannot cancel a request gives it up by itself and reports that, because the server continues
    /// with it.
    pub(crate) fn quiet_at(&self) -> Option<Instant> {
        let is_watched = self.is_up() && self.is_timed() && !self.asks.is_empty();
        is_watched.then(|| self.heard + self.patience())
    }

    /// Its silence until `now` does not count, neither for its rate nor for the verdict that it is quiet.
    pub(crate) fn forgive_silence(&mut self, now: Instant) {
        self.heard = self.heard.max(now);
        self.silence = Duration::ZERO;
        self.meter.skip_to(now);
    }

    /// Seconds until it has sent what it is asked for and `more` bytes.
    pub(crate) fn finish(&self, rate: f64, more: u64) -> f64 {
        let queued = (self.left.saturating_add(more)) as f64 / rate;
        let opening = if more == 0 { 0.0 } else { self.opening(rate, more) };
        queued.max(self.rtt.as_secs_f64() + more as f64 / rate) + opening
    }

    /// Segments that it can be asked for and be done with in this time.
    pub(crate) fn segments_within(&self, rate: f64, secs: f64) -> u64 {
        let first = self.finish(rate, SEGMENT_BYTES);
        if first >= secs { 0 } else { 1 + ((secs - first) * rate / SEGMENT_BYTES as f64) as u64 }
    }

    /// Seconds that `bytes` take longer over a connection that has to be opened: the handshake, and the round trips in which
    /// its window doubles until it carries the rate.
    pub(crate) fn opening(&self, rate: f64, bytes: u64) -> f64 {
        let is_opened = matches!(self.settings.asking, Asking::Ranges(_))
            && self.warmth == Warmth::Cold
            && self.asks.is_empty();
        if !is_opened {
            return 0.0;
        }
        let rtt = self.rtt.as_secs_f64();
        let window = bytes.min((rate * rtt) as u64);
        f64::from((window / WINDOW_BYTES + 1).ilog2() + 1) * rtt
    }

    /// Adds an ask.
    pub(crate) fn push(&mut self, ask: Ask, now: Instant) {
        if self.asks.is_empty() {
            self.heard = self.heard.max(now.before(self.silence));
        }
        self.left += ask.bytes();
        self.asks.push(ask);
    }

    /// Removes the asks that were cut off whole.
    pub(crate) fn drop_empty(&mut self, now: Instant) {
        let had_asks = !self.asks.is_empty();
        self.asks.retain(|ask| ask.bytes() > 0);
        if had_asks && self.asks.is_empty() {
            self.silence = now - self.heard;
            self.warmth = Warmth::Cold;
        }
    }

    /// Removes an ask.
    pub(crate) fn remove(&mut self, id: AskId) -> Option<Ask> {
        let at = self.asks.iter().position(|ask| ask.id == id)?;
        let ask = self.asks.remove(at);
        self.left -= ask.left();
        self.warmth = if ask.is_complete() { Warmth::Warm } else { Warmth::Cold };
        Some(ask)
    }

    /// Bytes of an ask are at the client already. They are no measurement of the server.
    pub(crate) fn leave_out(&mut self, id: AskId, bytes: u64) {
        if let Some(ask) = self.asks.iter_mut().find(|ask| ask.id == id) {
            self.left -= ask.arrive(bytes);
        }
    }

    /// Bytes of an ask arrived. Those of an ask that was taken back count as a sign of life only.
    pub(crate) fn arrive(&mut self, id: AskId, bytes: u64, now: Instant) {
        self.heard = self.heard.max(now);
        self.silence = Duration::ZERO;
        self.arrived = self.arrived.saturating_add(bytes);
        let Some(ask) = self.asks.iter_mut().find(|ask| ask.id == id) else { return };
        self.left -= ask.arrive(bytes);
        self.meter.add(bytes, ask.could_send_from(now), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{Hold, Part, Reach};
    use crate::segments::Run;
    use alloc::vec;

    #[test]
    fn silence_counts_on_when_the_work_was_taken_over_in_between() {
        let mut server = Server::new(ServerSettings::default(), Rate::from_bits_per_sec(1));
        server.state = State::Up;
        let ask = |at: Instant| {
            let part = Part { file: 0, run: Run::new(0, 1), bytes: 5, hold: Hold::Owned };
            Ask::new(AskId(0), vec![part], at, Duration::ZERO)
        };
        let at = Instant::from_millis;
        server.push(ask(at(1_000)), at(1_000));
        assert_eq!(server.quiet_at(), Some(at(3_000)));
        server.asks[0].cut(5, Reach::Untouched, |_| true);
        server.drop_empty(at(2_500));
        assert_eq!(server.quiet_at(), None);
        server.push(ask(at(60_000)), at(60_000));
        assert_eq!(server.quiet_at(), Some(at(60_500)));
        server.arrive(AskId(9), 1, at(60_400));
        assert_eq!(server.quiet_at(), Some(at(62_400)));
    }
}
