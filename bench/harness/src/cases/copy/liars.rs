//! Bench `bad-peer`: peers that lie, and a race for what is outside the target.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Cell, Row};
use crate::rig::context::Ctx;
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "bad-peer",
    title: "A peer that lies, and a race",
    method: "The house's own tests, with more of the same: 500 scripts of a sender and 500 of a \
             receiver that say anything (`pair/tests/lies.rs`), and a million exchanges of a \
             directory for a link to outside while everything is tried beneath it, by both ways of \
             looking names up (`FLIPS`). A test that finds anything touched fails, and so does the \
             cell; each has been seen to fail on a weakened build.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const FLIPS: u64 = 1_000_000;
const CAP: Duration = Duration::from_secs(900);

fn cells(_: &Ctx) -> Vec<Cell> {
    ["lies-sender", "lies-receiver", "race"].map(|id| Cell::new(id).once()).to_vec()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let flips = if ctx.is_quick() { FLIPS / 50 } else { FLIPS };
    let (package, test, times) = match cell.id() {
        "lies-sender" => ("hikyaku-pair", "a_sender_that_says_anything", 500),
        "lies-receiver" => ("hikyaku-pair", "a_receiver_that_says_anything", 500),
        _ => ("hikyaku-fs", "a_race_between_directory_and_link", flips),
    };
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--package", package, "--lib", "--", test]).current_dir(workspace());
    command.env("FLIPS", flips.to_string());
    let begin = Instant::now();
    let said = xtask::run(&mut command, CAP)?.success()?;
    let line = said.lines().find(|line| line.starts_with("test result: ok. 1 passed"));
    ensure!(line.is_some(), "the test did not run: {}", said.lines().last().context("silence")?);
    let row = Row::new().with("times", times as f64, "");
    let row = row.with("with building", begin.elapsed().as_secs_f64(), "s");
    Ok(row.note("nothing was touched outside"))
}
