//! Bench `ssh-channel`: a copy through the channel of ssh, beside what goes through ssh anyway.

use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::context::Ctx;
use crate::rig::copier::{Copier, Job};
use crate::rig::costs::Busy;
use crate::rig::files::random_file;
use crate::rig::line::End;
use crate::rig::link::Link;
use crate::rig::ssh::{Medium, Rig};
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "ssh-channel",
    title: "`cp --via ssh` over 1 Gbit/s beside scp and tar over ssh",
    method: "The whole command, from RAM disk to RAM disk, over a real OpenSSH server with Debian's TCP settings. `CPU` \
             is what the whole machine worked for a gigabyte, the lab included. All are stopped after 120 s: the rate \
             is then what the link delivered. What arrived is compared by `diff`.",
    cells,
    run,
    order: Order::ByCell,
    compare,
};

/// What is copied over which path.
struct Work {
    id: &'static str,
    rtt_ms: f64,
    loss: f64,
    files: u64,
    bytes_each: u64,
}

const WORKS: [Work; 4] = [
    Work { id: "large-20ms", rtt_ms: 20.0, loss: 0.0, files: 1, bytes_each: 1_000_000_000 },
    Work { id: "medium-200ms", rtt_ms: 200.0, loss: 0.0, files: 1, bytes_each: 100_000_000 },
    Work { id: "medium-20ms-lossy", rtt_ms: 20.0, loss: 0.005, files: 1, bytes_each: 100_000_000 },
    Work { id: "small-20ms", rtt_ms: 20.0, loss: 0.0, files: 10_000, bytes_each: 10_000 },
];
const WHO: [Copier; 3] = [Copier::Hikyaku, Copier::Scp, Copier::Tar];
const CAP: Duration = Duration::from_secs(120);

fn cells(_: &Ctx) -> Vec<Cell> {
    let of = |work: &Work| {
        let (id, loss) = (work.id, work.loss * 100.0);
        let (rtt, files) = (work.rtt_ms, work.files);
        WHO.map(move |who| {
            Cell::new(format!("{id}-{}", who.name().replace(' ', "-")))
                .with("work", id)
                .with("RTT ms", rtt)
                .with("loss %", loss)
                .with("files", files)
                .with("who", who.name())
        })
    };
    WORKS.iter().flat_map(of).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let work = WORKS.iter().find(|work| work.id == cell.setting("work"));
    let work = work.context("no work has this name")?;
    let who = WHO.into_iter().find(|who| who.name() == cell.setting("who"));
    let who = who.context("nobody has this name")?;
    let link = Link::gigabit(work.rtt_ms, work.loss);
    let rig = Rig::up(link.lab(ctx.round())?, Medium::Ram, &workspace())?;
    let from = rig.at(End::Client, "data");
    fs::create_dir(&from)?;
    let share = if ctx.is_quick() { 10 } else { 1 };
    let (files, bytes_each) = match work.files {
        1 => (1, work.bytes_each / share),
        files => (files / share, work.bytes_each),
    };
    for n in 0..files {
        random_file(&from.join(format!("file-{n:05}")), bytes_each, n)?;
    }
    let job = Job::Put { from: from.clone(), to: rig.far("copy") };
    let mut line = who.line(ctx, &rig, &job)?;
    if who == Copier::Hikyaku {
        line = line.words("--via ssh");
    }
    rig.restart()?;
    let busy = Busy::now()?;
    let timed = rig.timed(&line, CAP)?;
    let (cpu, report) = (busy.since()?, rig.report()?);
    let row = Row::new().with("command", timed.seconds, "s");
    if timed.finished.is_none() {
        let rate = report.up.delivered_bytes as f64 * 8.0 / timed.seconds;
        return Ok(row.with("rate", rate / 1e6, "Mbit/s").note("stopped"));
    }
    let bytes = (files * bytes_each) as f64;
    let row = row.with("rate", bytes * 8.0 / timed.seconds / 1e6, "Mbit/s").with(
        "CPU",
        cpu / (bytes / 1e9),
        "s/GB",
    );
    rig.judge(timed, row, [&from, &rig.at(End::Server, "copy")])
}

/// Ours beside scp's.
fn compare(results: &mut [CellResult]) {
    for work in &WORKS {
        let value = |results: &[CellResult], who: Copier, name: &str| {
            let id = format!("{}-{}", work.id, who.name());
            results.iter().find(|result| result.cell == id)?.median.value(name)
        };
        let of =
            |results: &[CellResult], who| (value(results, who, "rate"), value(results, who, "CPU"));
        let (ours, scp) = (of(results, Copier::Hikyaku), of(results, Copier::Scp));
        let id = format!("{}-{}", work.id, Copier::Hikyaku.name());
        let Some(cell) = results.iter_mut().find(|result| result.cell == id) else { continue };
        if let (Some(ours), Some(scp)) = (ours.0, scp.0) {
            let share = 100.0 * ours / scp;
            cell.median.push("of scp's rate", share, "%", Some(Bar::AtLeast(100.0)));
        }
        if let (Some(ours), Some(scp)) = (ours.1, scp.1) {
            cell.median.push("more CPU than scp", ours - scp, "s/GB", Some(Bar::AtMost(0.3)));
        }
    }
}
