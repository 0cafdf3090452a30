//! The bytes that no lane was asked for, and the lanes.

use super::lane::{Lane, Memory};
use crate::missing::Missing;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a piece at least: those of some blocks for each connection, so that few connections wait for the last one at its end.
const PIECE_BYTES_MIN: u64 = 32 << 20;
/// The time of a piece.
const PIECE_TIME: Duration = Duration::from_secs(5);
/// Towards the end of the file pieces become smaller, so that all lanes end together, but no smaller than this.
const LAST_BYTES_MIN: u64 = 8 << 20;
/// How often a wait looks whether all is over.
const LOOK: Duration = Duration::from_millis(100);

/// The common state of the lanes of a transfer.
pub(super) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    unasked: Missing,
    /// Bytes that were requested.
    asked: u64,
    /// Pieces that were requested and are not complete.
    under_way: usize,
    lanes: Vec<Arc<Lane>>,
    is_over: bool,
}

impl Pool {
    pub(super) fn new(unasked: Missing) -> Self {
        let (asked, under_way, lanes, is_over) = (0, 0, Vec::new(), false);
        let state = State { unasked, asked, under_way, lanes, is_over };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a lane, which is awake.
    pub(super) fn add(&self, memory: Memory) -> Arc<Lane> {
        let lane = Arc::new(Lane::new(memory));
        self.state().lanes.push(Arc::clone(&lane));
        lane
    }

    /// Bytes that have come.
    pub(super) fn counted(&self) -> u64 {
        let state = self.state();
        state.lanes.iter().map(|lane| lane.counted.load(Ordering::Relaxed)).sum()
    }

    /// The time that bytes have waited for this end, summed over the connections.
    pub(super) fn held(&self) -> Duration {
        self.state().lanes.iter().map(|lane| lane.gate.held()).sum()
    }

    /// Bytes that were not requested.
    pub(super) fn unasked(&self) -> u64 {
        self.state().unasked.bytes()
    }

    /// The next piece of a lane with this rate in bytes a second; `None` if there is none.
    pub(super) fn take(
        &self,
        rate: Option<f64>,
        is_cut: &dyn Fn(u64) -> bool,
    ) -> Option<Range<u64>> {
        let mut state = self.state();
        if state.is_over || is_cut(state.asked) {
            return None;
        }
        let awake = state.lanes.iter().filter(|lane| lane.is_awake()).count() as u64;
        let most = piece_bytes(rate, state.unasked.bytes(), awake);
        let range = state.unasked.next(most)?;
        state.unasked.remove(&range);
        state.asked += range.end - range.start;
        state.under_way += 1;
        Some(range)
    }

    /// A piece is complete.
    pub(super) fn complete(&self) {
        self.state().under_way -= 1;
        self.changed.notify_all();
    }

    /// A piece will not be complete.
    pub(super) fn give_back(&self, range: Range<u64>) {
        let mut state = self.state();
        state.under_way -= 1;
        state.asked -= range.end - range.start;
        state.unasked.add(range);
        self.changed.notify_all();
    }

    /// Whether all that is wanted is complete.
    pub(super) fn is_done(&self, is_cut: &dyn Fn(u64) -> bool) -> bool {
        let state = self.state();
        state.under_way == 0 && (state.unasked.bytes() == 0 || is_cut(state.asked))
    }

    /// Waits until a lane may request a piece. `false`: all is over.
    pub(super) fn wait(&self, lane: &Lane, is_cut: &dyn Fn(u64) -> bool) -> bool {
        let mut state = self.state();
        loop {
            if state.is_over {
                return false;
            }
            if lane.is_awake() && state.unasked.bytes() > 0 && !is_cut(state.asked) {
                return true;
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The duty of a lane has changed.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// No further piece is requested. After a failure those that are under way end, too.
    pub(super) fn end(&self, has_failed: bool) {
        let mut state = self.state();
        state.is_over = true;
        for lane in &state.lanes {
            match has_failed {
                true => lane.gate.shut(),
                false => lane.gate.open(),
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// The bytes of the next piece of a lane.
fn piece_bytes(rate: Option<f64>, unasked: u64, lanes: u64) -> u64 {
    let by_time = rate.map_or(0, |rate| (rate * PIECE_TIME.as_secs_f64()) as u64);
    let most = by_time.max(PIECE_BYTES_MIN);
    match lanes {
        0 | 1 => most,
        several => most.min((unasked / (2 * several)).max(LAST_BYTES_MIN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const NO_CUT: &dyn Fn(u64) -> bool = &|_| false;

    #[test]
    fn pieces_take_some_seconds_and_become_smaller_at_the_end() {
        for (rate, unasked, lanes, bytes) in [
            (None, 10_000, 1, 32),
            (Some(1), 10_000, 1, 32),
            (Some(100), 10_000, 1, 500),
            (Some(100), 10_000, 4, 500),
            (Some(100), 800, 4, 100),
            (Some(100), 20, 4, 8),
            (Some(100), 20, 1, 500),
        ] {
            let piece = piece_bytes(rate.map(|rate| (rate * MIB) as f64), unasked * MIB, lanes);
            assert_eq!(piece, bytes * MIB, "{rate:?} {unasked} {lanes}");
        }
    }

    #[test]
    fn every_byte_is_requested_once_unless_its_piece_is_given_back() {
        let pool = Pool::new(Missing::new(0..100 * MIB, &[]));
        drop(pool.add(Memory::default()));
        let mut ranges: Vec<_> = std::iter::from_fn(|| pool.take(None, NO_CUT)).collect();
        assert_eq!(ranges.len(), 4);
        assert!(!pool.is_done(NO_CUT));
        pool.give_back(ranges.remove(1));
        ranges.iter().for_each(|_| pool.complete());
        assert!(!pool.is_done(NO_CUT));
        assert_eq!(pool.take(None, NO_CUT), Some(32 * MIB..64 * MIB));
        pool.complete();
        assert!(pool.is_done(NO_CUT) && pool.unasked() == 0);
    }

    #[test]
    fn nothing_is_requested_behind_a_cut_or_after_the_end() {
        let pool = Pool::new(Missing::new(0..100 * MIB, &[]));
        let is_cut = &|asked| asked >= 60 * MIB;
        assert_eq!(std::iter::from_fn(|| pool.take(None, is_cut)).count(), 2);
        assert!(!pool.is_done(is_cut), "two are under way");
        pool.complete();
        pool.complete();
        assert!(pool.is_done(is_cut));
        pool.end(false);
        assert_eq!(pool.take(None, NO_CUT), None);
        assert!(!pool.wait(&pool.add(Memory::default()), NO_CUT));
    }
}
