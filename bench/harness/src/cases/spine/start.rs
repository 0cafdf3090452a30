//! Bench `start`: how soon a link is full, on a path never seen and on one remembered.

use crate::bench::{ALONE, Bench, Order};
use crate::cases::spine::filling;
use crate::record::row::{Bar, Cell, Row};
use crate::rig::contender::{Contender, Perf};
use crate::rig::context::Ctx;
use crate::rig::link::Link;
use crate::rig::trial::{self, Surroundings};
use anyhow::Result;

pub(crate) const BENCH: Bench = Bench {
    id: "start",
    title: "The start on a 1 Gbit/s link of 200 ms",
    method: "The start of the first interval of 0.2 s from which the mean of the next second is at \
             least 90 % of Eff, counted from the first packet of the handshake. `remembered` is \
             the second of two runs with `--reuse-path`. A start that never comes counts as the \
             length of the run.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

/// Long enough for a start that is worth the name.
const SECONDS: f64 = 8.0;

const REMEMBERED: &str = "remembered";

fn cells(_: &Ctx) -> Vec<Cell> {
    let cell = |path: &str, loss: u32| {
        Cell::new(format!("{path}-loss{loss}"))
            .with("RTT ms", 200)
            .with("loss %", loss)
            .with("path", path)
    };
    ["new", REMEMBERED].iter().flat_map(|path| [0, 1].map(|loss| cell(path, loss))).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let link = filling::link(cell)?;
    let is_remembered = cell.setting("path") == REMEMBERED;
    let around = Surroundings::new(link.lab(ctx.round())?, SECONDS);
    let perf = |options: &str| {
        let program = ctx.hikyaku()?.to_path_buf();
        let perf = Perf { program, both: options.to_owned(), ..Perf::default() };
        Contender::perf_with(perf, SECONDS)
    };
    let mut who = perf(if is_remembered { "--reuse-path" } else { "--no-path-cache" })?;
    if is_remembered {
        trial::run(&around, &who)?;
        who = perf("--reuse-path")?.at_home_of(&who);
    }
    let outcome = trial::measure(ctx, &around, &who)?;
    let since = outcome.transfer.ours.since_first_packet;
    let full = outcome.transfer.goodput.reaches(0.9 * link.eff(), 0.0);
    let start = full.map_or(SECONDS + since, |start| start + since);
    let bar = Bar::AtMost(if is_remembered { 1.0 } else { 2.5 });
    let mut row = Row::new().held_to("start", start, "s", bar).with("handshake", since, "s").with(
        "goodput",
        outcome.transfer.whole() / 1e6,
        "Mbit/s",
    );
    add_startup(&mut row, &outcome, &link);
    row.notes = outcome.notes;
    Ok(row)
}

/// What the start cost the queue.
fn add_startup(row: &mut Row, outcome: &trial::Outcome, link: &Link) {
    let up = &outcome.counters.end().up;
    let drops = up.overflowed as f64 * f64::from(link.mtu) / link.bdp();
    row.push("drops", drops, "BDP", None);
    row.push("longest queue", up.largest_queue_ms, "ms", None);
}
