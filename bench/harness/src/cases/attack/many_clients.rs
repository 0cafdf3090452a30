//! Bench `clients`: hundreds of clients of one server, some of which stop, beside a flood of forged first packets.

use super::forged_packets::{FEIGNED, Flooded, flood};
use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row, median};
use crate::rig::context::Ctx;
use crate::rig::home::Home;
use crate::rig::line::{End, Line, Place};
use crate::rig::sysctl::{Buffers, RAISED};
use crate::rig::trial::{peak_memory, resident_memory};
use crate::rig::veth::{Segmentation, Veth};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;
use xtask::Running;

pub(crate) const BENCH: Bench = Bench {
    id: "clients",
    title: "500 clients of one server, some of which stop, beside a flood",
    method: "Twenty programs with 25 connections of 0.5 Mbit/s each move data for 60 s over a plain veth between them and one `hikyaku \
             perf` server, all on this machine. After 15 s one program stands still to the end (SIGSTOP), one is killed, \
             and 100,000 forged first packets a second come to the same port. `least` and `most` are the lowest and the \
             highest mean rate of the other 450 connections as parts of their median, `jain` Jain's index of them; \
             `memory` is the server's largest resident memory.",
    cells: |_| {
        let ways = [("upload", "the server receives"), ("download", "the server sends")];
        ways.map(|(id, way)| Cell::new(id).with("way", way)).to_vec()
    },
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const PORT: u16 = 5209;
const PROGRAMS: usize = 20;
const CONNECTIONS: usize = 25;
/// Of each connection: a quarter of a gigabit per second in all. Two processors, which the clients share with the server, carry
/// no more in packets of their own.
const RATE: &str = "500kbit";
const SECONDS: f64 = 60.0;
/// Seconds after which some clients stop and the flood begins.
const CALM: f64 = 15.0;
/// Seconds that the last programs may need to connect.
const CONNECTING: f64 = 10.0;
/// Between the beginnings of two programs.
const APART: Duration = Duration::from_millis(100);
const UP: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);
/// Forged first packets a second.
const FLOOD: f64 = 100_000.0;

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let program = ctx.flood()?;
    let _buffers = Buffers::limit(RAISED)?;
    let veth = Veth::up(1500, Segmentation::None)?;
    veth.feign(FEIGNED)?;
    let home = Home::new()?;
    let at = |line: Line, end: End| home.of_line(line, end).at(&veth, end);
    let perf = |words: &str| -> Result<Line> {
        Ok(Line::new(ctx.hikyaku()?).words("perf -p").arg(PORT.to_string()).words(words))
    };
    let server = Running::start(&mut at(perf("-s")?, End::Server))?;
    sleep(UP);
    let (calm, seconds) = (ctx.seconds(CALM), ctx.seconds(SECONDS));
    let way = if cell.id() == "download" { "-R" } else { "" };
    let words = format!("-J -P {CONNECTIONS} -b {RATE} -t {seconds} {way} -c {}", veth.server());
    let mut clients = Vec::new();
    for _ in 0..PROGRAMS {
        clients.push(Running::start(&mut at(perf(&words)?, End::Client))?);
        sleep(APART);
    }
    sleep(Duration::from_secs_f64(calm));
    let before = resident_memory(server.id()).context("the server has ended")?;
    let still = clients.pop().context("no client")?;
    signal(&still, Signal::STOP)?;
    clients.pop().context("no client")?.kill()?;
    let lasts = seconds - calm;
    let mut flood =
        Running::start(&mut at(flood(program, &veth, PORT, FLOOD, lasts), End::Client))?;
    let mut rates = Vec::new();
    let mut refused = Vec::new();
    for client in &mut clients {
        let limit = Duration::from_secs_f64(seconds + CONNECTING) + PATIENCE;
        let said = client.wait_for(limit)?.context("a client does not end")?;
        match rates_of(&said.stdout) {
            Ok(more) => rates.extend(more),
            Err(error) => refused.push(format!("{error:#} {}", said.stderr.trim())),
        }
    }
    let peak = peak_memory(server.id()).context("the server has ended")?;
    signal(&still, Signal::CONT)?;
    let sent = flood.wait_for(PATIENCE)?.context("the flood does not end")?.success()?;
    let sent: Flooded = serde_json::from_str(&sent)?;
    ensure!(!rates.is_empty(), "no client ended well: {refused:?}");
    let typical = median(rates.clone());
    let part = |rate: f64| rate / typical.max(1.0);
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let sum: f64 = rates.iter().sum();
    let mib = f64::from(1 << 20);
    let all = (PROGRAMS - 2) * CONNECTIONS;
    let mut row = Row::new()
        .held_to("connections", rates.len() as f64, "", Bar::AtLeast(all as f64))
        .with("goodput", sum / 1e9, "Gbit/s")
        .held_to("least", part(least), "x", Bar::AtLeast(0.5))
        .held_to("most", part(most), "x", Bar::AtMost(2.0))
        .with("jain", hikyaku_sim::jain(&rates), "")
        .with("memory before", before / mib, "MiB")
        .with("memory", peak / mib, "MiB")
        .with("flood", sent.rate() / 1e3, "1000/s");
    row.notes.extend(refused);
    Ok(row)
}

fn signal(process: &Running, signal: Signal) -> Result<()> {
    let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw).context("no process")?;
    Ok(kill_process(pid, signal)?)
}

/// The mean rate of each connection, in bits a second, by the receiver's count.
fn rates_of(said: &str) -> Result<Vec<f64>> {
    let report: Value = serde_json::from_str(said).context("perf printed no JSON")?;
    if let Some(error) = report["error"].as_str() {
        anyhow::bail!("perf: {error}");
    }
    let streams = report["end"]["streams"].as_array().context("perf names no connections")?;
    let rate = |stream: &Value| stream["receiver"]["bits_per_second"].as_f64();
    streams.iter().map(|stream| rate(stream).context("a connection without a rate")).collect()
}
