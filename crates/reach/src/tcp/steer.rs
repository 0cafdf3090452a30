//! The number of TCP connections that carry a connection, from what it carries.
//!
//! The end that connected opens pipes and says how many of them carry data, for both directions: it measures what both
//! together move. The rule is that of `hikyaku-tuner`. Nothing is opened before there is something to carry, and a time in
//! which nothing moves counts for nothing.

use super::Further;
use hikyaku_pipes::Extender;
use hikyaku_tuner::{Adaptive, AdaptiveOptions, Decision, LimitedBy, Sample, Tuner};
use hikyaku_units::DataSize;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// How many TCP connections carry a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pipes {
    /// As many as bring something, at most [`PIPES_MAX`].
    #[default]
    Auto,
    /// This many; at least one, and at most [`PIPES_MAX`].
    Fixed(u32),
}

/// The largest number of TCP connections that carry a connection.
pub const PIPES_MAX: u32 = Extender::PIPES_MAX as u32;

/// The shortest time between two looks at the counters.
const TICK: Duration = Duration::from_millis(100);
/// Bytes that are carried by the first pipe, before others are opened.
const ALONE_BYTES: u64 = 256 << 10;
/// Handshakes at a time. A daemon hangs up on more of one address.
const HANDSHAKES: usize = 12;
/// A pause after a pipe could not be opened.
const PAUSE: Duration = Duration::from_secs(1);
/// New pipes begin slowly, and are not measured for so many round trips.
const SETTLE_ROUND_TRIPS: u32 = 4;
const SETTLE_MIN: Duration = Duration::from_millis(300);
/// Then goodput is measured for so many round trips.
const MEASURE_ROUND_TRIPS: u32 = 6;
const MEASURE_MIN: Duration = Duration::from_millis(600);
const MEASURE_MAX: Duration = Duration::from_secs(3);

/// Opens pipes as the tuner asks for them, until the connection has ended.
pub(super) struct Steer {
    extender: Extender,
    further: Further,
    /// The number of the next pipe. The first one has 0.
    next: AtomicU32,
    tuner: Option<Tuner>,
    decision: Decision,
    settle: Duration,
    measure: Duration,
    /// How often the counters are read in an epoch: less than a round trip sees bursts and pauses.
    tick: Duration,
}

impl Steer {
    /// Starts the thread that steers.
    pub(super) fn start(
        extender: Extender,
        pipes: Pipes,
        round_trip: Duration,
        further: Further,
    ) -> io::Result<()> {
        let measure = (MEASURE_ROUND_TRIPS * round_trip).clamp(MEASURE_MIN, MEASURE_MAX);
        let options =
            AdaptiveOptions { cap: PIPES_MAX, epoch: measure, ..AdaptiveOptions::default() };
        let tuner = match pipes {
            Pipes::Auto => Tuner::Adaptive(Adaptive::new(&options)),
            Pipes::Fixed(0 | 1) => return Ok(()),
            Pipes::Fixed(n) => Tuner::Fixed(hikyaku_tuner::Fixed::new(n.min(PIPES_MAX))),
        };
        let steer = Self {
            extender,
            further,
            next: AtomicU32::new(1),
            decision: tuner.start(),
            tuner: (pipes == Pipes::Auto).then_some(tuner),
            settle: (SETTLE_ROUND_TRIPS * round_trip).max(SETTLE_MIN),
            measure,
            tick: TICK.max(3 * round_trip / 2),
        };
        thread::Builder::new().name("tcp-steer".to_owned()).spawn(move || steer.run()).map(drop)
    }

    fn run(mut self) {
        while self.moved() < ALONE_BYTES || self.extender.token().is_none() {
            if self.extender.is_over() {
                return;
            }
            thread::sleep(TICK / 4);
        }
        while !self.extender.is_over() {
            self.open_missing();
            self.extender.set_width(self.decision.n);
            let Some(epoch) = self.epoch() else { return };
            let live = self.extender.figures().pipes as u32;
            let sample = epoch.sample(live.min(self.decision.n));
            if let Some(tuner) = &mut self.tuner {
                self.decision = tuner.handle_sample(&sample);
            }
        }
    }

    /// Bytes that both directions have moved.
    fn moved(&self) -> u64 {
        let figures = self.extender.figures();
        figures.arrived + figures.confirmed
    }

    /// Opens as many pipes as are missing, some at a time.
    fn open_missing(&self) {
        let wanted = self.decision.n as usize;
        while !self.extender.is_over() {
            let missing = wanted.saturating_sub(self.extender.figures().pipes);
            let Some(token) = self.extender.token().filter(|_| missing > 0) else { return };
            let open = || {
                let id = self.next.fetch_add(1, Ordering::Relaxed);
                self.further.open(id, token, &self.extender)
            };
            let opened = thread::scope(|scope| {
                let all: Vec<_> = (0..missing.min(HANDSHAKES)).map(|_| scope.spawn(open)).collect();
                all.into_iter().filter_map(|one| one.join().ok()?.ok()).count()
            });
            if opened == 0 {
                thread::sleep(PAUSE);
                return;
            }
        }
    }

    /// Lets an epoch pass and measures it; `None` if the connection ends.
    fn epoch(&self) -> Option<Epoch> {
        let begin = Instant::now();
        while begin.elapsed() < self.settle {
            thread::sleep(TICK.min(self.settle));
            if self.extender.is_over() {
                return None;
            }
        }
        let mut epoch = Epoch::begin(Instant::now(), self.moved());
        while epoch.elapsed() < self.measure {
            thread::sleep(self.tick);
            if self.extender.is_over() {
                return None;
            }
            epoch.tick(Instant::now(), self.moved());
        }
        Some(epoch)
    }
}

/// What was moved in a time.
struct Epoch {
    begin: Instant,
    now: Instant,
    moved: (u64, u64),
    /// Looks, and those of them at which nothing had moved since the one before.
    ticks: u32,
    idle: u32,
}

impl Epoch {
    const fn begin(now: Instant, moved: u64) -> Self {
        Self { begin: now, now, moved: (moved, moved), ticks: 0, idle: 0 }
    }

    fn elapsed(&self) -> Duration {
        self.now.duration_since(self.begin)
    }

    fn tick(&mut self, now: Instant, moved: u64) {
        self.ticks += 1;
        self.idle += u32::from(moved == self.moved.1);
        (self.now, self.moved.1) = (now, moved);
    }

    /// It says nothing of the path if nothing moved for more than a quarter of it.
    fn sample(&self, n: u32) -> Sample {
        let is_paused = 4 * self.idle > self.ticks;
        Sample {
            n,
            bytes: DataSize::from_bytes(self.moved.1 - self.moved.0),
            elapsed: self.elapsed(),
            limited_by: if is_paused { LimitedBy::Disk } else { LimitedBy::Network },
        }
    }
}
