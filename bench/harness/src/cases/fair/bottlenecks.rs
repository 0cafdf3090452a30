//! Bench `queue-kinds`: bottlenecks of every kind, whose rate changes on the way.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::contender::Contender;
use crate::rig::context::Ctx;
use crate::rig::link::{self, Link};
use crate::rig::trial::{self, Outcome, Surroundings};
use anyhow::{Context, Result};
use hikyaku_lab::{DirectionReport, LabSpec};
use hikyaku_units::Instant;

pub(crate) const BENCH: Bench = Bench {
    id: "queue-kinds",
    title: "One of ours at queues of every kind, while the rate changes",
    method: "An upload over 1 Gbit/s and 50 ms: for 20 s as it is, 20 s at half the rate, 20 s as \
             before. The queue holds 2 ms, or two bandwidth-delay products, managed by CoDel (5 ms, 100 \
             ms) or not; or a policer lets half the link's rate through, with a burst of 625 kB, and its \
             rate changes. `back` is the time from the begin or a change to the first interval of 0.2 s \
             from which the mean of a second is 85 % of what is available; `then` the goodput from 10 s \
             after it to the next change. `dropped` is what queue and policer dropped of all segments, \
             and `queue` the mean wait in the worst of those times.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

/// A bottleneck.
struct Kind {
    id: &'static str,
    /// In the lab's language.
    settings: &'static [(&'static str, &'static str)],
    /// What halves the rate, and what doubles it.
    changes: [&'static str; 2],
    /// The share of the link's rate that is available at first.
    available: f64,
    /// The wait that its management lets stand.
    target_ms: Option<f64>,
}

const SLOWER: [&str; 2] = ["rate-up 500mbit", "rate-up 1gbit"];

const KINDS: &[Kind] = &[
    Kind {
        id: "queue-2ms",
        settings: &[("queue", "250kB")],
        changes: SLOWER,
        available: 1.0,
        target_ms: None,
    },
    Kind {
        id: "queue-2bdp",
        settings: &[("queue", "12.5MB")],
        changes: SLOWER,
        available: 1.0,
        target_ms: None,
    },
    Kind {
        id: "codel",
        settings: &[("queue", "12.5MB"), ("aqm", "codel")],
        changes: SLOWER,
        available: 1.0,
        target_ms: Some(5.0),
    },
    Kind {
        id: "codel-ecn",
        settings: &[("queue", "12.5MB"), ("aqm", "codel-ecn")],
        changes: SLOWER,
        available: 1.0,
        target_ms: Some(5.0),
    },
    Kind {
        id: "policer",
        settings: &[("queue", "6.25MB"), ("police-up", "500mbit:625kB")],
        changes: ["police-up 250mbit:625kB", "police-up 500mbit:625kB"],
        available: 0.5,
        target_ms: None,
    },
];

/// Seconds between changes, and how long a flow may take to be where it should be.
const PHASE: f64 = 20.0;
const WITHIN: f64 = 10.0;
const SHARE: f64 = 0.85;

/// The time after the begin or a change.
#[derive(Clone, Copy)]
struct Phase {
    name: &'static str,
    number: f64,
    /// Of what is available at first.
    share: f64,
}

const PHASES: [Phase; 3] = [
    Phase { name: "start", number: 0.0, share: 1.0 },
    Phase { name: "halved", number: 1.0, share: 0.5 },
    Phase { name: "doubled", number: 2.0, share: 1.0 },
];

fn cells(_: &Ctx) -> Vec<Cell> {
    KINDS.iter().map(|kind| Cell::new(kind.id)).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let kind = KINDS.iter().find(|kind| kind.id == cell.id()).context("no such bottleneck")?;
    let link = Link::gigabit(50.0, 0.0);
    let mut spec = link.lab(ctx.round())?;
    for setting in link::settings(kind.settings)? {
        setting.apply(&mut spec.path, Instant::ZERO);
    }
    let [halve, double] = kind.changes;
    let schedule = format!("at {PHASE}s {halve}\nat {}s {double}", 2.0 * PHASE).parse()?;
    let seconds = 3.0 * PHASE;
    let around = Surroundings::new(LabSpec { schedule, ..spec }, seconds);
    let outcome = trial::measure(ctx, &around, &Contender::perf(ctx, seconds)?)?;
    let whole = link.eff() * kind.available;
    let mut row = Row::new();
    for phase in PHASES {
        let available = whole * phase.share;
        let (back, then) = (back(&outcome, phase, available), then(&outcome, phase, available));
        let name = |what: &str| format!("{} {what}", phase.name);
        row.push(&name("back"), back, "s", Some(Bar::AtMost(WITHIN)));
        row.push(&name("then"), 100.0 * then, "%", Some(Bar::AtLeast(100.0 * SHARE)));
    }
    let up = &outcome.counters.end().up;
    let dropped = up.overflowed + up.aqm_dropped + up.policed;
    let percent = 100.0 * dropped as f64 / up.segments.max(1) as f64;
    row.push("dropped", percent, "%", Some(Bar::AtMost(2.0)));
    row.push("queue", worst_queue(&outcome), "ms", kind.target_ms.map(Bar::AtMost));
    row.push("marked", 100.0 * up.marked as f64 / up.segments.max(1) as f64, "%", None);
    row.notes = outcome.notes;
    Ok(row)
}

/// Begin and end of a phase by the receiver's clock.
fn times(outcome: &Outcome, phase: Phase) -> [f64; 2] {
    // The begin of the transfer is not that of the lab's clock.
    let begins = (phase.number * PHASE - outcome.origin).max(0.0);
    [begins, (phase.number + 1.0) * PHASE - outcome.origin]
}

/// Seconds until what is available is used; one that never does counts as the length of a phase.
fn back(outcome: &Outcome, phase: Phase, available: f64) -> f64 {
    let [begins, ends] = times(outcome, phase);
    let found = outcome.transfer.goodput.reaches(SHARE * available, begins);
    found.filter(|&at| at < ends).map_or(PHASE, |at| (at - begins).max(0.0))
}

fn then(outcome: &Outcome, phase: Phase, available: f64) -> f64 {
    let [begins, ends] = times(outcome, phase);
    outcome.transfer.goodput.mean(begins + WITHIN, ends) / available
}

/// The longest mean wait from 10 s after a change to the next.
fn worst_queue(outcome: &Outcome) -> f64 {
    let waited = |up: &DirectionReport| up.queue_ms_seconds;
    let mean = |phase: Phase| {
        let (from, to) = (phase.number * PHASE + WITHIN, (phase.number + 1.0) * PHASE);
        (outcome.counters.at(to, waited) - outcome.counters.at(from, waited)) / (to - from)
    };
    PHASES.into_iter().map(mean).fold(0.0, f64::max)
}
