//! Readings of each data connection, for a rule that decides their number while they carry bytes.

use crate::transfer::lock;
use hikyaku_tcp::Info;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// The interval between two readings of the kernel's figures of a connection.
const READ_EVERY: Duration = Duration::from_millis(100);

/// A reading of a data connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gauged {
    /// A number that no other connection of this process has.
    pub id: u32,
    /// Bytes that it has received, or that the server has acknowledged.
    pub bytes: u64,
    /// Its round-trip time, queues included; `None` if the kernel does not report it.
    pub round_trip: Option<Duration>,
}

/// The readings of a channel's data connections. Clones read the same connections.
#[derive(Clone, Debug, Default)]
pub struct Gauges(Arc<Mutex<Vec<Weak<Gauge>>>>);

impl Gauges {
    /// The connections that are open, have carried bytes and do not rest.
    pub fn look(&self) -> Vec<Gauged> {
        let mut all = lock(&self.0);
        all.retain(|gauge| gauge.strong_count() > 0);
        let gauges = all.iter().filter_map(Weak::upgrade);
        let awake = gauges.filter(|gauge| !gauge.is_resting.load(Ordering::Relaxed));
        awake.map(|gauge| gauge.read()).filter(|read| read.bytes > 0).collect()
    }

    /// The gauge of a new connection.
    pub(crate) fn add(&self) -> Arc<Gauge> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let (bytes, micros, due) = (AtomicU64::new(0), AtomicU32::new(0), Mutex::new(None));
        let is_resting = AtomicBool::new(false);
        let gauge = Arc::new(Gauge { id, bytes, micros, due, is_resting });
        lock(&self.0).push(Arc::downgrade(&gauge));
        gauge
    }
}

/// The gauge of a connection, set by its thread.
#[derive(Debug)]
pub(crate) struct Gauge {
    id: u32,
    bytes: AtomicU64,
    /// The round-trip time in microseconds; 0 if it is not known.
    micros: AtomicU32,
    /// The time of the next reading of the kernel's figures.
    due: Mutex<Option<Instant>>,
    /// It carries no bytes, because fewer connections are wanted.
    is_resting: AtomicBool,
}

impl Gauge {
    /// Whether it carries bytes from this moment on.
    pub(crate) fn set_resting(&self, is_resting: bool) {
        self.is_resting.store(is_resting, Ordering::Relaxed);
    }

    fn read(&self) -> Gauged {
        let micros = self.micros.load(Ordering::Relaxed);
        let round_trip = (micros > 0).then(|| Duration::from_micros(micros.into()));
        Gauged { id: self.id, bytes: self.bytes.load(Ordering::Relaxed), round_trip }
    }

    /// Bytes have come.
    pub(crate) fn received(&self, bytes: usize, info: impl FnOnce() -> Option<Info>) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some(info) = self.is_due().then(info).flatten() {
            self.set_round_trip(info.receive_rtt);
        }
    }

    /// Bytes were sent, or wait for room.
    pub(crate) fn sent(&self, info: impl FnOnce() -> Option<Info>) {
        if let Some(info) = self.is_due().then(info).flatten() {
            self.bytes.store(info.acknowledged.bytes(), Ordering::Relaxed);
            self.set_round_trip(info.rtt);
        }
    }

    fn set_round_trip(&self, time: Duration) {
        let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        self.micros.store(micros, Ordering::Relaxed);
    }

    fn is_due(&self) -> bool {
        let (now, mut due) = (Instant::now(), lock(&self.due));
        let is_due = due.is_none_or(|due| now >= due);
        if is_due {
            *due = Some(now + READ_EVERY);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_carry_bytes_are_read_until_they_are_closed() {
        let gauges = Gauges::default();
        let (one, two) = (gauges.add(), gauges.add());
        assert_eq!(gauges.look(), []);
        one.received(5, || None);
        one.received(6, || None);
        let read = |gauges: &Gauges| gauges.look().iter().map(|one| one.bytes).collect::<Vec<_>>();
        assert_eq!(read(&gauges), [11]);
        two.received(1, || None);
        assert_eq!(read(&gauges.clone()), [11, 1]);
        two.set_resting(true);
        assert_eq!(read(&gauges), [11]);
        two.set_resting(false);
        drop(one);
        assert_eq!(read(&gauges), [1]);
    }
}
