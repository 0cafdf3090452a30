//! Bench `short-flows`: short flows beside a long one.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::crowd::{Ends, Who};
use crate::rig::home::Home;
use crate::rig::line::{End, Line, Place};
use crate::rig::link::Link;
use crate::rig::short_flows::Done;
use crate::rig::sysctl::{Buffers, RAISED};
use anyhow::{Context, Result};
use hikyaku_lab::{Lab, LabSpec};
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::Running;

pub(crate) const BENCH: Bench = Bench {
    id: "short-flows",
    title: "Short TCP flows beside one long flow of ours",
    method: "32 TCP flows (CUBIC) of 1 MB a second, begun at random times, beside an upload that began \
             10 s earlier, over 1 Gbit/s and 40 ms with a queue of 0.5 and 2 bandwidth-delay products. \
             How long they take, from the first packet to the receiver's word that it has all, over a \
             minute: beside one of ours, and in the same run with the same times beside one of CUBIC. \
             Those that took more than 20 s have failed.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const RTT: f64 = 40.0;
const RATE: f64 = 32.0;
const BYTES: u32 = 1_000_000;
/// How long the long flow is alone, and how long short ones begin.
const BEFORE: f64 = 10.0;
const LASTS: f64 = 60.0;
/// What short flows may take that began last.
const AFTER: f64 = 5.0;
/// Seconds after which the generator gives a short flow up.
const FAILED: f64 = 20.0;
const LONG_PORT: u16 = 6000;
const SHORT_PORT: u16 = 6100;
const UP: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(40);

fn cells(_: &Ctx) -> Vec<Cell> {
    let queues = ["0.5", "2"];
    queues.map(|queue| Cell::new(format!("queue{queue}")).with("queue BDP", queue)).to_vec()
}

/// What came of one long flow and the short ones beside it.
struct Beside {
    /// Seconds, the least first.
    took: Vec<f64>,
    failed: usize,
    /// Of the long flow while short ones came.
    goodput: f64,
    queue_ms: f64,
    notes: Vec<String>,
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let link = Link::gigabit(RTT, 0.0);
    let queue = format!("{}bdp", cell.setting("queue BDP"));
    let beside = |who: Who| measure(ctx, &link.lab_with_queue(ctx.round(), &queue)?, who);
    let (cubic, ours) = (beside(Who::Tcp("cubic"))?, beside(Who::Ours("fair"))?);
    let ratio = ours.quantile(0.95) / cubic.quantile(0.95);
    let ms = |seconds: f64| seconds * 1e3;
    let mut row = Row::new()
        .held_to("p95, of CUBIC's", ratio, "", Bar::AtMost(1.5))
        .with("p95", ms(ours.quantile(0.95)), "ms")
        .with("p95 beside CUBIC", ms(cubic.quantile(0.95)), "ms")
        .with("median", ms(ours.quantile(0.5)), "ms")
        .with("median beside CUBIC", ms(cubic.quantile(0.5)), "ms")
        .held_to("failed", ours.failed as f64, "", Bar::AtMost(cubic.failed as f64))
        .with("long", ours.goodput / 1e6, "Mbit/s")
        .with("long CUBIC", cubic.goodput / 1e6, "Mbit/s")
        .with("queue", ours.queue_ms, "ms")
        .with("queue of CUBIC", cubic.queue_ms, "ms");
    row.notes.extend(cubic.notes.into_iter().chain(ours.notes));
    Ok(row)
}

/// Measures until the lab's figures are valid, or often enough; the last is marked then.
fn measure(ctx: &Ctx, spec: &LabSpec, who: Who) -> Result<Beside> {
    let mut last = None;
    for _ in 0..ctx.attempts() {
        let (beside, problems) = once(ctx, spec.clone(), who)?;
        if problems.is_empty() {
            return Ok(beside);
        }
        last = Some((beside, problems.join(", ")));
    }
    let (mut beside, problems) = last.context("nothing was measured")?;
    beside.notes.push(format!("INVALID: {problems}"));
    Ok(beside)
}

fn once(ctx: &Ctx, spec: LabSpec, who: Who) -> Result<(Beside, Vec<String>)> {
    let _buffers = Buffers::limit(RAISED)?;
    let lab = Lab::up(spec)?;
    let home = Home::new()?;
    let ends = Ends { lab: &lab, server: 1 };
    let start = |line: Line, end: End| Running::start(&mut home.of_line(line, end).at(&ends, end));
    let mut long_server = start(who.server(ctx, LONG_PORT)?, End::Server)?;
    let line = short(["serve", "--port", &SHORT_PORT.to_string()])?;
    let _short_server = start(line, End::Server)?;
    sleep(UP);
    lab.restart()?;
    let lasts = ctx.seconds(LASTS);
    let (from, to) = (BEFORE, BEFORE + lasts);
    let mut long = start(who.client(ctx, &ends.server(), LONG_PORT, to + AFTER)?, End::Client)?;
    sleep(Duration::from_secs_f64(BEFORE));
    let before = lab.report()?;
    let address = format!("{}:{SHORT_PORT}", ends.server());
    let line = short(["send", "--to", &address])?
        .args(["--rate", &RATE.to_string(), "--bytes", &BYTES.to_string()])
        .args(["--seconds", &lasts.to_string(), "--seed", &ctx.round().to_string()]);
    let mut short = start(line, End::Client)?;
    sleep(Duration::from_secs_f64(lasts));
    let after = lab.report()?;
    let until = Instant::now() + PATIENCE;
    let short = short.wait(until)?.context("the short flows do not end")?.success()?;
    let client = long.wait(until)?.context("the long flow does not end")?;
    let server = long_server.wait(until)?.context("the server does not end")?;
    let transfer = who.transfer(&client, &server)?;
    let Done { mut took, failed } = serde_json::from_str(&short)?;
    took.sort_by(f64::total_cmp);
    let zero = transfer.ours.since_first_packet;
    let waited = after.up.queue_ms_seconds - before.up.queue_ms_seconds;
    let beside = Beside {
        took,
        failed,
        goodput: transfer.goodput.mean(from - zero, to - zero),
        queue_ms: waited / (after.seconds - before.seconds),
        notes: Vec::new(),
    };
    Ok((beside, after.problems))
}

/// This program as one end of the short flows.
fn short<const N: usize>(words: [&str; N]) -> Result<Line> {
    let program = std::env::current_exe().context("this program has no path")?;
    Ok(Line::new(program).arg("short-flows").args(words))
}

impl Beside {
    /// The time in which this share of the flows was done. Those that failed took longest.
    fn quantile(&self, share: f64) -> f64 {
        let all = self.took.len() + self.failed;
        let rank = ((all as f64 * share).ceil() as usize).max(1) - 1;
        self.took.get(rank).copied().unwrap_or(FAILED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_counts_as_slow() {
        let beside = |took: &[f64], failed| Beside {
            took: took.to_vec(),
            failed,
            goodput: 0.0,
            queue_ms: 0.0,
            notes: Vec::new(),
        };
        let twenty: Vec<f64> = (1..=20).map(|tenth| f64::from(tenth) / 10.0).collect();
        assert_eq!(
            (beside(&twenty, 0).quantile(0.95), beside(&twenty, 0).quantile(0.5)),
            (1.9, 1.0)
        );
        assert_eq!(beside(&twenty[..19], 1).quantile(0.95), 1.9);
        assert_eq!(beside(&twenty[..18], 2).quantile(0.95), FAILED);
        assert_eq!(beside(&[], 0).quantile(0.95), FAILED);
    }
}
