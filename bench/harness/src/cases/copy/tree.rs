//! Bench `tree`: a large tree of small files over a short link, against the fastest habits there are.

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
use std::path::Path;
use std::time::Duration;
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "tree",
    title: "A tree of 50,000 files, 800 MB, over 1 Gbit/s and 20 ms",
    method: "The whole command, with times and modes. On disk ours waits until everything is there, \
             so the others are followed by `ssh host sync`. Ours must be faster than each of them.",
    cells,
    run,
    order: Order::ByRound,
    compare,
};

const FILES: u32 = 50_000;
const PER_FOLDER: u32 = 100;
const CAP: Duration = Duration::from_secs(120);
const WHO: [Copier; 3] = [Copier::Hikyaku, Copier::Rsync, Copier::Tar];

fn cells(_: &Ctx) -> Vec<Cell> {
    let of = |medium: &'static str| {
        WHO.map(|who| {
            let id = format!("{medium}-{}", who.name().replace(' ', "-"));
            Cell::new(id).with("medium", medium).with("who", who.name())
        })
    };
    ["ram", "disk"].into_iter().flat_map(of).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let link = Link::gigabit(20.0, 0.0);
    let medium = if cell.setting("medium") == "ram" { Medium::Ram } else { Medium::Disk };
    let rig = Rig::up(link.lab(ctx.round())?, medium, &workspace())?;
    let from = rig.at(End::Client, "tree");
    let bytes = plant(&from, if ctx.is_quick() { FILES / 20 } else { FILES })?;
    rustix::fs::sync();
    let job = Job::Put { from: from.clone(), to: rig.far("copy") };
    let who = WHO.into_iter().find(|who| who.name() == cell.setting("who"));
    let who = who.context("nobody has this name")?;
    let line = match medium {
        Medium::Ram => who.line(ctx, &rig, &job)?,
        Medium::Disk => who.durable_line(ctx, &rig, &job)?,
    };
    let timed = rig.timed(&line, CAP)?;
    let row = Row::new().with("command", timed.seconds, "s").with(
        "rate",
        bytes as f64 * 8.0 / timed.seconds / 1e6,
        "Mbit/s",
    );
    rig.judge(timed, row, [&from, &rig.at(End::Server, "copy")])
}

/// A tree with sizes as in life: most small, some large, 16 kB on average.
fn plant(root: &Path, files: u32) -> Result<u64> {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut bytes = 0;
    for n in 0..files {
        let folder = root.join(format!("part-{:03}/{}", n / PER_FOLDER, n % 7));
        if n % PER_FOLDER < 7 {
            fs::create_dir_all(&folder)?;
        }
        let odd = if n % 1000 == 999 { " \u{e9}\u{30c6} odd name" } else { "" };
        let size = (1000.0 * (-rng.f64().max(1e-4).ln()).powf(3.2)) as u64 + rng.u64(0..4000);
        random_file(&folder.join(format!("{n:05}{odd}.dat")), size, n.into())?;
        bytes += size;
    }
    Ok(bytes)
}

/// Ours against each of the others.
fn compare(results: &mut [CellResult]) {
    for medium in ["ram", "disk"] {
        let value = |results: &[CellResult], who: &str| {
            let id = format!("{medium}-{who}");
            results.iter().find(|result| result.cell == id)?.median.value("command")
        };
        let peers = [value(results, "rsync"), value(results, "tar-over-ssh")];
        let best = peers.into_iter().flatten().fold(f64::INFINITY, f64::min);
        let id = format!("{medium}-hikyaku");
        let Some(ours) = results.iter_mut().find(|result| result.cell == id) else { continue };
        if let Some(command) = ours.median.value("command").filter(|_| best.is_finite()) {
            ours.median.push("of the best peer", command / best, "x", Some(Bar::AtMost(1.0)));
        }
    }
}
