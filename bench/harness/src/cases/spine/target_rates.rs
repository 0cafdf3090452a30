//! Bench `fixed-rates`: connections that are given a rate keep it.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::contender::{Contender, Perf};
use crate::rig::context::Ctx;
use crate::rig::link::Link;
use crate::rig::trial::{self, Surroundings};
use anyhow::{Result, ensure};

pub(crate) const BENCH: Bench = Bench {
    id: "fixed-rates",
    title: "Eight connections with a target each",
    method: "`-P 8 -b 110M` on 1 Gbit/s and 100 ms for 30 s: the largest difference from the target \
             of any connection in any whole second after the third, at the receiver.",
    cells: |_| vec![Cell::new("eight").with("RTT ms", 100).with("target Mbit/s", 110)],
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const STREAMS: usize = 8;
const TARGET: f64 = 110e6;

fn run(ctx: &Ctx, _: &Cell) -> Result<Row> {
    let link = Link::gigabit(100.0, 0.0);
    let seconds = ctx.seconds(30.0);
    let program = ctx.hikyaku()?.to_path_buf();
    let client = format!("-P {STREAMS} -b {TARGET:.0}");
    let who = Contender::perf_with(Perf { program, client, ..Perf::default() }, seconds)?;
    let around = Surroundings::new(link.lab(ctx.round())?, seconds);
    let outcome = trial::measure(ctx, &around, &who)?;
    let streams = &outcome.transfer.ours.streams;
    ensure!(streams.len() == STREAMS, "perf reports {} connections", streams.len());
    let last = outcome.transfer.seconds.floor() as u32;
    let worst = streams.iter().map(|one| one.worst_second(TARGET, 3, last)).fold(0.0, f64::max);
    let queue = outcome.counters.queue(&link, outcome.origin, outcome.transfer.seconds);
    let mut row = Row::new()
        .held_to("largest difference", 100.0 * worst, "%", Bar::AtMost(2.0))
        .with("goodput", outcome.transfer.whole() / 1e6, "Mbit/s")
        .with("queue", queue.mean_ms, "ms");
    row.notes = outcome.notes;
    Ok(row)
}
