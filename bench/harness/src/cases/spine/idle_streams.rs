//! Bench idle-streams: what a busy stream costs beside thousands that have nothing to say.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row, median};
use crate::rig::context::Ctx;
use crate::rig::sysctl::{Buffers, RAISED};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::process::Command;
use std::time::Duration;

pub(crate) const BENCH: Bench = Bench {
    id: "idle-streams",
    title: "Idle streams: one busy stream beside 10,000 that have nothing to say",
    method: "Two connections on loopback in one process, each with sockets and threads of its own; one has 10,000 \
             streams that have carried 100 bytes each way and stay open, the other has none. One stream of each moves \
             1 GB in turn, twenty times, held to 16 Gbit/s; neither is always the first. Processor time of all threads, in the program and \
             in the kernel, a gigabyte: medians, and the median of the rounds' ratios.",
    cells: |_| vec![Cell::new(STREAMS).with("idle streams", STREAMS)],
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const STREAMS: &str = "10000";
const ROUNDS: u32 = 20;
const ROUNDS_OF_A_TRY: u32 = 6;
const PATIENCE: Duration = Duration::from_secs(300);

/// What the program prints.
#[derive(Deserialize)]
struct Report {
    rounds: Vec<Round>,
    repeated: u64,
}

#[derive(Deserialize)]
struct Round {
    without: Cost,
    with: Cost,
}

/// Of a gigabyte.
#[derive(Deserialize)]
struct Cost {
    seconds: f64,
    processor_seconds: f64,
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let program = ctx.idle()?;
    let _buffers = Buffers::limit(RAISED)?;
    let rounds = if ctx.is_quick() { ROUNDS_OF_A_TRY } else { ROUNDS };
    let mut command = Command::new(program);
    command.args(["--streams", cell.id(), "--rounds", &rounds.to_string(), "--megabytes", "1000"]);
    let said = ctx.output(&mut command, PATIENCE)?;
    let report: Report = serde_json::from_str(&said).context("it does not say what it cost")?;
    ensure!(report.rounds.len() == rounds as usize, "{} rounds", report.rounds.len());
    Ok(row(&report))
}

fn row(report: &Report) -> Row {
    let of = |figure: fn(&Round) -> f64| median(report.rounds.iter().map(figure).collect());
    let ratio = of(|round| round.with.processor_seconds / round.without.processor_seconds);
    Row::new()
        .with("without", of(|round| round.without.processor_seconds), "s/GB")
        .with("with", of(|round| round.with.processor_seconds), "s/GB")
        .held_to("more", 100.0 * (ratio - 1.0), "%", Bar::AtMost(5.0))
        .with("rate without", of(|round| 1.0 / round.without.seconds), "GB/s")
        .with("rate with", of(|round| 1.0 / round.with.seconds), "GB/s")
        .with("sent again", report.repeated as f64 / 1e6, "MB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_compared_within_themselves() {
        let cost = |processor_seconds| Cost { seconds: 0.5, processor_seconds };
        let round = |(without, with)| Round { without: cost(without), with: cost(with) };
        let rounds = [(1.0, 1.1), (2.0, 2.2), (4.0, 4.0)].map(round).into();
        let row = row(&Report { rounds, repeated: 0 });
        assert!((row.value("more").unwrap() - 10.0).abs() < 1e-9);
        assert_eq!(row.value("without"), Some(2.0));
        assert_eq!(row.value("rate with"), Some(2.0));
    }
}
