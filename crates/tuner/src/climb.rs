//! A rule for transfers that can change their number of connections at any time.
//!
//! - It begins with as many connections as other programs have, all at once.
//! - Connections that are added are judged by what the ones before brought at the same age. Both are in slow start then: on an
//!   empty path a new one brings as much, on a full one at most half, whatever slow start brings in excess.
//! - The number grows only while no queue stands, as the connections' round-trip times show. It falls by one at a time, and stays
//!   where it is when goodput falls with it and no queue stands.
//! - From time to time half of a large number is given up, to see whether it is needed. A transfer that comes to a full path
//!   takes the waiting time there for the path's own delay, and sees no queue.
//!
//! On a full path all tuned transfers so come back to the number of the beginning and have equal shares. On a path that loss or
//! windows limit, all go to the largest number: none takes anything from another. `docs/internals/tuner.md` has the reason of
//! each constant.

use crate::look::{Held, Look, Measured, Standing};
use crate::sample::Phase;
use crate::window::{Delay, Verdict, Window, has_most};
use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;
use hikyaku_units::{DataSize, Instant};

mod judge;

/// Options of [`Controller::climb`](crate::Controller::climb).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClimbOptions {
    /// Connections of the beginning, and the least number while all of them are of use. Default 16, as other programs have.
    pub first: u32,
    /// The largest number. Default 64: beyond it hosts and servers suffer, whatever the path gives.
    pub cap: u32,
}

impl Default for ClimbOptions {
    fn default() -> Self {
        Self { first: 16, cap: 64 }
    }
}

/// New connections are not measured for this time after all of them carry bytes.
const SETTLE_MIN: Duration = Duration::from_millis(300);
const SETTLE_ROUND_TRIPS: u32 = 2;
/// Then goodput is measured for this time.
const WINDOW_MIN: Duration = Duration::from_millis(600);
const WINDOW_ROUND_TRIPS: u32 = 3;
/// A handshake, and a request.
const OPENING_ROUND_TRIPS: u32 = 2;
/// Time that connections have to come up.
const OPEN_MAX: Duration = Duration::from_secs(5);
/// Time that a connection which is given up has for the rest of its request, before windows begin beside it.
const REST_MAX: Duration = Duration::from_secs(2);
/// Windows in a row with connections missing, before what is there is taken for all that is granted.
const MISSES_MAX: u32 = 3;
/// Interval between two connections that are closed: the others reach its share in about this time.
const SHED: Duration = Duration::from_millis(800);
/// Divisor of that interval during a proof, which is short.
const SHED_OF_PROOF: u32 = 10;
/// A number that is held for this time is one that a later transfer may begin with.
const HELD_TIME: Duration = Duration::from_secs(10);
/// Above this number they are given up twice as fast.
const MANY: u32 = 32;

/// Doubles while new connections bring as much as old ones, stays, and proves what it holds. See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Climb {
    first: u32,
    /// The number that is asked for now. It follows `goal`: up at once, down one by one.
    n: u32,
    goal: u32,
    cap: u32,
    /// Connections are opened and given up in groups of this number.
    unit: u32,
    state: State,
    watch: Watch,
    /// When the number was changed last.
    changed: Instant,
    /// The connections that were open when others were added.
    old: BTreeSet<u32>,
    misses: u32,
    delay: Delay,
    is_standing: bool,
    /// When more connections were tried last although packets waited.
    doubted: Option<Instant>,
    /// Windows in a row in which the new connections were in slow start.
    growing: u32,
    /// Time until the end of the transfer at the rate of the last window, if its end is known.
    ends_in: Option<Duration>,
    proof: Proof,
    began: Option<Instant>,
    /// Bytes of each connection at a time. Their number has not changed from then on.
    even: Option<(Instant, BTreeMap<u32, u64>)>,
    /// The number of the last windows, whether a queue stood in them, and since when it is so.
    steady: Option<(u32, Standing, Instant)>,
    held: Option<Held>,
}

/// The purpose of the present number.
#[derive(Clone, Copy, Debug)]
enum State {
    First,
    /// Others were added to `before`, which had this goodput, and each of them `unit` at the age at which others were added.
    Growing {
        before: u32,
        goodput: f64,
        unit: f64,
    },
    Holding(Holding),
    /// A few more, for one window.
    Trying {
        before: u32,
        goodput: f64,
        wait: u32,
        room: Room,
    },
    /// A few less, for one window.
    Lessening {
        before: u32,
        goodput: f64,
        wait: u32,
    },
    /// Half of them, for one window.
    Proving {
        before: u32,
        goodput: f64,
    },
}

/// The number stays, or falls one by one to the one that was chosen.
#[derive(Clone, Copy, Debug)]
struct Holding {
    /// Windows between two tries, and those that are left until the next one.
    wait: u32,
    left: u32,
    /// Goodput of the last windows, the latest one first.
    last: [Option<f64>; 3],
    /// Windows in a row in which a queue stood, and in which none did.
    standing: u32,
    clear: u32,
    /// Goodput when the number was chosen.
    chosen: f64,
    room: Room,
}

/// Whether a queue alone has ended the growth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    /// The number is doubled as soon as the queue has gone: it may have been that of slow start.
    WhenEmpty,
    None,
}

/// When a window begins.
#[derive(Clone, Debug)]
enum Watch {
    /// The connections have been open since then, if they are.
    Settling(Option<Instant>),
    Measuring(Window),
}

/// The last proof that a large number is needed.
#[derive(Clone, Copy, Debug)]
struct Proof {
    at: Instant,
    /// Time until the next one.
    every: Duration,
    found: Found,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Nothing,
    /// Others have taken what was given up.
    Others,
}

impl Climb {
    /// A rule that has measured nothing. Zeros among the numbers are taken for 1.
    pub(crate) fn new(options: &ClimbOptions) -> Self {
        let cap = options.cap.max(1);
        let first = options.first.clamp(1, cap);
        Self {
            first,
            n: first,
            goal: first,
            cap,
            unit: 1,
            state: State::First,
            watch: Watch::Settling(None),
            changed: Instant::ZERO,
            old: BTreeSet::new(),
            misses: 0,
            delay: Delay::default(),
            is_standing: false,
            doubted: None,
            growing: 0,
            ends_in: None,
            proof: Proof { at: Instant::ZERO, every: judge::PROVE_LATER, found: Found::Nothing },
            began: None,
            even: None,
            steady: None,
            held: None,
        }
    }

    /// A transfer on the same path has held this number without a queue: half of it is not too much.
    pub(crate) fn begin_after(&mut self, held: u32) {
        if self.began.is_none() {
            let n = (held / 2).clamp(self.first, self.cap.max(self.first)) / self.unit * self.unit;
            (self.n, self.goal) = (n, n);
        }
    }

    /// The last number that was held for some time.
    pub(crate) const fn held(&self) -> Option<Held> {
        self.held
    }

    /// The rule for connections that are opened and given up in groups of `unit`.
    pub(crate) fn in_groups(self, unit: u32) -> Self {
        Self { unit: unit.clamp(1, self.first), ..self }
    }

    /// How many connections are to be open now.
    pub(crate) const fn n(&self) -> u32 {
        self.n
    }

    pub(crate) const fn phase(&self) -> Phase {
        match self.state {
            State::First => Phase::First,
            State::Growing { .. } => Phase::Grow,
            State::Holding(_) => Phase::Hold,
            State::Trying { .. } => Phase::Try,
            State::Lessening { .. } => Phase::Less,
            State::Proving { .. } => Phase::Prove,
        }
    }

    /// No more than this are granted.
    pub(crate) fn keep_to(&mut self, cap: u32) {
        self.cap = cap;
        (self.n, self.goal) = (self.n.min(cap), self.goal.min(cap));
    }

    /// Returns the window that is over, and the number that seems to be granted if that is less than what was asked for.
    pub(crate) fn handle_look(
        &mut self,
        look: &Look<'_>,
        cap: u32,
    ) -> (Option<Measured>, Option<u32>) {
        if self.began.is_none() {
            (self.began, self.changed, self.proof.at) = (Some(look.now), look.now, look.now);
        }
        self.keep_to(cap);
        let queue = self.delay.look(look);
        if !self.shed(look.now) {
            return (None, None);
        }
        let length = self.window_time();
        match &mut self.watch {
            Watch::Settling(_) => {
                if self.is_settled(look) {
                    self.watch = Watch::Measuring(Window::begin(look));
                }
                (None, None)
            }
            Watch::Measuring(window) => {
                window.add(look, (self.n, queue), length);
                if window.elapsed() < length {
                    return (None, None);
                }
                let window = window.clone();
                self.watch = Watch::Measuring(Window::begin(look));
                self.end(look, &window)
            }
        }
    }

    /// Gives one connection up if it is time. Returns whether the connections may be measured.
    fn shed(&mut self, now: Instant) -> bool {
        if self.n > self.goal && !self.pays(judge::STEPS_OF_GROWTH) {
            self.goal = self.n;
        }
        if self.n <= self.goal {
            return true;
        }
        let every = match (&self.state, self.delay.round_trip()) {
            (State::Proving { .. }, rtt) => SHED.max(rtt) / SHED_OF_PROOF,
            (_, rtt) => {
                let many = if self.n > MANY { 2 } else { 1 };
                let standing = if self.is_standing { 2 } else { 1 };
                SHED.max(rtt) / (many * standing)
            }
        };
        if now - self.changed >= every {
            (self.n, self.changed) = (self.n.saturating_sub(self.unit).max(self.goal), now);
        }
        matches!(self.state, State::Holding(_))
    }

    /// Whether the connections have been open for long enough to be measured.
    fn is_settled(&mut self, look: &Look<'_>) -> bool {
        let Watch::Settling(since) = &mut self.watch else { return true };
        let (now, open, waited) = (look.now, look.connections.len(), look.now - self.changed);
        let has_rested = open <= self.n as usize || waited >= REST_MAX;
        let is_open = has_most(open, self.n) && has_rested || waited >= OPEN_MAX && open > 0;
        if is_open || matches!(self.state, State::Holding(_)) {
            since.get_or_insert(now);
        }
        let settle = self.settle_time();
        let Watch::Settling(since) = &self.watch else { return true };
        since.is_some_and(|since| now - since >= settle)
    }

    fn settle_time(&self) -> Duration {
        SETTLE_MIN.max(self.delay.round_trip() * SETTLE_ROUND_TRIPS)
    }

    fn window_time(&self) -> Duration {
        WINDOW_MIN.max(self.delay.round_trip() * WINDOW_ROUND_TRIPS)
    }

    /// Whether a change of the number can pay before the end of the transfer. It takes a step to open connections and to measure
    /// them.
    fn pays(&self, steps: u32) -> bool {
        let opening = self.delay.round_trip() * OPENING_ROUND_TRIPS;
        let step = opening + self.settle_time() + self.window_time();
        self.ends_in.is_none_or(|time| time >= step * steps)
    }

    fn end(&mut self, look: &Look<'_>, window: &Window) -> (Option<Measured>, Option<u32>) {
        let mut granted = None;
        match window.verdict(look) {
            Verdict::Counts => self.misses = 0,
            Verdict::HeldUp | Verdict::Few(0) => return (None, None),
            Verdict::Few(open) => {
                self.misses += 1;
                if self.misses < MISSES_MAX {
                    return (None, None);
                }
                self.misses = 0;
                self.keep_to(open);
                granted = Some(open);
            }
        }
        let mut measured = window.measured(look);
        let ends_in = |left: DataSize| left.bytes() as f64 / measured.goodput().max(1.0);
        let ends_in = look.left.map(|left| Duration::try_from_secs_f64(ends_in(left)));
        self.ends_in = ends_in.map(|time| time.unwrap_or(Duration::MAX));
        self.is_standing = measured.queue.is_some_and(|queue| self.delay.is_queue(queue));
        measured.standing = match measured.queue {
            None => Standing::Unknown,
            Some(_) if self.is_standing => Standing::Yes,
            Some(_) => Standing::No,
        };
        measured.added = self.judge(look, window, &measured);
        measured.asked = self.goal;
        self.note_held(look.now, measured.standing);
        (Some(measured), granted)
    }

    /// Notes the number if it has been the same for some time.
    fn note_held(&mut self, now: Instant, standing: Standing) {
        if !matches!(self.state, State::Holding(_)) || self.n != self.goal {
            return;
        }
        match self.steady {
            Some((n, before, since)) if n == self.n && before == standing => {
                if now - since >= HELD_TIME {
                    self.held = match standing {
                        Standing::Yes => Some(Held::WithQueue),
                        Standing::No => Some(Held::WithoutQueue(n)),
                        Standing::Unknown => None,
                    };
                }
            }
            _ => self.steady = Some((self.n, standing, now)),
        }
    }

    /// Asks for `n` connections. The next window begins when they have settled.
    fn ask(&mut self, look: &Look<'_>, n: u32) {
        let groups = if n > self.n { n.div_ceil(self.unit) } else { (n / self.unit).max(1) };
        self.goal = groups.saturating_mul(self.unit).clamp(1, self.cap);
        if self.goal > self.n {
            self.old = look.connections.iter().map(|one| one.id).collect();
            self.n = self.goal;
        }
        (self.changed, self.watch, self.growing) = (look.now, Watch::Settling(None), 0);
        self.even = None;
    }
}

#[cfg(test)]
mod tests;
