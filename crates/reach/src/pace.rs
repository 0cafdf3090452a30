//! Limits of the rates of connections ([`Pace`]), whatever carries them.
//!
//! The bytes of a sender wait before they are given to the carrier. Received bytes wait before they are given to the reader, so
//! the carrier's flow control holds the other end back.

mod timer;

use bytes::Bytes;
use hikyaku_transfer::Pace;
use hikyaku_units::Rate;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A piece of payload is at most what may pass in this time, so that pieces are evenly spaced.
const PIECE_TIME: Duration = Duration::from_millis(20);
/// A piece has this size at least, however low the rate is.
const PIECE_BYTES_MIN: usize = 256;
/// A piece that waits looks this often whether its connection has ended.
const LOOK: Duration = Duration::from_millis(200);

/// The limits of one connection, in both directions.
#[derive(Default)]
pub(crate) struct Paces {
    sent: Direction,
    received: Direction,
    /// Whether the connection has ended.
    is_over: OnceLock<IsOver>,
}

type IsOver = Box<dyn Fn() -> bool + Send + Sync>;

/// The limits of one direction: that of this connection alone, and that which it shares.
#[derive(Default)]
struct Direction {
    is_limited: AtomicBool,
    limits: Mutex<Limits>,
}

#[derive(Clone, Default)]
struct Limits {
    own: Option<Arc<Pace>>,
    shared: Option<Arc<Pace>>,
}

impl Limits {
    fn each(&self) -> impl Iterator<Item = &Arc<Pace>> {
        [&self.own, &self.shared].into_iter().flatten()
    }

    fn least(&self) -> Option<Rate> {
        self.each().map(|pace| pace.rate()).min()
    }
}

impl Direction {
    fn change(&self, change: impl FnOnce(&mut Limits)) {
        let mut limits = lock(&self.limits);
        change(&mut limits);
        self.is_limited.store(limits.least().is_some(), Ordering::Release);
    }

    /// The limits, if there are any.
    fn limits(&self) -> Option<Limits> {
        self.is_limited.load(Ordering::Acquire).then(|| lock(&self.limits).clone())
    }

    /// The start of a slot in which so many bytes pass within all limits.
    fn reserve(&self, now: Instant, bytes: usize) -> Option<Instant> {
        let limits = self.limits().filter(|_| bytes > 0)?;
        limits.each().map(|pace| pace.reserve(now, bytes)).max()
    }
}

impl Paces {
    /// Limits what this connection sends. `is_over` tells whether it has ended: nothing waits then.
    pub(crate) fn set_own(&self, rate: Option<Rate>, is_over: impl FnOnce() -> IsOver) {
        self.is_over.get_or_init(is_over);
        self.sent.change(|limits| limits.own = rate.map(|rate| Arc::new(Pace::new(rate))));
    }

    /// Limits what this connection sends and receives together with others.
    pub(crate) fn share(
        &self,
        (sent, received): (&Arc<Pace>, &Arc<Pace>),
        is_over: impl FnOnce() -> IsOver,
    ) {
        self.is_over.get_or_init(is_over);
        self.sent.change(|limits| limits.shared = Some(sent.clone()));
        self.received.change(|limits| limits.shared = Some(received.clone()));
    }

    /// The lowest limit of what is sent.
    pub(crate) fn least_sent(&self) -> Option<Rate> {
        self.sent.limits()?.least()
    }

    /// The next piece of `bytes` to be sent, when it may be; all of it where nothing is limited.
    pub(crate) async fn piece(&self, bytes: &mut Bytes) -> Bytes {
        let Some(rate) = self.least_sent() else { return std::mem::take(bytes) };
        let most = usize::try_from(rate.in_time(PIECE_TIME).bytes()).unwrap_or(usize::MAX);
        let piece = bytes.split_to(bytes.len().min(most.max(PIECE_BYTES_MIN)));
        self.until(self.sent.reserve(Instant::now(), piece.len())).await;
        piece
    }

    /// When so many bytes that were received may be given to the reader; `None` for at once.
    pub(crate) fn received(&self, bytes: usize) -> Option<Instant> {
        self.received.reserve(Instant::now(), bytes)
    }

    /// Waits until then, or until the connection has ended.
    pub(crate) async fn until(&self, until: Option<Instant>) {
        let Some(until) = until else { return };
        loop {
            let now = Instant::now();
            if now >= until || self.is_over.get().is_some_and(|is_over| is_over()) {
                return;
            }
            timer::sleep_until(until.min(now + LOOK)).await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
