//! Bench via: a copy over several TCP connections, where UDP may not go.

use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::context::Ctx;
use crate::rig::copier::{Copier, Job};
use crate::rig::files::random_file;
use crate::rig::line::{End, Line};
use crate::rig::link::{Link, host};
use crate::rig::ssh::{Medium, Rig};
use anyhow::{Context, Result, ensure};
use hikyaku_lab::LabSpec;
use std::time::{Duration, Instant};
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "via",
    title: "via: `cp --via tcp` over 100 ms beside scp, with TCP buffers of 64 KB to 6 MB",
    method: "The whole command, one file of 1 GB from RAM disk to RAM disk, over a real OpenSSH server. `buffers` is the \
             limit of TCP's buffers at both ends (`tcp_rmem`, `tcp_wmem`), congestion control is CUBIC. `pipes` is how many \
             TCP connections carry the copy: `auto` is what the adaptive rule finds. All are stopped after 120 s: the rate \
             is then what the link delivered. What arrived is compared.",
    cells,
    run,
    order: Order::ByCell,
    compare,
};

/// Limits of TCP's buffers in bytes. The last is Debian's of receiving.
const BUFFERS: [u64; 3] = [65_536, 212_992, 6_291_456];
/// Mbit/s of the link.
const RATES: [u32; 3] = [200, 500, 1000];
/// Shares of segments lost each way.
const LOSSES: [f64; 2] = [0.0, 0.001];
const RTT_MS: f64 = 100.0;
const FILE_BYTES: u64 = 1_000_000_000;
const CAP: Duration = Duration::from_secs(120);
const SETTING: Duration = Duration::from_secs(10);

/// Who copies, and by how many TCP connections.
const WHO: [(&str, &str); 3] = [("hikyaku", "auto"), ("hikyaku", "1"), ("scp", "1")];

fn cells(_: &Ctx) -> Vec<Cell> {
    let mut cells = Vec::new();
    for rate in RATES {
        for buffer in BUFFERS {
            for loss in LOSSES {
                cells.extend(WHO.map(|(who, pipes)| {
                    Cell::new(format!("{}-{who}-{pipes}", id(rate, buffer, loss)))
                        .with("rate Mbit/s", rate)
                        .with("buffers", buffer)
                        .with("loss %", loss * 100.0)
                        .with("who", who)
                        .with("pipes", pipes)
                }));
            }
        }
    }
    cells
}

fn id(rate: u32, buffer: u64, loss: f64) -> String {
    format!("{rate}m-{}k-{}", buffer >> 10, if loss > 0.0 { "lossy" } else { "clean" })
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let number = |name: &str| cell.setting(name).parse::<f64>().context("a number");
    let (rate, loss) = (number("rate Mbit/s")? * 1e6, number("loss %")? / 100.0);
    let link = Link { rate, rtt_ms: RTT_MS, loss, mtu: 1500 };
    let lab = LabSpec { host: host(false, "cubic"), ..link.lab(ctx.round())? };
    let rig = Rig::up(lab, Medium::Ram, &workspace())?;
    limit_buffers(&rig, cell.setting("buffers"))?;
    let from = rig.at(End::Client, "data");
    let bytes = if ctx.is_quick() { FILE_BYTES / 10 } else { FILE_BYTES };
    random_file(&from, bytes, 1)?;
    let job = Job::Put { from: from.clone(), to: rig.far("copy") };
    let line = match cell.setting("who") {
        "scp" => Copier::Scp.line(ctx, &rig, &job)?,
        _ => {
            let line = Copier::Hikyaku.line(ctx, &rig, &job)?;
            line.words("--via tcp --connections").arg(cell.setting("pipes"))
        }
    };
    rig.restart()?;
    let timed = rig.timed(&line, CAP)?;
    let row = Row::new().with("command", timed.seconds, "s");
    if timed.finished.is_none() {
        let rate = rig.report()?.up.delivered_bytes as f64 * 8.0 / timed.seconds;
        return Ok(row.with("rate", rate / 1e6, "Mbit/s").note("stopped"));
    }
    let row = row.with("rate", bytes as f64 * 8.0 / timed.seconds / 1e6, "Mbit/s");
    rig.judge(timed, row, [&from, &rig.at(End::Server, "copy")])
}

/// Limits TCP's buffers at both ends.
fn limit_buffers(rig: &Rig, bytes: &str) -> Result<()> {
    let limit = |name: &str| format!("net.ipv4.{name}=4096 {bytes} {bytes}");
    let line = Line::new("sysctl").words("-qw").args([&limit("tcp_rmem"), &limit("tcp_wmem")]);
    for mut running in [rig.start(&line)?, rig.start_far(&line)?] {
        let finished = running.wait(Instant::now() + SETTING)?;
        ensure!(finished.is_some(), "sysctl does not end");
        finished.context("sysctl")?.success()?;
    }
    Ok(())
}

/// Ours with a tuned number beside scp's and beside one connection.
fn compare(results: &mut [CellResult]) {
    for (rate, buffer, loss) in RATES.iter().flat_map(|rate| {
        BUFFERS.iter().flat_map(move |buffer| LOSSES.iter().map(move |loss| (rate, buffer, loss)))
    }) {
        let work = id(*rate, *buffer, *loss);
        let value = |results: &[CellResult], who: &str| {
            let cell = format!("{work}-{who}");
            results.iter().find(|result| result.cell == cell)?.median.value("rate")
        };
        let (ours, scp) = (value(results, "hikyaku-auto"), value(results, "scp-1"));
        let one = value(results, "hikyaku-1");
        let cell = format!("{work}-hikyaku-auto");
        let Some(cell) = results.iter_mut().find(|result| result.cell == cell) else { continue };
        if let (Some(ours), Some(scp)) = (ours, scp) {
            cell.median.push("times scp's", ours / scp, "", Some(Bar::AtLeast(1.0)));
        }
        if let (Some(ours), Some(one)) = (ours, one) {
            cell.median.push("times one pipe's", ours / one, "", None);
        }
    }
}
