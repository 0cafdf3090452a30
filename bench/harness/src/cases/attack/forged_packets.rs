//! Bench `flood`: a listener under a flood of forged first packets.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row, median};
use crate::rig::context::Ctx;
use crate::rig::home::Home;
use crate::rig::line::{End, Line, Place};
use crate::rig::sysctl::{Buffers, RAISED};
use crate::rig::transfer::Transfer;
use crate::rig::trial::resident_memory;
use crate::rig::veth::{Segmentation, Veth};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::{Running, run as run_once};

pub(crate) const BENCH: Bench = Bench {
    id: "flood",
    title: "A flood of forged first packets beside a transfer",
    method: "`hikyaku perf` moves 500 Mbit/s for 80 s over a wire without emulation; from 15 to 75 s \
             100,000 first packets a second, from 200 feigned addresses and all of different ids, come to the \
             same socket. Goodput under the flood as a share of that before it; what new clients take to \
             connect meanwhile; bytes that answers have for each byte of the flood; growth of the \
             server's memory in its first ten seconds. Both ends and the flood share this machine.",
    cells: |_| {
        let ways = [("upload", "the server receives"), ("download", "the server sends")];
        ways.map(|(id, way)| Cell::new(id).with("way", way)).to_vec()
    },
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const PERF_PORT: u16 = 5208;
const RATE: &str = "500mbit";
const FLOOD: f64 = 100_000.0;
/// A flood of less than this part of it is another question.
const ENOUGH: f64 = 0.95;
/// Seconds: what does not count at the begin, when the flood begins, how long it lasts, what is left then.
const SETTLED: f64 = 3.0;
const BEFORE: f64 = 15.0;
const LASTS: f64 = 60.0;
const AFTER: f64 = 5.0;
/// Honest clients that come during the flood, one after the other.
const CLIENTS: u32 = 5;
/// The network of the feigned addresses.
pub(super) const FEIGNED: &str = "10.79.0.0/16";
const FIRST: &str = "10.79.1.1";
const UP: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(20);

/// What the flood says of itself.
#[derive(Deserialize)]
pub(super) struct Flooded {
    packets: u64,
    bytes: u64,
    seconds: f64,
    /// Bytes that came back.
    answered: u64,
}

impl Flooded {
    /// Packets a second.
    pub(super) fn rate(&self) -> f64 {
        self.packets as f64 / self.seconds
    }
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    // Built before anything is timed.
    let program = ctx.flood()?;
    let _buffers = Buffers::limit(RAISED)?;
    let wire = Veth::up(1500, Segmentation::None)?;
    wire.feign(FEIGNED)?;
    let home = Home::new()?;
    let at = |line: Line, end: End| home.of_line(line, end).at(&wire, end);
    let perf = |words: &str| -> Result<Line> {
        Ok(Line::new(ctx.hikyaku()?).words("perf -p").arg(PERF_PORT.to_string()).words(words))
    };
    let server = Running::start(&mut at(perf("-s")?, End::Server))?;
    sleep(UP);
    let (before, lasts) = (ctx.seconds(BEFORE), ctx.seconds(LASTS));
    let way = if cell.id() == "download" { "-R" } else { "" };
    let seconds = before + lasts + AFTER;
    let words = format!("-J -i 0.5 -b {RATE} -t {seconds} {way} -c {}", wire.server());
    let mut client = Running::start(&mut at(perf(&words)?, End::Client))?;
    let zero = Instant::now();
    sleep(Duration::from_secs_f64(before - 1.0));
    let resident = || resident_memory(server.id()).context("the server has ended");
    let memory = resident()?;
    let mut flood =
        Running::start(&mut at(flood(program, &wire, PERF_PORT, FLOOD, lasts), End::Client))?;
    let from = zero.elapsed().as_secs_f64() + 1.0;
    let pause = Duration::from_secs_f64(lasts / f64::from(CLIENTS + 1));
    sleep(pause);
    // Before honest clients come, which have streams and buffers.
    let grown = resident()? - memory;
    let mut took = Vec::new();
    for _ in 0..CLIENTS {
        if !took.is_empty() {
            sleep(pause);
        }
        took.push(connect(&mut at(perf(&format!("-J -n 1 -c {}", wire.server()))?, End::Client))?);
    }
    let sent = flood.wait_for(PATIENCE)?.context("the flood does not end")?.success()?;
    let sent: Flooded = serde_json::from_str(&sent)?;
    let to = zero.elapsed().as_secs_f64().min(before + lasts);
    let said = client.wait_for(PATIENCE)?.context("the client does not end")?;
    let transfer = Transfer::of_perf(&said.stdout).context(said.stderr)?;
    let calm = transfer.goodput.mean(SETTLED, before - 2.0);
    let under = transfer.goodput.mean(from + 1.0, to - 1.0);
    let rate = sent.rate();
    let mut row = Row::new()
        .held_to("kept", 100.0 * under / calm, "%", Bar::AtLeast(80.0))
        .with("before", calm / 1e6, "Mbit/s")
        .with("under flood", under / 1e6, "Mbit/s")
        .with("flood", rate / 1e3, "1000/s")
        .with("connect", median(took) * 1e3, "ms")
        .held_to("answers", sent.answered as f64 / sent.bytes as f64, "B/B", Bar::AtMost(1.0))
        .held_to("memory", grown / f64::from(1 << 20), "MiB", Bar::AtMost(1.0));
    if rate < ENOUGH * FLOOD {
        row = row.note(format!("INVALID: only {rate:.0} first packets a second"));
    }
    Ok(row)
}

/// The program that sends so many forged first packets a second to this port of the server.
pub(super) fn flood(program: &Path, wire: &Veth, port: u16, rate: f64, seconds: f64) -> Line {
    let to = format!("{}:{port}", wire.server());
    let line = Line::new(program).args(["--to", &to, "--from", FIRST]);
    line.args(["--rate", &rate.to_string(), "--seconds", &seconds.to_string()])
}

/// Seconds from a client's first packet to the server's first word of the test.
fn connect(command: &mut std::process::Command) -> Result<f64> {
    let said = run_once(command, PATIENCE)?.success()?;
    let report: Value = serde_json::from_str(&said)?;
    report["start"]["since_first_packet"].as_f64().context("perf does not say when it was answered")
}
