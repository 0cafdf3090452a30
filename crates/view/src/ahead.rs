//! Frames that are read before they are shown.
//!
//! Threads take windows from a list in the order in which they will be shown. The number of concurrent reads follows from
//! the path: the windows that a round trip holds at the measured rate, and two more. Windows that were read stay in a cache
//! of bounded size, those on the list longest.

use crate::frames::{Figures, Frames, Wanted};
use crate::quality::{Lack, Seen};
use crate::window::Window;
use hikyaku_image_source::ImageError;
use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Reads frames ahead until it is dropped.
pub(crate) struct Ahead {
    shared: Arc<Shared>,
}

/// A window, or why there is none.
pub(crate) type Shown = Result<Arc<Window>, ImageError>;

struct Shared {
    frames: Arc<Frames>,
    state: Mutex<State>,
    changed: Condvar,
    cache_bytes: u64,
    /// The number of concurrent reads, if the user has set it.
    fixed: Option<usize>,
}

struct State {
    /// The windows to read, in order.
    list: VecDeque<Wanted>,
    /// Windows of the last list, which are not evicted.
    kept: HashSet<Wanted>,
    under_way: HashSet<Wanted>,
    done: HashMap<Wanted, Shown>,
    /// Those of `done`, the least recently used first.
    used: VecDeque<Wanted>,
    bytes: u64,
    /// Windows that may be read at once.
    depth: usize,
    seen: Pace,
    /// Frames a second that are wanted, while it plays.
    fps: Option<f64>,
    is_over: bool,
}

/// The rate of reading.
struct Pace {
    since: Instant,
    figures: Figures,
    frames: u64,
    bytes_per_sec: f64,
    /// Whether all that was listed was under way at some time since.
    is_idle: bool,
}

/// Threads, the most windows that are read at once.
const THREADS: usize = 16;
/// Windows that are read at once at least, and before the path is known. A rate that is low because little is under way must
/// not lower what is under way.
const DEPTH_FAR: usize = 10;
/// Minimum interval of a measurement of the rate.
const MEASURE: Duration = Duration::from_millis(500);

impl Ahead {
    /// Starts the threads. `depth` is how many windows are read at once; `None` for what the path needs.
    pub(crate) fn new(
        frames: Arc<Frames>,
        cache_bytes: u64,
        depth: Option<NonZeroU32>,
    ) -> std::io::Result<Self> {
        let cores = thread::available_parallelism().map_or(2, usize::from);
        let fixed = depth.map(|depth| (depth.get() as usize).min(THREADS));
        let usual = if frames.is_far() { DEPTH_FAR } else { cores.clamp(2, THREADS) };
        let (since, figures) = (Instant::now(), frames.figures());
        let state = State {
            list: VecDeque::new(),
            kept: HashSet::new(),
            under_way: HashSet::new(),
            done: HashMap::new(),
            used: VecDeque::new(),
            bytes: 0,
            depth: fixed.unwrap_or(usual),
            seen: Pace { since, figures, frames: 0, bytes_per_sec: 0.0, is_idle: false },
            fps: None,
            is_over: false,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let ahead =
            Self { shared: Arc::new(Shared { frames, state, changed, cache_bytes, fixed }) };
        for _ in 0..THREADS {
            let shared = ahead.shared.clone();
            thread::Builder::new().name("view-ahead".to_owned()).spawn(move || shared.work())?;
        }
        Ok(ahead)
    }

    /// Replaces the list of windows to read by those that will be shown, in order; `fps` is their number a second while the
    /// sequence plays. Reads of the earlier list that have not begun are dropped.
    pub(crate) fn plan(&self, list: impl IntoIterator<Item = Wanted>, fps: Option<f64>) {
        let mut state = self.shared.state();
        state.fps = fps;
        state.list = list.into_iter().collect();
        state.kept = state.list.iter().copied().collect();
        let State { list, done, under_way, .. } = &mut *state;
        list.retain(|wanted| !done.contains_key(wanted) && !under_way.contains(wanted));
        drop(state);
        self.shared.changed.notify_all();
    }

    /// A window that is shown now; waits for it. `None` if the reader ends meanwhile.
    pub(crate) fn take(&self, wanted: Wanted) -> Option<Shown> {
        let mut state = self.shared.state();
        let mut asked = false;
        loop {
            if let Some(shown) = state.done.get(&wanted) {
                let shown = shown.clone();
                state.used.retain(|used| *used != wanted);
                state.used.push_back(wanted);
                return Some(shown);
            }
            if state.is_over {
                return None;
            }
            // It may have been read and evicted since it was asked for.
            if !state.under_way.contains(&wanted) && (!asked || !state.list.contains(&wanted)) {
                state.list.retain(|listed| *listed != wanted);
                state.list.push_front(wanted);
                state.kept.insert(wanted);
                asked = true;
                self.shared.changed.notify_all();
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Windows that are read at once, and bytes a second of late.
    pub(crate) fn pace(&self) -> (usize, f64) {
        let state = self.shared.state();
        (state.depth, state.seen.bytes_per_sec)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let mut state = self.state();
            let wanted = loop {
                if state.is_over {
                    return;
                }
                if state.under_way.len() < state.depth
                    && let Some(wanted) = state.list.pop_front()
                {
                    break wanted;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            state.under_way.insert(wanted);
            state.seen.is_idle |= state.list.is_empty();
            drop(state);
            let shown = self.frames.window(wanted).map(Arc::new);
            let mut state = self.state();
            state.under_way.remove(&wanted);
            state.bytes += size(&shown);
            state.kept.insert(wanted);
            state.done.insert(wanted, shown);
            state.used.push_back(wanted);
            state.seen.frames += 1;
            state.evict(self.cache_bytes);
            let is_due = state.seen.since.elapsed() >= MEASURE;
            drop(state);
            self.changed.notify_all();
            if is_due {
                self.adapt();
            }
        }
    }

    /// Measures the rate, and lets as many windows be read at once as the path needs.
    fn adapt(&self) {
        let figures = self.frames.figures();
        let round_trip = self.frames.round_trip();
        let mut state = self.state();
        let time = state.seen.since.elapsed().as_secs_f64().max(0.001);
        let before = state.seen.figures;
        let read = figures.bytes.saturating_sub(before.bytes);
        let (frames, rate) = (state.seen.frames.max(1), read as f64 / time);
        if let Some(fps) = state.fps {
            let lack = match state.seen.is_idle {
                true => Lack::Nothing,
                false => lack(&figures, &before, round_trip.unwrap_or_default(), frames),
            };
            let frames_per_sec = state.seen.frames as f64 / time;
            self.frames.look(Seen { frames_per_sec, bytes_per_sec: rate, lack }, fps);
        }
        let (since, is_idle) = (Instant::now(), state.list.is_empty());
        state.seen = Pace { since, figures, frames: 0, bytes_per_sec: rate, is_idle };
        if let (None, Some(round_trip)) = (self.fixed, round_trip) {
            state.depth = depth(rate, round_trip, read / frames);
        }
    }
}

/// Windows that are read at once so that a path of this rate and round-trip time is always full.
fn depth(bytes_per_sec: f64, round_trip: Duration, window_bytes: u64) -> usize {
    // Twice the windows of a round trip, so that the rate can grow.
    let in_flight = 2.0 * bytes_per_sec * round_trip.as_secs_f64() / window_bytes.max(1) as f64;
    (in_flight.ceil() as usize + 2).clamp(DEPTH_FAR, THREADS)
}

/// The longer of two waits of the threads: for the path, or for the servers that made windows.
fn lack(after: &Figures, before: &Figures, round_trip: Duration, frames: u64) -> Lack {
    let reading = after.reading.saturating_sub(before.reading);
    let making = after.making.saturating_sub(before.making);
    let trips = round_trip * u32::try_from(frames).unwrap_or(u32::MAX);
    let path = reading.saturating_sub(making).saturating_sub(trips);
    if path > making { Lack::Path } else { Lack::Server }
}

impl State {
    /// Drops windows that were used longest ago and are not on the list, until the others fit.
    fn evict(&mut self, limit: u64) {
        let mut at = 0;
        while self.bytes > limit && at < self.used.len() {
            let oldest = self.used[at];
            if self.kept.contains(&oldest) {
                at += 1;
                continue;
            }
            self.used.remove(at);
            if let Some(shown) = self.done.remove(&oldest) {
                self.bytes -= size(&shown);
            }
        }
    }
}

/// Bytes that a window takes.
fn size(shown: &Shown) -> u64 {
    shown.as_ref().map_or(64, |window| window.bytes().len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_kept_full_by_as_many_windows_as_it_holds() {
        let rtt = Duration::from_millis(150);
        assert_eq!(depth(250e6, rtt, 6_200_000), 15);
        assert_eq!(depth(125e6, rtt, 25_000_000), DEPTH_FAR);
        assert_eq!(depth(1.25e9, rtt, 6_200_000), THREADS);
        assert_eq!(depth(0.0, rtt, 0), DEPTH_FAR);
    }
}
