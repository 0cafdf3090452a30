//! A lane: a channel with its data connections, and the pieces that it carries.

use super::pool::Pool;
use super::{Cause, Done, Download, Event, Lost, Spare};
use crate::chunks::{Foresight, LEAD_MIN, LEAD_ROUND_TRIPS, time_left};
use hikyaku_gridftp::{Channel, Gauged, Gauges, Part, Plan, Progress, Store, Transferred, Wanted};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The state of a channel between two transfers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// Its data connections; 0 if it has none.
    pub(super) width: u32,
    /// Bytes a second of its last piece.
    pub(super) rate: Option<f64>,
}

impl Memory {
    /// The state at the beginning of a transfer that is to have `wanted` connections, and whose bytes are worth `worth` at most.
    /// A number that is near enough stays, because other connections begin slowly.
    pub(super) fn begin(self, wanted: u32, worth: u64) -> Self {
        let worth = u32::try_from(worth).unwrap_or(u32::MAX);
        let least = wanted.min(worth).max(1);
        let is_near = self.width <= 2 * wanted && least < 2 * self.width;
        Self { width: if is_near { self.width } else { least }, ..self }
    }
}

/// Whether a lane gets pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Duty {
    Awake,
    /// It does not, since then.
    Resting(Instant),
}

/// A channel of a transfer.
pub(super) struct Lane {
    pub(super) width: u32,
    pub(super) gate: Arc<Gate>,
    /// Bytes that have come.
    pub(super) counted: AtomicU64,
    /// Those of complete pieces.
    complete: AtomicU64,
    /// Pieces that were requested and are not complete.
    under_way: AtomicU32,
    state: Mutex<State>,
}

struct State {
    duty: Duty,
    rate: Option<f64>,
    /// Once the channel is open.
    gauges: Option<Gauges>,
}

impl Lane {
    pub(super) fn new(Memory { width, rate }: Memory) -> Self {
        let state = Mutex::new(State { duty: Duty::Awake, rate, gauges: None });
        let (counted, complete) = (AtomicU64::new(0), AtomicU64::new(0));
        let (gate, under_way) = (Arc::default(), AtomicU32::new(0));
        Self { width, gate, counted, complete, under_way, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn memory(&self) -> Memory {
        Memory { width: self.width, rate: self.state().rate }
    }

    pub(super) fn duty(&self) -> Duty {
        self.state().duty
    }

    pub(super) fn is_awake(&self) -> bool {
        self.duty() == Duty::Awake
    }

    /// It gets pieces again.
    pub(super) fn wake(&self) {
        self.state().duty = Duty::Awake;
        self.gate.open();
    }

    /// It gets no further piece, and the bytes of those that it has are not read for a while.
    pub(super) fn rest(&self) {
        self.state().duty = Duty::Resting(Instant::now());
        self.gate.pause();
    }

    /// Its channel is lost. Bytes of incomplete pieces do not count.
    pub(super) fn leave(&self) {
        self.state().duty = Duty::Resting(Instant::now());
        self.counted.store(self.complete.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Its connections that carry bytes.
    pub(super) fn flowing(&self) -> Vec<Gauged> {
        let gauges = self.state().gauges.clone();
        let is_idle = self.under_way.load(Ordering::Relaxed) == 0 || self.gate.is_paused();
        gauges.filter(|_| !is_idle).map_or_else(Vec::new, |gauges| gauges.look())
    }
}

/// Where the bytes of a lane pass.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// One of the constants below.
    state: AtomicU8,
    lock: Mutex<()>,
    changed: Condvar,
    /// Nanoseconds that bytes have waited for this end behind it, summed over the connections.
    held: AtomicU64,
}

const OPEN: u8 = 0;
const PAUSED: u8 = 1;
/// Nothing passes any more.
const SHUT: u8 = 2;

impl Gate {
    /// A shut gate stays shut.
    fn set(&self, state: u8) {
        let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if self.state.load(Ordering::Relaxed) != SHUT {
            self.state.store(state, Ordering::Relaxed);
        }
        self.changed.notify_all();
    }

    pub(super) fn open(&self) {
        self.set(OPEN);
    }

    pub(super) fn pause(&self) {
        self.set(PAUSED);
    }

    pub(super) fn shut(&self) {
        self.set(SHUT);
    }

    pub(super) fn is_paused(&self) -> bool {
        self.state.load(Ordering::Relaxed) == PAUSED
    }

    /// The time that bytes have waited for this end, summed over the connections.
    pub(super) fn held(&self) -> Duration {
        Duration::from_nanos(self.held.load(Ordering::Relaxed))
    }

    /// Waits while it is paused, and lets bytes pass to `with`.
    fn pass(&self, at: u64, bytes: &[u8], with: &Store<'_>) -> io::Result<()> {
        if self.is_paused() {
            let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            drop(self.changed.wait_while(held, |_| self.is_paused()));
        }
        if self.state.load(Ordering::Relaxed) == SHUT {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let begin = Instant::now();
        let stored = with(at, bytes);
        let nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.held.fetch_add(nanos, Ordering::Relaxed);
        stored
    }
}

/// The common work of the lanes of a transfer.
pub(super) struct Work<'d, 'p> {
    pub(super) file: &'d Download<'d, 'p>,
    pub(super) pool: Pool,
    /// The mean time from a command to its reply.
    pub(super) round_trip: Duration,
    pub(super) tell: Sender<Event>,
}

impl<'p> Work<'_, 'p> {
    /// Carries pieces over a channel until all is over. Returns whether the channel has not failed.
    pub(super) fn carry(&self, (number, lane): (usize, &Lane), channel: &mut Channel) -> bool {
        lane.state().gauges = Some(channel.gauges());
        while self.pool.wait(lane, self.file.is_cut) {
            let mut pieces = Pieces { work: self, lane, under_way: VecDeque::new() };
            let Err(error) = channel.download(&mut pieces, &lane.counted) else { continue };
            let is_ahead = pieces.under_way.len() > 1;
            lane.leave();
            for piece in pieces.under_way {
                lane.under_way.fetch_sub(1, Ordering::Relaxed);
                self.pool.give_back(piece.range);
            }
            self.lost(Lost { number, error, cause: Cause::Failed, is_ahead });
            return false;
        }
        true
    }

    /// Opens a channel, unless there is one, and carries pieces over it. Returns it if it can be used again.
    pub(super) fn open_and_carry(
        &self,
        (number, lane): (usize, &Lane),
        spare: Option<Channel>,
    ) -> Option<Spare> {
        let mut channel = match spare.map_or_else(self.file.open, Ok) {
            Ok(channel) => channel,
            Err(error) => {
                lane.leave();
                self.lost(Lost { number, error, cause: Cause::NotOpened, is_ahead: false });
                return None;
            }
        };
        let is_usable = self.carry((number, lane), &mut channel);
        is_usable.then(|| Spare { channel, memory: lane.memory() })
    }

    fn lost(&self, lost: Lost) {
        // The receiver outlives the lanes.
        let _ = self.tell.send(Event::Lost(lost));
    }
}

/// A piece that was requested.
struct Piece {
    range: Range<u64>,
    /// It was requested before the end of another one.
    is_ahead: bool,
}

/// The pieces of a lane, as its channel requests them.
struct Pieces<'w, 'd, 'p> {
    work: &'w Work<'d, 'p>,
    lane: &'w Lane,
    under_way: VecDeque<Piece>,
}

impl Pieces<'_, '_, '_> {
    /// Whether the next piece is requested while the oldest one is under way.
    fn is_time(&self, progress: &Progress) -> bool {
        let Some(Piece { range, .. }) = self.under_way.front() else { return true };
        let length = range.end - range.start;
        let lead = self.work.round_trip.saturating_mul(LEAD_ROUND_TRIPS).max(LEAD_MIN);
        let is_alone = self.under_way.len() == 1 && self.work.file.foresight != Foresight::None;
        is_alone && progress.bytes >= length / 2 && time_left(length, progress) <= lead
    }
}

impl<'p> Plan<'p, Arc<Store<'p>>> for Pieces<'_, '_, 'p> {
    fn next(&mut self, under_way: Option<&Progress>) -> Option<Wanted<'p, Arc<Store<'p>>>> {
        let is_time = under_way.is_none_or(|progress| self.is_time(progress));
        if !is_time || !self.lane.is_awake() {
            return None;
        }
        let &Download { path, ref with, is_cut, .. } = self.work.file;
        let rate = self.lane.state().rate;
        let range = self.work.pool.take(rate, is_cut)?;
        let part = Part { path, offset: range.start, length: range.end - range.start };
        self.under_way.push_back(Piece { range, is_ahead: under_way.is_some() });
        self.lane.under_way.fetch_add(1, Ordering::Relaxed);
        let (gate, with) = (Arc::clone(&self.lane.gate), Arc::clone(with));
        let store = move |at: u64, bytes: &[u8]| gate.pass(at, bytes, &*with);
        Some(Wanted { part, connections: self.lane.width, with: Arc::new(store) })
    }

    fn done(&mut self, done: &Transferred) {
        let Some(Piece { range, is_ahead }) = self.under_way.pop_front() else { return };
        let bytes = (range.end - range.start) as f64;
        self.lane.state().rate = Some(bytes / done.elapsed.as_secs_f64().max(1e-3));
        self.lane.under_way.fetch_sub(1, Ordering::Relaxed);
        self.lane.complete.fetch_add(range.end - range.start, Ordering::Relaxed);
        // The receiver outlives the lanes, and looks for events once all pieces are complete.
        let _ = self.work.tell.send(Event::Done(Done { range, done: *done, is_ahead }));
        self.work.pool.complete();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_stay_if_their_number_is_near_enough() {
        let begin = |width, wanted, worth| Memory { width, rate: None }.begin(wanted, worth).width;
        assert_eq!([begin(0, 16, 1000), begin(0, 16, 5), begin(0, 16, 0)], [16, 5, 1]);
        assert_eq!([begin(16, 16, 3), begin(3, 16, 5), begin(3, 16, 6)], [16, 3, 6]);
        assert_eq!([begin(16, 8, 100), begin(16, 4, 100)], [16, 4]);
    }

    #[test]
    fn bytes_wait_at_a_gate_that_is_paused_and_fail_at_one_that_is_shut() {
        let gate = Gate::default();
        gate.pause();
        let passed = AtomicU64::new(0);
        let store = |_, bytes: &[u8]| {
            passed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            Ok(())
        };
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| gate.pass(0, b"abc", &store));
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(passed.load(Ordering::Relaxed), 0);
            gate.open();
            waits.join().unwrap().unwrap();
        });
        assert_eq!(passed.load(Ordering::Relaxed), 3);
        gate.shut();
        gate.open();
        assert!(gate.pass(0, b"abc", &store).is_err());
    }
}
