//! Bench `memory`: how much memory each end takes on a long fat link, and when nobody reads.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::contender::{Contender, Perf};
use crate::rig::context::Ctx;
use crate::rig::link::Link;
use crate::rig::trial::{self, Surroundings};
use anyhow::Result;

pub(crate) const BENCH: Bench = Bench {
    id: "memory",
    title: "Memory of each end at 1 Gbit/s, 500 ms and 1 % loss",
    method: "The high-water mark of resident memory after 60 s, as the kernel has it (VmHWM): at \
             most three bandwidth-delay products and 64 MB. Then the same with a reader that rests \
             for 10 s in the middle.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const STALLED: &str = "stalled";

fn cells(_: &Ctx) -> Vec<Cell> {
    vec![Cell::new("reading").with("reader", "reads"), Cell::new(STALLED).with("reader", "rests")]
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let link = Link::gigabit(500.0, 0.01);
    let seconds = ctx.seconds(60.0).max(20.0);
    let program = ctx.hikyaku()?.to_path_buf();
    let mut perf = Perf { program, ..Perf::default() };
    if cell.id() == STALLED {
        perf.server = "--allow-stall".to_owned();
        perf.client = format!("--stall 10@{}", (seconds / 3.0).floor());
    }
    let around = Surroundings::new(link.lab(ctx.round())?, seconds);
    let outcome = trial::measure(ctx, &around, &Contender::perf_with(perf, seconds)?)?;
    let most = Bar::AtMost((3.0 * link.bdp() + 64e6) / 1e6);
    let ours = &outcome.transfer.ours;
    let [client, server] = outcome.peak_memory;
    let mut row = Row::new()
        .held_to("client", client.max(ours.client.rss_bytes) / 1e6, "MB", most)
        .held_to("server", server.max(ours.server.rss_bytes) / 1e6, "MB", most)
        .with("goodput", outcome.transfer.whole() / 1e6, "Mbit/s");
    row.notes = outcome.notes;
    Ok(row)
}
