//! Bench `queue`: the queue that we make, in the clean cells of bench `fill` and those with 1 % loss.

use crate::bench::{ALONE, Bench, Order};
use crate::cases::spine::filling;
use crate::record::row::{Cell, Row};
use crate::rig::context::Ctx;
use anyhow::Result;

pub(crate) const BENCH: Bench = Bench {
    id: "queue",
    title: "The queue at the bottleneck",
    method: "The same runs as those of `fill`, seen from the link: the mean wait in the queue in the second \
             half, what the full queue turned away in it, and what it turned away before, in \
             bandwidth-delay products. The queue holds 0.25 of them or 5 MB, the smaller. Runs that \
             `fill` has kept at the same commit are not made again.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const COLUMNS: [&str; 3] = ["queue", "overflow", "start-up drops"];

fn cells(_: &Ctx) -> Vec<Cell> {
    filling::RTTS
        .into_iter()
        .flat_map(|rtt| [0.0, 1.0].map(|loss| filling::cell(rtt, loss)))
        .collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let kept = ctx.kept(filling::BENCH.id, cell);
    let row = kept.map_or_else(|| (filling::BENCH.run)(ctx, cell), Ok)?;
    let is_queue = |name: &str| COLUMNS.contains(&name);
    let measures = row.measures.into_iter().filter(|measure| is_queue(&measure.name)).collect();
    let notes = row.notes.into_iter().filter(|note| note.starts_with("INVALID")).collect();
    Ok(Row { measures, notes })
}
