//! Bench `small-files`: ten thousand small files at 200 ms.

use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::context::Ctx;
use crate::rig::copier::{Copier, Job};
use crate::rig::files::random_file;
use crate::rig::line::End;
use crate::rig::link::Link;
use crate::rig::ssh::{Medium, Rig};
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "small-files",
    title: "10,000 files of 10 kB over 1 Gbit/s, 200 ms, 0.1 % loss",
    method: "The whole command. On RAM disk it may take 4.5 s more than `ssh host true` in the same \
             run; on disk, every file synced before it has its name, 3 s more than on RAM disk. \
             Peers run once, without syncing, and are stopped after 60 s.",
    cells,
    run,
    order: Order::ByCell,
    compare,
};

const FILES: u32 = 10_000;
const SIZE: u64 = 10_000;
const CAP: Duration = Duration::from_secs(60);
const WHO: [Copier; 4] = [Copier::Hikyaku, Copier::Rsync, Copier::Tar, Copier::Scp];

fn cells(_: &Ctx) -> Vec<Cell> {
    let mut cells = Vec::new();
    for medium in ["ram", "disk"] {
        for who in WHO {
            let id = format!("{medium}-{}", who.name().replace(' ', "-"));
            let cell = Cell::new(id).with("medium", medium).with("who", who.name());
            cells.push(if who == Copier::Hikyaku { cell } else { cell.once() });
        }
    }
    cells
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let link = Link::gigabit(200.0, 0.001);
    let medium = if cell.setting("medium") == "ram" { Medium::Ram } else { Medium::Disk };
    let rig = Rig::up(link.lab(ctx.round())?, medium, &workspace())?;
    let from = rig.at(End::Client, "tree");
    fs::create_dir(&from)?;
    let files = if ctx.is_quick() { FILES / 10 } else { FILES };
    for n in 0..files {
        random_file(&from.join(format!("file-{n:05}.dat")), SIZE, n.into())?;
    }
    // What is written here is not to be synced with what is measured.
    rustix::fs::sync();
    let job = Job::Put { from: from.clone(), to: rig.far("copy") };
    let who = WHO.into_iter().find(|who| who.name() == cell.setting("who"));
    let who = who.context("nobody has this name")?;
    let ssh = rig.ssh()?;
    let timed = rig.timed(&who.line(ctx, &rig, &job)?, CAP)?;
    let mut row = Row::new().with("ssh", ssh, "s");
    let is_ours = who == Copier::Hikyaku;
    let bar = (is_ours && medium == Medium::Ram).then_some(Bar::AtMost(ssh + 4.5));
    row.push("command", timed.seconds, "s", bar);
    rig.judge(timed, row, [&from, &rig.at(End::Server, "copy")])
}

/// On disk against RAM disk.
fn compare(results: &mut [CellResult]) {
    let value = |results: &[CellResult], id: &str| {
        results.iter().find(|result| result.cell == id)?.median.value("command")
    };
    let Some(ram) = value(results, "ram-hikyaku") else { return };
    let disk = results.iter_mut().find(|result| result.cell == "disk-hikyaku");
    let Some(disk) = disk else { return };
    if let Some(command) = disk.median.value("command") {
        disk.median.push("more than on RAM disk", command - ram, "s", Some(Bar::AtMost(3.0)));
    }
}
