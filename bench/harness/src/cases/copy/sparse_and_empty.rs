//! Bench `extreme-sizes`: a file that is mostly nothing, and very many that are nothing at all.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::copier::{Copier, Job};
use crate::rig::files::random_file;
use crate::rig::line::End;
use crate::rig::link::Link;
use crate::rig::ssh::{Medium, Rig};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "extreme-sizes",
    title: "A sparse terabyte, and a million empty files",
    method: "Over 1 Gbit/s and 20 ms, on RAM disk. The sparse file has a mebibyte of data every 100 \
             GB; its room at the target, its size and its data are compared. `memory` is the largest \
             resident size of each end.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const TERABYTE: u64 = 1_000_000_000_000;
const EVERY: u64 = 100_000_000_000;
const FILES: u32 = 1_000_000;
const PER_FOLDER: u32 = 1000;
const CAP: Duration = Duration::from_secs(300);
/// 256 MB and the stated window, in MB (docs/copy.md).
const MEMORY: f64 = 256.0 + 512.0;

fn cells(_: &Ctx) -> Vec<Cell> {
    ["sparse", "empty"].map(Cell::new).to_vec()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let link = Link::gigabit(20.0, 0.0);
    let rig = Rig::up(link.lab(ctx.round())?, Medium::Ram, &workspace())?;
    let (from, to) = (rig.at(End::Client, "from"), rig.at(End::Server, "copy"));
    let is_sparse = cell.id() == "sparse";
    let files = if ctx.is_quick() { FILES / 20 } else { FILES };
    if is_sparse {
        sparse(&from)?;
    } else {
        empty(&from, files)?;
    }
    let job = Job::Put { from: from.clone(), to: rig.far("copy") };
    let line = Copier::Hikyaku.line(ctx, &rig, &job)?;
    let (timed, [near, far]) = rig.timed_with_memory(&line, CAP)?;
    timed.finished.context("it does not end")?.success()?;
    if is_sparse {
        compare_sparse(&from, &to)?;
    } else {
        ensure!(count(&to)? == files, "not all files have arrived");
    }
    Ok(Row::new()
        .held_to("command", timed.seconds, "s", Bar::AtMost(if is_sparse { 60.0 } else { 120.0 }))
        .held_to("memory near", near / 1e6, "MB", Bar::AtMost(MEMORY))
        .held_to("memory far", far / 1e6, "MB", Bar::AtMost(MEMORY)))
}

fn data() -> impl Iterator<Item = u64> {
    (0..TERABYTE / EVERY).map(|n| n * EVERY + 12_345)
}

fn sparse(path: &Path) -> Result<()> {
    random_file(path, 0, 0)?;
    let file = File::options().write(true).open(path)?;
    let mut block = vec![0; 1 << 20];
    for at in data() {
        fastrand::Rng::with_seed(at).fill(&mut block);
        file.write_all_at(&block, at)?;
    }
    Ok(file.set_len(TERABYTE)?)
}

fn compare_sparse(a: &Path, b: &Path) -> Result<()> {
    let (a, b) = (File::open(a)?, File::open(b)?);
    ensure!(a.metadata()?.len() == b.metadata()?.len(), "another size");
    let room = b.metadata()?.blocks() * 512;
    ensure!(room < 64 << 20, "the copy takes {room} bytes");
    // A stretch around each that is more than the data.
    let (mut left, mut right) = (vec![0; 3 << 20], vec![0; 3 << 20]);
    for at in data() {
        let from = at.saturating_sub(1 << 20);
        a.read_exact_at(&mut left, from)?;
        b.read_exact_at(&mut right, from)?;
        ensure!(left == right, "other bytes at {at}");
    }
    Ok(())
}

fn empty(root: &Path, files: u32) -> Result<()> {
    for n in 0..files {
        let folder = root.join((n / PER_FOLDER).to_string());
        if n % PER_FOLDER == 0 {
            fs::create_dir_all(&folder)?;
        }
        File::create(folder.join(format!("empty-{n:07}")))?;
    }
    Ok(())
}

fn count(root: &Path) -> Result<u32> {
    let mut files = 0;
    for folder in fs::read_dir(root)? {
        for entry in fs::read_dir(folder?.path())? {
            ensure!(entry?.metadata()?.len() == 0, "not empty");
            files += 1;
        }
    }
    Ok(files)
}
