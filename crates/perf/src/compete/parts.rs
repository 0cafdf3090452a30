//! The receiving end's counts in a test with competing flows: for every interval in which they run,
//! and at the start and end of the judged span of each part.

use super::verdict::{Goodputs, Standing};
use crate::message::bits_per_second;
use crate::session::Event;
use crate::wait::{Stop, Worker};
use crate::worker::Counter;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of the competing flows in one interval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CompetitorCount {
    /// Seconds since the part began.
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) part: Part,
    /// Bytes of each flow.
    pub(crate) bytes: Vec<u64>,
}

/// A part of the test in which competing flows run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    Alone,
    Together,
}

/// When to read the counters, in seconds since the competing flows began.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Timetable {
    /// Length of each part.
    pub(super) part: f64,
    /// Time at the start of each part that is not judged.
    pub(super) omit: f64,
    /// Time between two reports.
    pub(super) interval: f64,
}

/// A reading of the counters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Look {
    pub(super) at: f64,
    pub(super) why: Why,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// An interval of this part is over.
    Report(Part),
    /// The judged span of a part begins or ends.
    Border,
}

/// The counting thread and its results so far.
pub(super) struct Parts {
    flows: Flows,
    borders: Arc<Mutex<Vec<Tick>>>,
    _worker: Worker,
}

/// The counters of all flows.
#[derive(Clone, Default)]
pub(super) struct Flows {
    pub(super) rivals: Vec<Arc<Counter>>,
    pub(super) ours: Vec<Arc<Counter>>,
}

/// The counters at one time: those of the competing flows and those of the measured ones.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) rivals: Vec<u64>,
    pub(super) ours: Vec<u64>,
}

/// Number of parts in a test.
const PARTS: u32 = 3;
/// In seconds. A shorter rest of a part is merged into its last interval.
const INTERVAL_SECONDS_MIN: f64 = 0.01;
/// In seconds. The sender stops the competing flows by its own clock, which starts later than the
/// receiver's. A flow that ends more than this before the planned end has failed.
const EARLY_END_SECONDS: f64 = 0.5;

impl Timetable {
    /// All readings, in order of time.
    pub(super) fn looks(&self) -> Vec<Look> {
        let mut looks = Vec::new();
        for part in [Part::Alone, Part::Together] {
            let begins = self.begins(part);
            let whole = ((self.part - INTERVAL_SECONDS_MIN) / self.interval).floor() as u32;
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

    /// When a part with competing flows begins.
    fn begins(&self, part: Part) -> f64 {
        match part {
            Part::Alone => 0.0,
            Part::Together => self.part,
        }
    }

    /// When the competing flows end.
    pub(super) fn rivals_end(&self) -> f64 {
        2.0 * self.part
    }
}

impl Parts {
    /// Starts counting at `zero`. `ends` receives an event when a competing flow ends.
    pub(super) fn count(
        timetable: Timetable,
        flows: Flows,
        zero: Instant,
        ends: Receiver<Event>,
        post: Sender<Event>,
    ) -> io::Result<Self> {
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
                            // The receiver of events is gone after the test.
                            let begins = timetable.begins(part);
                            let count = CompetitorCount::between(&last, &tick, part, begins);
                            let _ = post.send(Event::Competitors(count));
                            last = tick;
                        }
                    }
                    if ends.try_recv().is_ok() && at < timetable.rivals_end() - EARLY_END_SECONDS {
                        let text = "a competing flow ended before its time".to_owned();
                        let _ = post.send(Event::DataLost(text));
                        return;
                    }
                }
            }
        })?;
        Ok(Self { flows, borders, _worker: worker })
    }

    /// The counters of the measured flows.
    pub(super) fn ours(&self) -> Vec<Arc<Counter>> {
        self.flows.ours.clone()
    }

    /// Goodput of each flow, if the test ran to its end.
    pub(super) fn standing(&self) -> Option<Standing> {
        standing(&self.borders.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Goodput of each flow, from the readings at the start and end of the three judged spans.
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
