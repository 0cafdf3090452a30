//! Bench `ten-gigabit`: ten gigabits a second over a long way, and who is at its limit there.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::contender::{Contender, Perf};
use crate::rig::context::Ctx;
use crate::rig::link::{Link, path};
use crate::rig::trial::{self, Outcome, Surroundings};
use anyhow::Result;
use hikyaku_lab::LabSpec;

pub(crate) const BENCH: Bench = Bench {
    id: "ten-gigabit",
    title: "A 10 Gbit/s link of 150 ms with jumbo frames",
    method: "The whole run of 30 s, beside 10 s through the same lab with neither rate nor delay \
             nor loss, in the same run: what the machine leaves of it. The goal is the smaller of \
             that and Eff. Then what each of the three busy programs used of one processor.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

fn cells(_: &Ctx) -> Vec<Cell> {
    let cell = |loss: f64| {
        Cell::new(format!("loss{loss}")).with("RTT ms", 150).with("MTU", 9000).with("loss %", loss)
    };
    [0.01, 1.0].map(cell).to_vec()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let loss: f64 = cell.setting("loss %").parse()?;
    let link = Link { rate: 1e10, rtt_ms: 150.0, loss: loss / 100.0, mtu: 9000 };
    let free = LabSpec { path: path(&[("mtu", "9000")])?, ..LabSpec::default() };
    let free = perf(ctx, free, 10.0)?;
    let seconds = ctx.seconds(30.0);
    let outcome = perf(ctx, link.lab(ctx.round())?, seconds)?;
    let goal = free.transfer.whole().min(link.eff());
    let transfer = &outcome.transfer;
    let of_goal = 100.0 * transfer.whole() / goal;
    let [client, server, relay] = usage(&outcome);
    let busiest = [("client", client), ("server", server), ("lab", relay)]
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map_or_else(String::new, |(name, percent)| format!("busiest: {name}, {percent:.0} %"));
    let mut row = Row::new()
        .with("goodput", transfer.whole() / 1e9, "Gbit/s")
        .with("second half", transfer.goodput.second_half(transfer.seconds) / 1e9, "Gbit/s")
        .with("unimpaired", free.transfer.whole() / 1e9, "Gbit/s")
        .held_to("of goal", of_goal, "%", Bar::AtLeast(80.0))
        .with("client", client, "% CPU")
        .with("server", server, "% CPU")
        .with("lab", relay, "% CPU");
    row.notes = outcome.notes;
    let limit = format!("limited by {}", transfer.ours.limited_by);
    Ok(row.note(limit).note(busiest))
}

fn perf(ctx: &Ctx, spec: LabSpec, seconds: f64) -> Result<Outcome> {
    let program = ctx.hikyaku()?.to_path_buf();
    let who = Contender::perf_with(Perf { program, ..Perf::default() }, seconds)?;
    trial::measure(ctx, &Surroundings::new(spec, seconds), &who)
}

/// What client, server and the lab's relay used, in percent of a processor.
fn usage(outcome: &Outcome) -> [f64; 3] {
    let ours = &outcome.transfer.ours;
    let percent = |cpu: f64, seconds: f64| 100.0 * cpu / seconds.max(1e-9);
    let end = outcome.counters.end();
    [
        percent(ours.client.cpu_seconds, outcome.transfer.seconds),
        percent(ours.server.cpu_seconds, outcome.transfer.seconds),
        percent(end.relay.cpu_seconds, end.seconds),
    ]
}
