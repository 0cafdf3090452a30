//! Bench `no-limit`: one large file where the network is no limit: what the machine allows, and who uses it best.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::contender::Contender;
use crate::rig::context::Ctx;
use crate::rig::copier::{Copier, Job};
use crate::rig::costs::{self, Busy};
use crate::rig::files::random_file;
use crate::rig::ground::Ground;
use crate::rig::line::End;
use crate::rig::ramdisk::RamDisk;
use crate::rig::ssh::Rig;
use crate::rig::trial;
use crate::rig::veth::{Segmentation, Veth};
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "no-limit",
    title: "A file of 4 GB over a plain veth",
    method: "The whole command, from RAM disk to RAM disk. `possible` is what two processors could \
             do: their time, divided by what a gigabyte costs `perf` at both ends, BLAKE3 twice, one \
             reading and one writing, each measured in the same run on one thread, from memory and not \
             from its cache. The RAM disk has large pages, and memory is taken and given back before each \
             timing, so that a hypervisor's page faults are fewer. `CPU` is what the whole machine worked for a gigabyte, ssh and \
             kernel included. Peers run once.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const SIZE: u64 = 4_000_000_000;
const MTUS: [u32; 2] = [1500, 9000];
const WHO: [Copier; 4] = [Copier::Hikyaku, Copier::Scp, Copier::Rsync, Copier::Tar];
const CAP: Duration = Duration::from_secs(120);
const CORES: f64 = 2.0;
/// How long `perf` runs beside it.
const BESIDE: f64 = 5.0;

fn cells(_: &Ctx) -> Vec<Cell> {
    let of = |mtu: u32| {
        WHO.map(|who| {
            let id = format!("mtu{mtu}-{}", who.name().replace(' ', "-"));
            let cell = Cell::new(id).with("MTU", mtu).with("who", who.name());
            if who == Copier::Hikyaku { cell } else { cell.once() }
        })
    };
    MTUS.into_iter().flat_map(of).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let mtu: u32 = cell.setting("MTU").parse()?;
    let who = WHO.into_iter().find(|who| who.name() == cell.setting("who"));
    let who = who.context("nobody has this name")?;
    let mut row = Row::new();
    let disk = RamDisk::up()?;
    let possible = match who {
        Copier::Hikyaku => Some(possible(ctx, mtu, &disk, &mut row)?),
        _ => None,
    };
    let ground = Ground::Wire(Veth::up(mtu, Segmentation::None)?);
    let rig = Rig::over(ground, disk.path(), &workspace())?;
    let size = if ctx.is_quick() { SIZE / 10 } else { SIZE };
    let from = rig.at(End::Client, "data");
    fs::create_dir(&from)?;
    random_file(&from.join("file"), size, 1)?;
    let job = Job::Put { from: from.clone(), to: rig.far("copy") };
    let line = who.line(ctx, &rig, &job)?;
    costs::warm(disk.path(), size + size / 4)?;
    let busy = Busy::now()?;
    let timed = rig.timed(&line, CAP)?;
    let cpu = busy.since()?;
    let rate = size as f64 * 8.0 / timed.seconds / 1e9;
    row = row.with("command", timed.seconds, "s");
    row.push("rate", rate, "Gbit/s", possible.map(|_| Bar::AtLeast(5.0)));
    if let Some(possible) = possible {
        row = row.held_to("of possible", 100.0 * rate / possible, "%", Bar::AtLeast(85.0));
    }
    row = row.with("CPU", cpu / (size as f64 / 1e9), "s/GB");
    rig.judge(timed, row, [&from, &rig.at(End::Server, "copy")])
}

/// Gbit/s that two processors could do, with what it is made of as columns.
fn possible(ctx: &Ctx, mtu: u32, disk: &RamDisk, row: &mut Row) -> Result<f64> {
    let wire = Veth::up(mtu, Segmentation::None)?;
    let perf = Contender::perf(ctx, BESIDE)?;
    let (transfer, notes) = trial::unimpaired(ctx, &wire, &perf, BESIDE)?;
    let ours = &transfer.ours;
    let moving = (ours.client.cpu_seconds + ours.server.cpu_seconds) / (transfer.bytes / 1e9);
    let costs = costs::measure(disk.path())?;
    let all = moving + 2.0 * costs.hash + costs.read + costs.write;
    let possible = CORES / all * 8.0;
    *row = std::mem::take(row)
        .with("perf", moving, "s/GB")
        .with("BLAKE3", costs.hash, "s/GB")
        .with("read", costs.read, "s/GB")
        .with("write", costs.write, "s/GB")
        .with("possible", possible, "Gbit/s");
    row.notes.extend(notes);
    Ok(possible)
}
