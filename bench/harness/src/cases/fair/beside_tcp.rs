//! Bench `beside-tcp`: one of ours beside TCP.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::crowd::{self, Flow, Shares, Who};
use crate::rig::link::{self, Link};
use anyhow::Result;

pub(crate) const BENCH: Bench = Bench {
    id: "beside-tcp",
    title: "One of ours beside TCP",
    method: "1 and 4 uploads of iperf3 over 1 Gbit/s and 40 ms with a queue of 0.5 and 2 \
             bandwidth-delay products, TCP's buffers so large that they limit nothing; 5 s later one of \
             ours, judged over 60 s from 20 s after that. In the same run the same with one more of TCP's \
             own kind in our place, and beside BBR with one of CUBIC. What TCP keeps is its sum as a share \
             of so many equal shares then: among its own kind whoever came first has most of a minute, or \
             least, by chance; the share of what those who came first had is told beside it. A scavenger is \
             run beside the same, whose sum is compared with what it is alone; alone; and beside TCP with \
             half of the link to send.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const OURS: Who = Who::Ours("fair");
const SCAVENGER: Who = Who::Ours("scavenger");
/// Half of the link, in Mbit/s.
const HALF: u32 = 500;
const RTT: f64 = 40.0;
const LATER: f64 = 5.0;

fn cells(_: &Ctx) -> Vec<Cell> {
    let mut cells = Vec::new();
    let cell = |name: String, policy: &str, tcp: &str, count: u32, queue: &str| {
        let cell = Cell::new(name).with("policy", policy).with("TCP", tcp);
        cell.with("flows", count).with("queue BDP", queue)
    };
    for control in ["cubic", "bbr"] {
        for count in [1, 4] {
            cells.extend(["0.5", "2"].map(|queue| {
                cell(format!("{control}{count}-queue{queue}"), "fair", control, count, queue)
            }));
        }
    }
    for queue in ["0.5", "2"] {
        for (tcp, count) in
            [("none", 0), ("half", 1), ("cubic", 1), ("cubic", 4), ("bbr", 1), ("bbr", 4)]
        {
            let name = format!("scavenger-{tcp}{count}-queue{queue}");
            cells.push(cell(name, "scavenger", tcp, count, queue));
        }
    }
    cells
}

/// A cell, as it is run.
struct Scene<'a> {
    ctx: &'a Ctx,
    tcp: Who,
    count: usize,
    queue: String,
}

impl Scene<'_> {
    /// What all get, this one among them if there is one.
    fn shares(&self, late: Option<Who>) -> Result<Shares> {
        let mut flows = vec![Flow { who: self.tcp, begins: 0.0, server: 1 }; self.count];
        flows.extend(late.map(|who| Flow { who, begins: LATER, server: 1 }));
        let mut lab = Link::gigabit(RTT, 0.0).lab_with_queue(self.ctx.round(), &self.queue)?;
        // With Debian's default socket buffers a TCP flow has at most 3 MB in flight, less than its congestion
        // window would allow here, and its rate falls as the queue grows. Therefore the buffers are raised.
        lab.host = link::host(true, "cubic");
        crowd::judge(self.ctx, lab, &flows)
    }

    fn of_tcp(&self, shares: &Shares) -> f64 {
        shares.goodput[..self.count].iter().sum()
    }
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let tcp = match cell.setting("TCP") {
        "bbr" => Who::Tcp("bbr"),
        "half" => Who::Limited("cubic", HALF),
        _ => Who::Tcp("cubic"),
    };
    let count = cell.setting("flows").parse()?;
    let queue = format!("{}bdp", cell.setting("queue BDP"));
    let scene = Scene { ctx, tcp, count, queue };
    if cell.setting("policy") == "scavenger" { scavenger(&scene) } else { fair(&scene) }
}

/// Who gives way leaves TCP what it has alone, and takes the rest.
fn scavenger(scene: &Scene<'_>) -> Result<Row> {
    let eff = Link::gigabit(RTT, 0.0).eff();
    let both = scene.shares(Some(SCAVENGER))?;
    let got = both.goodput[scene.count];
    let mut row = Row::new();
    row.notes.clone_from(&both.notes);
    if scene.count == 0 {
        row = row.held_to("of Eff", 100.0 * got / eff, "%", Bar::AtLeast(90.0));
    } else {
        let alone = scene.shares(None)?;
        let before = scene.of_tcp(&alone);
        let lost = 100.0 * (1.0 - scene.of_tcp(&both) / before);
        row = row.held_to("TCP loses", lost, "%", Bar::AtMost(5.0));
        let rest = 100.0 * got / (eff - before);
        row = match scene.tcp {
            Who::Limited(..) => row.held_to("of the rest", rest, "%", Bar::AtLeast(80.0)),
            Who::Ours(_) | Who::Tcp(_) => row,
        };
        row = row.with("TCP", scene.of_tcp(&both) / 1e6, "Mbit/s");
        row.notes.extend(alone.notes);
    }
    row = row.with("ours", got / 1e6, "Mbit/s");
    Ok(row.with("queue", both.queue_ms, "ms").with("overflow", both.overflow_percent, "%"))
}

fn fair(scene: &Scene<'_>) -> Result<Row> {
    let (count, is_bbr) = (scene.count, scene.tcp == Who::Tcp("bbr"));
    let beside = |who: Who| scene.shares(Some(who));
    let tcp = |shares: &Shares| scene.of_tcp(shares);
    let (own, ours) = (beside(scene.tcp)?, beside(OURS)?);
    let equal = own.sum() / (count + 1) as f64;
    let got = ours.goodput[count];
    let least = if is_bbr { 25.0 } else { 50.0 };
    let mut row = Row::new()
        .held_to("TCP keeps", 100.0 * tcp(&ours) / (count as f64 * equal), "%", Bar::AtLeast(80.0))
        .with("of who came first", 100.0 * tcp(&ours) / tcp(&own), "%")
        .held_to("of an equal share", 100.0 * got / equal, "%", Bar::AtLeast(least));
    if is_bbr {
        let cubic = beside(Who::Tcp("cubic"))?;
        row =
            row.held_to("of CUBIC's", 100.0 * got / cubic.goodput[count], "%", Bar::AtLeast(100.0));
        row.notes.extend(cubic.notes);
    }
    row = row.with("TCP", tcp(&ours) / 1e6, "Mbit/s").with("ours", got / 1e6, "Mbit/s");
    row = row.with("queue", ours.queue_ms, "ms").with("overflow", ours.overflow_percent, "%");
    row.notes.extend(own.notes.into_iter().chain(ours.notes));
    Ok(row)
}
