//! D3: one of ours beside TCP.

use super::context::Ctx;
use super::crowd::{self, Flow, Shares, Who};
use super::link::Link;
use super::record::{Bar, Cell, Row};
use super::{ALONE, Bench, Order};
use anyhow::Result;

pub(super) const BENCH: Bench = Bench {
    id: "d3",
    title: "D3: one of ours beside TCP",
    method: "1 and 4 uploads of iperf3 over 1 Gbit/s and 40 ms with a queue of 0.5 and 2 \
             bandwidth-delay products; 5 s later one of ours, judged over 60 s from 20 s after that. In \
             the same run the same with one more of TCP's own kind in our place, and beside BBR with one \
             of CUBIC: what TCP keeps is its sum as a share of its sum then.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const OURS: Who = Who::Ours("fair");
const RTT: f64 = 40.0;
const LATER: f64 = 5.0;

fn cells(_: &Ctx) -> Vec<Cell> {
    let mut cells = Vec::new();
    for control in ["cubic", "bbr"] {
        for count in [1, 4] {
            cells.extend(["0.5", "2"].map(|queue| {
                Cell::new(format!("{control}{count}-queue{queue}"))
                    .with("TCP", control)
                    .with("flows", count)
                    .with("queue BDP", queue)
            }));
        }
    }
    cells
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let control = if cell.setting("TCP") == "bbr" { "bbr" } else { "cubic" };
    let count: usize = cell.setting("flows").parse()?;
    let link = Link::gigabit(RTT, 0.0);
    let beside = |who: Who| -> Result<Shares> {
        let mut flows = vec![Flow { who: Who::Tcp(control), begins: 0.0, server: 1 }; count];
        flows.push(Flow { who, begins: LATER, server: 1 });
        let queue = format!("{}bdp", cell.setting("queue BDP"));
        let lab = link.lab_with_queue(ctx.round(), &queue)?;
        crowd::judge(ctx, lab, &flows)
    };
    let tcp = |shares: &Shares| shares.goodput[..count].iter().sum::<f64>();
    let (own, ours) = (beside(Who::Tcp(control))?, beside(OURS)?);
    let equal = own.sum() / (count + 1) as f64;
    let got = ours.goodput[count];
    let least = if control == "bbr" { 25.0 } else { 50.0 };
    let mut row = Row::new()
        .held_to("TCP keeps", 100.0 * tcp(&ours) / tcp(&own), "%", Bar::AtLeast(80.0))
        .held_to("of an equal share", 100.0 * got / equal, "%", Bar::AtLeast(least));
    if control == "bbr" {
        let cubic = beside(Who::Tcp("cubic"))?;
        row =
            row.held_to("of CUBIC's", 100.0 * got / cubic.goodput[count], "%", Bar::AtLeast(100.0));
        row.notes.extend(cubic.notes);
    }
    row = row.with("queue", ours.queue_ms, "ms").with("overflow", ours.overflow_percent, "%");
    row.notes.extend(own.notes.into_iter().chain(ours.notes));
    Ok(row)
}
