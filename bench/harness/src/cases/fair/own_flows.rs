//! Benches `equal-flows`, `round-trips` and `late-flow`: flows of ours among themselves.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::crowd::{self, Flow, Shares, Who};
use crate::rig::link::Link;
use anyhow::Result;
use hikyaku_lab::{Access, LabSpec};
use std::time::Duration;

pub(crate) const EQUAL: Bench = Bench {
    id: "equal-flows",
    title: "Equal flows of ours at one bottleneck",
    method: "2 to 16 uploads of `hikyaku perf` over 1 Gbit/s with a queue of 50 ms, begun together or 5 \
             s apart, judged over 60 s from 20 s after the last begin. Jain's index of their goodput, \
             their sum, and the mean wait in the queue.",
    cells: equal_cells,
    run: equal,
    order: Order::ByCell,
    compare: ALONE,
};

pub(crate) const UNEQUAL: Bench = Bench {
    id: "round-trips",
    title: "Flows of ours with different round trips",
    method: "Three uploads over 1 Gbit/s with a queue of 50 ms, to servers at 20, 80 and 200 ms, judged \
             over 60 s from 20 s after the begin.",
    cells: |_| vec![Cell::new("three").with("RTT ms", "20, 80, 200")],
    run: unequal,
    order: Order::ByCell,
    compare: ALONE,
};

pub(crate) const LATE: Bench = Bench {
    id: "late-flow",
    title: "A flow that comes late",
    method: "Two uploads over 1 Gbit/s with a queue of 50 ms, the second 30 s after the first: the \
             smaller goodput as a share of the larger, from 50 to 80 s.",
    cells: |_| [40, 200].map(|rtt| Cell::new(format!("rtt{rtt}")).with("RTT ms", rtt)).to_vec(),
    run: late,
    order: Order::ByCell,
    compare: ALONE,
};

const FAIR: Who = Who::Ours("fair");

fn equal_cells(_: &Ctx) -> Vec<Cell> {
    let mut cells = Vec::new();
    for rtt in [40, 200] {
        for loss in [0, 1] {
            for gap in [0, 5] {
                cells.extend([2, 4, 8, 16].map(|flows| {
                    Cell::new(format!("rtt{rtt}-loss{loss}-gap{gap}-flows{flows}"))
                        .with("RTT ms", rtt)
                        .with("loss %", loss)
                        .with("apart s", gap)
                        .with("flows", flows)
                }));
            }
        }
    }
    cells
}

fn equal(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let number = |name: &str| cell.setting(name).parse::<f64>();
    let (rtt, loss, gap) = (number("RTT ms")?, number("loss %")?, number("apart s")?);
    let count: u32 = cell.setting("flows").parse()?;
    let flow = |at| Flow { who: FAIR, begins: gap * f64::from(at), server: 1 };
    let flows: Vec<_> = (0..count).map(flow).collect();
    let link = Link::gigabit(rtt, loss / 100.0);
    let shares = crowd::judge(ctx, lab(&link, ctx.round())?, &flows)?;
    let queue = 5.0 * f64::from(count).sqrt() + 3.0;
    let sum = 100.0 * shares.sum() / link.eff();
    Ok(row(&shares, 0.97).held_to("sum", sum, "% of Eff", Bar::AtLeast(93.0)).held_to(
        "queue",
        shares.queue_ms,
        "ms",
        Bar::AtMost(queue),
    ))
}

fn unequal(ctx: &Ctx, _: &Cell) -> Result<Row> {
    let link = Link::gigabit(20.0, 0.0);
    let mut spec = lab(&link, ctx.round())?;
    let farther = |ms| Access { delay: Duration::from_millis(ms), ..Access::default() };
    spec.servers = [0, 30, 90].map(farther).to_vec();
    let flows = [1, 2, 3].map(|server| Flow { who: FAIR, begins: 0.0, server });
    let shares = crowd::judge(ctx, spec, &flows)?;
    let sum = 100.0 * shares.sum() / link.eff();
    Ok(row(&shares, 0.92).with("sum", sum, "% of Eff").with("queue", shares.queue_ms, "ms"))
}

fn late(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let link = Link::gigabit(cell.setting("RTT ms").parse()?, 0.0);
    let flows = [0.0, 30.0].map(|begins| Flow { who: FAIR, begins, server: 1 });
    let shares = crowd::run(ctx, lab(&link, ctx.round())?, &flows, [50.0, 80.0])?;
    let (least, most) = (shares.goodput[0].min(shares.goodput[1]), shares.sum());
    let ratio = least / (most - least);
    let mut row = Row::new().held_to("ratio", ratio, "", Bar::AtLeast(0.8));
    row = row.with("sum", 100.0 * shares.sum() / link.eff(), "% of Eff");
    row.notes = shares.notes;
    Ok(row)
}

/// The link with a queue of 50 ms.
fn lab(link: &Link, seed: u32) -> Result<LabSpec> {
    link.lab_with_queue(seed, &format!("{:.0}", link.rate / 8.0 * 0.05))
}

fn row(shares: &Shares, jain: f64) -> Row {
    let mut row = Row::new()
        .held_to("Jain's index", shares.jain(), "", Bar::AtLeast(jain))
        .with("least", shares.goodput.iter().copied().fold(f64::INFINITY, f64::min) / 1e6, "Mbit/s")
        .with("overflow", shares.overflow_percent, "%");
    row.notes.clone_from(&shares.notes);
    row
}
