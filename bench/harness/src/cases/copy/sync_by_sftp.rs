//! Bench `sync-by-sftp`: `hikyaku sync` of many small files where the far side has SFTP only, against rsync.

use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::context::Ctx;
use crate::rig::files::random_file;
use crate::rig::ground::Ground;
use crate::rig::line::{End, Line};
use crate::rig::ssh::Rig;
use crate::rig::veth::{Segmentation, Veth};
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "sync-by-sftp",
    title: "`sync` of 100,000 files of 1 kB by SFTP, over a plain veth",
    method: "The whole command, `hikyaku sync -a` where hikyaku is not found at the far side, and `rsync -a`, both \
             through the same ssh. `again` is a second run, which finds nothing. Ours waits until each file is on the \
             disk; rsync does not, and on disk it is followed by `sync`. Ours may take 1.5 times as long as rsync.",
    cells,
    run,
    order: Order::ByRound,
    compare,
};

const FILES: u32 = 100_000;
const PER_FOLDER: u32 = 100;
const SIZE: u64 = 1000;
const MTU: u32 = 1500;
const CAP: Duration = Duration::from_secs(300);
const MEDIA: [&str; 2] = ["ram", "disk"];
const WAYS: [&str; 2] = ["push", "pull"];
const WHO: [&str; 2] = ["hikyaku", "rsync"];
const TIMES_OF_RSYNC_MAX: f64 = 1.5;

fn cells(_: &Ctx) -> Vec<Cell> {
    let mut cells = Vec::new();
    for medium in MEDIA {
        for way in WAYS {
            for who in WHO {
                let cell = Cell::new(format!("{medium}-{way}-{who}"));
                cells.push(cell.with("medium", medium).with("way", way).with("who", who));
            }
        }
    }
    cells
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let is_disk = cell.setting("medium") == "disk";
    let parent = if is_disk { workspace().join("target") } else { PathBuf::from("/dev/shm") };
    let rig = Rig::over(Ground::Wire(Veth::up(MTU, Segmentation::None)?), &parent, &workspace())?;
    let ends = match cell.setting("way") {
        "push" => [End::Client, End::Server],
        _ => [End::Server, End::Client],
    };
    let [from, to] = [rig.at(ends[0], "tree"), rig.at(ends[1], "copy")];
    plant(&from, if ctx.is_quick() { FILES / 20 } else { FILES })?;
    rustix::fs::sync();
    let word = |end: End, path: &Path, slash: &str| match end {
        End::Client => format!("{}{slash}", path.display()),
        End::Server => format!("far:{}{slash}", path.display()),
    };
    let words = [word(ends[0], &from, "/"), word(ends[1], &to, "")];
    let ssh = format!("ssh -F {}", rig.config());
    let line = match cell.setting("who") {
        "hikyaku" => {
            let line = Line::new(ctx.hikyaku()?).words("sync -a -q --remote-path none -e");
            line.arg(&ssh).args(&words)
        }
        _ if is_disk => Line::new("rsync").words("-a -e").arg(&ssh).args(&words).then("sync"),
        _ => Line::new("rsync").words("-a -e").arg(&ssh).args(&words),
    };
    let timed = rig.timed(&line, CAP)?;
    let mut row = Row::new().with("command", timed.seconds, "s");
    if timed.finished.is_some() {
        row = row.with("again", rig.timed(&line, CAP)?.seconds, "s");
    }
    rig.judge(timed, row, [&from, &to])
}

fn plant(root: &Path, files: u32) -> Result<()> {
    for n in 0..files {
        let folder = root.join(format!("part-{:04}", n / PER_FOLDER));
        if n % PER_FOLDER == 0 {
            fs::create_dir_all(&folder)?;
        }
        random_file(&folder.join(format!("{n:06}")), SIZE, n.into())?;
    }
    Ok(())
}

/// Ours against rsync.
fn compare(results: &mut [CellResult]) {
    for medium in MEDIA {
        for way in WAYS {
            let id = |who: &str| format!("{medium}-{way}-{who}");
            let rsync = results.iter().find(|result| result.cell == id("rsync"));
            let Some(rsync) = rsync.and_then(|result| result.median.value("command")) else {
                continue;
            };
            let Some(ours) = results.iter_mut().find(|result| result.cell == id("hikyaku")) else {
                continue;
            };
            if let Some(command) = ours.median.value("command") {
                let bar = Some(Bar::AtMost(TIMES_OF_RSYNC_MAX));
                ours.median.push("of rsync", command / rsync, "x", bar);
            }
        }
    }
}
