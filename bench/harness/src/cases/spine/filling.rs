//! Bench `fill`: how much of a long fat link is filled, over round-trip time and loss.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::contender::{Contender, Perf};
use crate::rig::context::Ctx;
use crate::rig::link::Link;
use crate::rig::sysctl::DEBIAN;
use crate::rig::trial::{self, Outcome, Queue, Surroundings};
use anyhow::Result;

pub(crate) const BENCH: Bench = Bench {
    id: "fill",
    title: "Filling a 1 Gbit/s link",
    method: "One ordered stream of `hikyaku perf` for 30 s (60 s at 500 ms), with loss in both \
             directions and no hint of rate, delay or loss. Shares are of Eff = (1 - loss) x rate \
             x 0.9285. `queue` and `overflow` are of the second half, `start-up drops` what the \
             full queue turned away before. The last cell runs without privileges, with Debian's \
             limit of 212992 bytes for socket buffers.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

pub(crate) const RTTS: [f64; 3] = [20.0, 200.0, 500.0];
pub(crate) const LOSSES: [f64; 5] = [0.0, 0.1, 1.0, 5.0, 10.0];

/// The cell whose sockets have what Debian grants.
const SMALL_BUFFERS: &str = "rtt200-loss1-rmem212992";

fn cells(_: &Ctx) -> Vec<Cell> {
    let grid = RTTS.into_iter().flat_map(|rtt| LOSSES.map(|loss| cell(rtt, loss)));
    let small = Cell::new(SMALL_BUFFERS).with("RTT ms", 200).with("loss %", 1);
    grid.chain([small]).collect()
}

/// A point of the grid; loss in percent.
pub(crate) fn cell(rtt: f64, loss: f64) -> Cell {
    Cell::new(format!("rtt{rtt}-loss{loss}")).with("RTT ms", rtt).with("loss %", loss)
}

/// The link of a cell.
pub(crate) fn link(cell: &Cell) -> Result<Link> {
    let loss: f64 = cell.setting("loss %").parse()?;
    Ok(Link::gigabit(cell.setting("RTT ms").parse()?, loss / 100.0))
}

/// How long a run on this link is.
pub(crate) fn seconds(ctx: &Ctx, link: &Link) -> f64 {
    ctx.seconds(if link.rtt_ms >= 500.0 { 60.0 } else { 30.0 })
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let link = link(cell)?;
    let seconds = seconds(ctx, &link);
    let mut around = Surroundings::new(link.lab(ctx.round())?, seconds);
    let is_small = cell.id() == SMALL_BUFFERS;
    let who = if is_small {
        around.buffers = DEBIAN;
        let program = ctx.hikyaku()?.to_path_buf();
        Contender::perf_with(Perf { program, as_nobody: true, ..Perf::default() }, seconds)?
    } else {
        Contender::perf(ctx, seconds)?
    };
    let outcome = trial::measure(ctx, &around, &who)?;
    let bars = if is_small { [80.0, 80.0] } else { [95.0, whole_bar(&link)] };
    let mut row = filled(&outcome, &link, bars);
    add_queue(&mut row, &outcome, &link)?;
    if is_small {
        let warnings = outcome.transfer.ours.warnings.len() as f64;
        row = row.held_to("warnings", warnings, "", Bar::AtLeast(1.0));
    }
    row.notes = outcome.notes;
    Ok(row.note(format!("limited by {}", outcome.transfer.ours.limited_by)))
}

/// At 500 ms the start takes a larger share of the run.
fn whole_bar(link: &Link) -> f64 {
    if link.rtt_ms >= 500.0 { 85.0 } else { 88.0 }
}

/// How much of the link was filled: second half and whole run.
fn filled(outcome: &Outcome, link: &Link, [half, whole]: [f64; 2]) -> Row {
    let transfer = &outcome.transfer;
    let share = |rate: f64| 100.0 * rate / link.eff();
    let second_half = transfer.goodput.second_half(transfer.seconds);
    Row::new()
        .with("goodput", transfer.whole() / 1e6, "Mbit/s")
        .held_to("second half", share(second_half), "% of Eff", Bar::AtLeast(half))
        .held_to("whole run", share(transfer.whole()), "% of Eff", Bar::AtLeast(whole))
}

/// The queue, held to the bars of bench `queue` where those apply: in the clean cells and at 1 %.
pub(crate) fn add_queue(row: &mut Row, outcome: &Outcome, link: &Link) -> Result<()> {
    let queue = outcome.counters.queue(link, outcome.origin, outcome.transfer.seconds);
    let applies = link.loss == 0.0 || link.loss == 0.01;
    let at_most = |bar: f64| applies.then_some(Bar::AtMost(bar));
    let Queue { mean_ms, overflow_percent, startup_bdp } = queue;
    let most = (link.full_queue_ms()? / 2.0).min(10.0);
    row.push("queue", mean_ms, "ms", at_most(most));
    row.push("overflow", overflow_percent, "%", at_most(0.1));
    row.push("start-up drops", startup_bdp, "BDP", at_most(0.5));
    Ok(())
}
