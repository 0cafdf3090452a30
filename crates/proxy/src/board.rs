//! What a near gateway knows of its flows: those that are open, and the last ones that are over.
//!
//! Flows enter the board and leave it. While the page, `--json-lines` or `hikyaku proxy status` reads it, a thread takes a
//! sample of rates and buffers twice a second ([`sample`]); otherwise nothing is measured.

pub(crate) mod doing;
pub(crate) mod file;
pub(crate) mod limit;
mod program;
pub(crate) mod sample;
pub(crate) mod status;
pub(crate) mod write_back;

use crate::meter::Meters;
use crate::switch::Route;
use hikyaku_forward::{Report, Waited};
use limit::FarParts;
use serde_json::{Value, json};
use status::{Ended, Status};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The flows of a near gateway.
pub(crate) struct Board {
    begun: Instant,
    /// Where the far gateway runs, for people.
    far: String,
    state: Mutex<State>,
    /// Somebody has begun to look, a sample was taken, or the gateway ends.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: u64,
    open: BTreeMap<u64, Arc<Track>>,
    ended: VecDeque<Ended>,
    /// What the far gateway said last of each open flow, by its stream.
    far: HashMap<u32, FarTimes>,
    /// Flows that went direct.
    direct: u64,
    /// Somebody has looked; until then it goes on.
    watched_until: Option<Instant>,
    latest: Arc<Status>,
    samples: u64,
    is_over: bool,
}

/// A flow that is open.
pub(crate) struct Track {
    id: u64,
    ends: Option<Ends>,
    target: String,
    begun: Instant,
    /// How it goes, and the number of its stream.
    stream: OnceLock<(Route, u32)>,
    pub(crate) meters: Arc<Meters>,
}

/// What the far gateway has said of a flow.
struct FarTimes {
    waited: Waited,
    at: Instant,
    parts: Option<FarParts>,
}

/// The place of an open flow. Dropping it ends the flow.
pub(crate) struct Place {
    board: Arc<Board>,
    track: Arc<Track>,
    end: String,
}

/// The two ends of a program's TCP connection to the gateway. One at a Unix socket has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) program: SocketAddr,
    pub(crate) gateway: SocketAddr,
}

/// A flow that a program asks for.
pub(crate) struct Asking {
    pub(crate) ends: Option<Ends>,
    /// Where to: what the user reads.
    pub(crate) target: String,
}

/// Flows that are over and are remembered.
const ENDED_MAX: usize = 50;
/// Characters of a target that are kept: the address of a page may be long.
const TARGET_CHARS_MAX: usize = 300;
/// After somebody has looked, samples are taken for so long.
const WATCHED: Duration = Duration::from_secs(5);
/// What the far gateway has said holds for so long.
const FAR_FRESH: Duration = Duration::from_secs(3);

impl Board {
    /// A board of a gateway that begins.
    pub(crate) fn new(far: String, now: Instant) -> Arc<Self> {
        let latest = Arc::new(Status { far: far.clone(), ..Status::default() });
        let state = Mutex::new(State { latest, ..State::default() });
        Arc::new(Self { begun: now, far, state, changed: Condvar::new() })
    }

    /// A flow begins.
    pub(crate) fn enter(self: &Arc<Self>, asking: Asking, now: Instant) -> Place {
        let mut state = self.state();
        state.next += 1;
        let track = Arc::new(Track {
            id: state.next,
            ends: asking.ends,
            target: asking.target.chars().take(TARGET_CHARS_MAX).collect(),
            begun: now,
            stream: OnceLock::new(),
            meters: Arc::default(),
        });
        state.open.insert(track.id, track.clone());
        Place { board: self.clone(), track, end: "reset".to_owned() }
    }

    /// Whether a flow is open.
    pub(crate) fn has_flows(&self) -> bool {
        !self.state().open.is_empty()
    }

    /// The far gateway has said what its flows wait for.
    pub(crate) fn hear(&self, report: &Report, now: Instant) {
        let mut state = self.state();
        for waited in &report.flows {
            let is_open = state
                .open
                .values()
                .any(|track| track.stream.get() == Some(&(Route::Carried, waited.flow)));
            if !is_open {
                continue;
            }
            let before = state.far.get(&waited.flow);
            let parts = before.map(|before| before.until(*waited, now));
            state.far.insert(waited.flow, FarTimes { waited: *waited, at: now, parts });
        }
    }

    /// There is another connection to the far gateway, with streams of the same numbers.
    pub(crate) fn forget_far(&self) {
        self.state().far.clear();
    }

    /// Somebody looks: the last sample.
    pub(crate) fn look(&self, now: Instant) -> Arc<Status> {
        let mut state = self.state();
        state.watched_until = Some(now + WATCHED);
        self.changed.notify_all();
        state.latest.clone()
    }

    /// Somebody looks: the next sample, for which this waits at most `patience`.
    pub(crate) fn look_anew(&self, now: Instant, patience: Duration) -> Arc<Status> {
        self.look(now);
        let state = self.state();
        let before = state.samples;
        let is_old = |state: &mut State| state.samples == before && !state.is_over;
        let waited = self.changed.wait_timeout_while(state, patience, is_old);
        waited.unwrap_or_else(PoisonError::into_inner).0.latest.clone()
    }

    /// The bytes that were carried since the begin of the gateway.
    pub(crate) fn sums(&self, now: Instant) -> Value {
        let state = self.state();
        json!({
            "seconds": now.saturating_duration_since(self.begun).as_secs_f64(),
            "connections": state.next,
            "direct": state.direct,
            "ended": state.ended,
        })
    }

    /// The gateway ends, and nobody waits any longer.
    pub(crate) fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Waits until somebody looks; `false` if the gateway ends.
    fn wait_for_a_look(&self) -> bool {
        let is_idle = |state: &mut State| {
            let is_watched = state.watched_until.is_some_and(|until| Instant::now() < until);
            !is_watched && !state.is_over
        };
        let waited = self.changed.wait_while(self.state(), is_idle);
        !waited.unwrap_or_else(PoisonError::into_inner).is_over
    }

    /// Waits for `time`, or until the gateway ends.
    fn pause(&self, time: Duration) {
        let waited = self.changed.wait_timeout_while(self.state(), time, |state| !state.is_over);
        drop(waited);
    }

    fn publish(&self, status: Status) {
        let mut state = self.state();
        state.latest = Arc::new(status);
        state.samples += 1;
        self.changed.notify_all();
    }

    fn open(&self) -> Vec<Arc<Track>> {
        self.state().open.values().cloned().collect()
    }

    fn direct(&self) -> u64 {
        self.state().direct
    }

    fn ended(&self) -> Vec<Ended> {
        self.state().ended.iter().cloned().collect()
    }

    /// What the far gateway has said of a flow of late.
    fn far_parts(&self, track: &Track, now: Instant) -> Option<FarParts> {
        let stream = match track.stream.get()? {
            (Route::Carried, stream) => stream,
            // There is no path between gateways.
            (Route::Direct, _) => return Some(FarParts { server: 1.0, reader: 1.0, path: 0.0 }),
        };
        let state = self.state();
        let times = state.far.get(stream)?;
        times.parts.filter(|_| now.saturating_duration_since(times.at) < FAR_FRESH)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FarTimes {
    /// The parts of the time since then that the flow has waited.
    fn until(&self, waited: Waited, now: Instant) -> FarParts {
        let time = now.saturating_duration_since(self.at).as_secs_f64().max(f64::MIN_POSITIVE);
        let part = |of: fn(&Waited) -> Duration| {
            of(&waited).saturating_sub(of(&self.waited)).as_secs_f64() / time
        };
        FarParts {
            server: part(|waited| waited.server),
            path: part(|waited| waited.path),
            reader: part(|waited| waited.reader),
        }
    }
}

impl Place {
    /// What passes in the flow.
    pub(crate) fn meters(&self) -> Arc<Meters> {
        self.track.meters.clone()
    }

    /// How the flow goes, and the stream that it has.
    pub(crate) fn set_stream(&self, route: Route, stream: u32) {
        if self.track.stream.set((route, stream)).is_ok() && route == Route::Direct {
            self.board.state().direct += 1;
        }
    }

    /// How the flow ends, in words.
    pub(crate) fn set_end(&mut self, end: String) {
        self.end = end;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.board.state();
        state.open.remove(&self.track.id);
        if let Some((Route::Carried, stream)) = self.track.stream.get() {
            state.far.remove(stream);
        }
        let seconds = self.track.begun.elapsed().as_secs_f64();
        let ended = Ended {
            id: self.track.id,
            target: self.track.target.clone(),
            end: std::mem::take(&mut self.end),
            seconds,
            received_bytes: self.track.meters.incoming.bytes(),
            sent_bytes: self.track.meters.outgoing.bytes(),
        };
        state.ended.push_front(ended);
        state.ended.truncate(ENDED_MAX);
    }
}

#[cfg(test)]
mod tests;
