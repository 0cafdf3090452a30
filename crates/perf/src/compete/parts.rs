//! The receiving end's counts of a test with competitors: by intervals as long as they run, and between
//! the borders of what is judged.

use super::verdict::{Goodputs, Standing};
use crate::message::bits_per_second;
use crate::session::Event;
use crate::wait::{Stop, Worker};
use crate::worker::Counter;
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What arrived of the competitors in an interval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CompetitorCount {
    /// Seconds since the part began.
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) part: Part,
    /// Of each.
    pub(crate) bytes: Vec<u64>,
}

/// A part in which competitors run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    Alone,
    Together,
}

/// When to look at the counters, in seconds since the competitors began.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Timetable {
    /// The length of each part.
    pub(super) part: f64,
    /// What is left out at the begin of each.
    pub(super) omit: f64,
    /// Between two reports.
    pub(super) interval: f64,
}

/// A look at the counters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Look {
    pub(super) at: f64,
    pub(super) why: Why,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// An interval of this part is over.
    Report(Part),
    /// What is judged begins or ends.
    Border,
}

/// Counting under way.
pub(super) struct Parts {
    flows: Flows,
    borders: Arc<Mutex<Vec<Tick>>>,
    _worker: Worker,
}

/// Whose bytes are counted.
#[derive(Clone, Default)]
pub(super) struct Flows {
    pub(super) rivals: Vec<Arc<Counter>>,
    pub(super) ours: Vec<Arc<Counter>>,
}

/// The counters at one time: the competitors', then ours.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) rivals: Vec<u64>,
    pub(super) ours: Vec<u64>,
}

/// Parts of a test.
const PARTS: u32 = 3;
/// Less than this is no interval of its own.
const LEAST: f64 = 0.01;
/// The sender ends what competes by its own clock, which begins later; but who knows.
const EARLY: f64 = 0.5;

impl Timetable {
    /// All looks, in order.
    pub(super) fn looks(&self) -> Vec<Look> {
        let mut looks = Vec::new();
        for part in [Part::Alone, Part::Together] {
            let begins = self.begins(part);
            let whole = ((self.part - LEAST) / self.interval).floor() as u32;
            let ends = (1..=whole).map(|index| begins + f64::from(index) * self.interval);
            let ends = ends.chain([begins + self.part]);
            looks.extend(ends.map(|at| Look { at, why: Why::Report(part) }));
        }
        for number in 0..PARTS {
            let begins = f64::from(number) * self.part;
            let borders = [begins + self.omit, begins + self.part];
            looks.extend(borders.map(|at| Look { at, why: Why::Border }));
        }
        looks.sort_by(|a, b| a.at.total_cmp(&b.at));
        looks
    }

    /// When a part with competitors begins.
    fn begins(&self, part: Part) -> f64 {
        match part {
            Part::Alone => 0.0,
            Part::Together => self.part,
        }
    }

    /// When competitors end.
    pub(super) fn rivals_end(&self) -> f64 {
        2.0 * self.part
    }
}

impl Parts {
    /// Counts from `zero` on. `ends` tells when a competitor has come to its end.
    pub(super) fn count(
        timetable: Timetable,
        flows: Flows,
        zero: Instant,
        ends: Receiver<Event>,
        post: Sender<Event>,
    ) -> Self {
        let borders = Arc::<Mutex<Vec<Tick>>>::default();
        let worker = Worker::spawn("parts", {
            let (flows, borders) = (flows.clone(), borders.clone());
            move |stop| {
                let mut last = flows.read(0.0);
                for look in timetable.looks() {
                    sleep_until(zero, look.at, stop);
                    if stop.is_set() {
                        return;
                    }
                    let at = zero.elapsed().as_secs_f64();
                    let tick = flows.read(at);
                    match look.why {
                        Why::Border => {
                            borders.lock().unwrap_or_else(PoisonError::into_inner).push(tick);
                        }
                        Why::Report(part) => {
                            // Nobody listens after the end.
                            let begins = timetable.begins(part);
                            let count = CompetitorCount::between(&last, &tick, part, begins);
                            let _ = post.send(Event::Competitors(count));
                            last = tick;
                        }
                    }
                    if ends.try_recv().is_ok() && at < timetable.rivals_end() - EARLY {
                        let text = "a competing flow ended before its time".to_owned();
                        let _ = post.send(Event::DataLost(text));
                        return;
                    }
                }
            }
        });
        Self { flows, borders, _worker: worker }
    }

    /// The counters of the measured flows.
    pub(super) fn ours(&self) -> Vec<Arc<Counter>> {
        self.flows.ours.clone()
    }

    /// What each got, if the test came to its end.
    pub(super) fn standing(&self) -> Option<Standing> {
        standing(&self.borders.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What each got, from begin and end of each part.
pub(super) fn standing(borders: &[Tick]) -> Option<Standing> {
    let [a, b, c, d, e, f] = borders else { return None };
    let rates = |from: &[u64], to: &[u64], seconds: f64| -> Vec<f64> {
        let rate = |(from, to): (&u64, &u64)| bits_per_second(to.saturating_sub(*from), seconds);
        from.iter().zip(to).map(rate).collect()
    };
    let pairs = |alone: Vec<f64>, together: Vec<f64>| {
        let pair = |(alone, together)| Goodputs { alone, together };
        alone.into_iter().zip(together).map(pair).collect()
    };
    Some(Standing {
        competitors: pairs(
            rates(&a.rivals, &b.rivals, b.at - a.at),
            rates(&c.rivals, &d.rivals, d.at - c.at),
        ),
        measured: pairs(rates(&e.ours, &f.ours, f.at - e.at), rates(&c.ours, &d.ours, d.at - c.at)),
    })
}

impl Flows {
    fn read(&self, at: f64) -> Tick {
        let bytes = |of: &[Arc<Counter>]| of.iter().map(|counter| counter.bytes()).collect();
        Tick { at, rivals: bytes(&self.rivals), ours: bytes(&self.ours) }
    }
}

impl CompetitorCount {
    fn between(last: &Tick, tick: &Tick, part: Part, begins: f64) -> Self {
        let bytes = tick.rivals.iter().zip(&last.rivals).map(|(now, before)| now - before);
        let (start, end) = (last.at - begins, tick.at - begins);
        Self { start, end, part, bytes: bytes.collect() }
    }
}

fn sleep_until(zero: Instant, at: f64, stop: &Stop) {
    let due = zero + Duration::from_secs_f64(at);
    stop.sleep(due.saturating_duration_since(Instant::now()));
}
