//! Bench `trouble`: what goes wrong on the way, and how soon all is well again.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::contender::Contender;
use crate::rig::context::Ctx;
use crate::rig::link::Link;
use crate::rig::trial::{self, Outcome, Surroundings};
use anyhow::{Context, Result};
use hikyaku_lab::{Corruption, LabSpec};

#[cfg(test)]
mod tests;

pub(crate) const BENCH: Bench = Bench {
    id: "trouble",
    title: "Trouble on a 1 Gbit/s link",
    method: "30 % loss: the second half of a run of 60 s. Otherwise a run that is undisturbed for \
             15 s, at 200 ms unless said: then an outage of 10 s; or 50 ms become 300 ms, and 50 ms \
             again 15 s later; or 2 % of the segments arrive damaged, with a checksum that shows it \
             or without; or 1 % of them 20 ms late; or the link takes 1280 bytes in place of 1500 \
             and says nothing. `back` is the time from the end of the change to the first interval \
             of 0.2 s from which the mean of a second is 80 % of that of the five seconds before the \
             trouble; one that is never back counts as the length of the run. `wrong` is of a second \
             transfer through the same trouble, in which the receiver checks every byte.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

/// A kind of trouble.
#[derive(Debug)]
struct Trouble {
    id: &'static str,
    rtt_ms: f64,
    /// In the lab's language, with `T` for the time of the change and `U` for that of a second one.
    schedule: &'static str,
    corruption: Corruption,
    /// Seconds after `T` at which things have changed for good, and how many round trips beside two
    /// seconds recovery may take.
    ends: &'static [Change],
}

/// The end of a change, after which a transfer must come back.
#[derive(Clone, Copy, Debug)]
struct Change {
    name: &'static str,
    /// Seconds after `T`; for the second change of two, after `U`.
    after: f64,
    is_second: bool,
    /// The most that recovery may take, in seconds.
    most: f64,
}

const fn change(name: &'static str, after: f64, most: f64) -> Change {
    Change { name, after, is_second: false, most }
}

/// Two seconds and two round trips of 200 ms.
const USUAL: f64 = 2.4;

const TROUBLES: &[Trouble] = &[
    Trouble {
        id: "outage",
        rtt_ms: 200.0,
        schedule: "at Ts outage 10s",
        corruption: Corruption::Wire,
        ends: &[change("back", 10.0, USUAL)],
    },
    Trouble {
        id: "rtt-change",
        rtt_ms: 50.0,
        schedule: "at Ts rtt 300ms\nat Us rtt 50ms",
        corruption: Corruption::Wire,
        ends: &[
            change("back", 0.0, 2.6),
            Change { name: "back again", after: 0.0, is_second: true, most: 2.1 },
        ],
    },
    Trouble {
        id: "corruption",
        rtt_ms: 200.0,
        schedule: "at Ts corrupt 2%",
        corruption: Corruption::Wire,
        ends: &[change("back", 0.0, USUAL)],
    },
    Trouble {
        id: "corruption-past-checksum",
        rtt_ms: 200.0,
        schedule: "at Ts corrupt 2%",
        corruption: Corruption::PastChecksum,
        ends: &[change("back", 0.0, USUAL)],
    },
    Trouble {
        id: "reordering",
        rtt_ms: 200.0,
        schedule: "at Ts reorder 1%:20ms",
        corruption: Corruption::Wire,
        ends: &[change("back", 0.0, USUAL)],
    },
    Trouble {
        id: "mtu-hole",
        rtt_ms: 200.0,
        schedule: "at Ts mtu 1280",
        corruption: Corruption::Wire,
        ends: &[change("back", 0.0, 2.0)],
    },
];

const LOSS: &str = "loss30";

fn cells(_: &Ctx) -> Vec<Cell> {
    let trouble = |one: &Trouble| Cell::new(one.id).with("RTT ms", one.rtt_ms);
    let loss = Cell::new(LOSS).with("RTT ms", 200);
    std::iter::once(loss).chain(TROUBLES.iter().map(trouble)).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    if cell.id() == LOSS {
        return under_loss(ctx);
    }
    let trouble = TROUBLES.iter().find(|one| one.id == cell.id()).context("no such trouble")?;
    let calm = ctx.seconds(15.0).max(8.0);
    let [first, second] = [calm, 2.0 * calm];
    let link = Link::gigabit(trouble.rtt_ms, 0.0);
    let schedule = schedule(trouble.schedule, first, second).parse()?;
    let spec = link.lab(ctx.round())?;
    let spec = LabSpec { schedule, corruption: trouble.corruption, ..spec };
    let seconds = 3.0 * calm + 5.0;
    let around = Surroundings::new(spec, seconds);
    let outcome = trial::measure(ctx, &around, &Contender::perf(ctx, seconds)?)?;
    let mut row = Row::new();
    for end in trouble.ends {
        let begins = if end.is_second { second } else { first };
        let back = recovery(&outcome, first, begins + end.after).unwrap_or(seconds);
        row.push(end.name, back, "s", Some(Bar::AtMost(end.most)));
    }
    let goodput = &outcome.transfer.goodput;
    let length = outcome.transfer.seconds;
    // What was no good before cannot come back: such a run must not look like a success.
    let least = Bar::AtLeast(0.8 * link.eff() / 1e6);
    row.push("before", before(&outcome, first) / 1e6, "Mbit/s", Some(least));
    row.push("at the end", goodput.mean(length - 5.0, length) / 1e6, "Mbit/s", None);
    add_check(&mut row, ctx, &around, seconds)?;
    let hit = &outcome.counters.end().up;
    let notes = [("damaged", hit.corrupted), ("too big", hit.too_big), ("cut", hit.cut)];
    row.notes = outcome.notes;
    row.notes.extend(
        notes.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")),
    );
    Ok(row)
}

/// A transfer through the same trouble in which every byte is looked at.
fn add_check(row: &mut Row, ctx: &Ctx, around: &Surroundings, seconds: f64) -> Result<()> {
    let checked = trial::run(around, &Contender::exact(ctx, seconds)?)?.transfer;
    let wrong = checked.wrong.context("nothing was checked")?;
    row.push("checked", checked.bytes / 1e9, "GB", None);
    row.push("wrong", wrong, "bytes", Some(Bar::AtMost(0.0)));
    Ok(())
}

fn under_loss(ctx: &Ctx) -> Result<Row> {
    let link = Link::gigabit(200.0, 0.3);
    let seconds = ctx.seconds(60.0);
    let around = Surroundings::new(link.lab(ctx.round())?, seconds);
    let outcome = trial::measure(ctx, &around, &Contender::perf(ctx, seconds)?)?;
    let transfer = &outcome.transfer;
    let half = 100.0 * transfer.goodput.second_half(transfer.seconds) / link.eff();
    let mut row = Row::new().held_to("second half", half, "% of Eff", Bar::AtLeast(80.0)).with(
        "whole run",
        100.0 * transfer.whole() / link.eff(),
        "% of Eff",
    );
    row.notes = outcome.notes;
    Ok(row)
}

fn schedule(template: &str, first: f64, second: f64) -> String {
    template.replace("Ts", &format!("{first}s")).replace("Us", &format!("{second}s"))
}

/// Bits a second in the five seconds before a time of the lab's clock.
fn before(outcome: &Outcome, lab_time: f64) -> f64 {
    // Half a second is left out: clocks agree no better than by one way of the path.
    let until = lab_time - outcome.origin - 0.5;
    outcome.transfer.goodput.mean(until - 5.0, until)
}

/// How long after a time of the lab's clock 80 % of what it was before `trouble` is reached.
fn recovery(outcome: &Outcome, trouble: f64, end: f64) -> Option<f64> {
    let least = 0.8 * before(outcome, trouble);
    let end = end - outcome.origin;
    let back = outcome.transfer.goodput.reaches(least, end)?;
    Some((back - end).max(0.0))
}
