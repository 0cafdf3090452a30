//! Bench `one-file`: one large file over a long, lossy link, by us and by what people use now.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::copier::{Copier, Job};
use crate::rig::files::random_file;
use crate::rig::line::End;
use crate::rig::link::Link;
use crate::rig::ssh::{Medium, Rig};
use anyhow::Result;
use std::fs;
use std::time::Duration;
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "one-file",
    title: "A file of 1 GB over 1 Gbit/s and 200 ms",
    method: "The whole command, from its start to its end, over a real OpenSSH server, from RAM disk \
             to RAM disk; `ssh` is `ssh host true` in the same run. The bar is that plus the file at \
             95 % of Eff plus 12 round trips, 6 for a path that is remembered (the second of two \
             copies). qcp is told the link's rate and round trip. \
             Peers put, once, and are stopped after 60 s: their rate is then what the link \
             delivered. What arrived is compared by `diff`.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const LOSSES: [f64; 3] = [0.0, 0.1, 1.0];
const PEERS: [Copier; 5] = [Copier::Scp, Copier::Rsync, Copier::Sftp, Copier::Rclone, Copier::Qcp];
const REMEMBERED: &str = "hikyaku, remembered";
const SIZE: u64 = 1_000_000_000;
const CAP: Duration = Duration::from_secs(60);

fn cells(_: &Ctx) -> Vec<Cell> {
    let mut cells = Vec::new();
    for loss in LOSSES {
        for way in ["put", "get"] {
            let cell = |who: &str| {
                let id = format!("loss{loss}-{way}-{}", who.replace(", ", "-"));
                Cell::new(id).with("loss %", loss).with("way", way).with("who", who)
            };
            cells.extend([cell(Copier::Hikyaku.name()), cell(REMEMBERED)]);
            if way == "put" {
                cells.extend(PEERS.map(|peer| cell(peer.name()).once()));
            }
        }
    }
    cells
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let loss: f64 = cell.setting("loss %").parse()?;
    let link = Link::gigabit(200.0, loss / 100.0);
    let rig = Rig::up(link.lab(ctx.round())?, Medium::Ram, &workspace())?;
    let size = if ctx.is_quick() { SIZE / 10 } else { SIZE };
    let is_put = cell.setting("way") == "put";
    let (here, there) =
        if is_put { (End::Client, End::Server) } else { (End::Server, End::Client) };
    let (from, to) = (rig.at(here, "file"), rig.at(there, "copy"));
    random_file(&from, size, 1)?;
    let job = if is_put {
        Job::Put { from: from.clone(), to: rig.far("copy") }
    } else {
        Job::Get { from: rig.far("file"), to: to.clone() }
    };
    let ssh = rig.ssh()?;
    let who = cell.setting("who");
    let peer = PEERS.into_iter().find(|peer| peer.name() == who);
    let line = peer.unwrap_or(Copier::Hikyaku).line(ctx, &rig, &job)?;
    if who == REMEMBERED {
        rig.timed(&line, CAP)?;
        fs::remove_file(&to)?;
    }
    rig.restart()?;
    let timed = rig.timed(&line, CAP)?;
    let report = rig.report()?;
    let mut row = Row::new().with("ssh", ssh, "s");
    if timed.finished.is_none() {
        let link = if is_put { &report.up } else { &report.down };
        let rate = link.delivered_bytes as f64 * 8.0 / timed.seconds;
        return Ok(row
            .with("command", timed.seconds, "s")
            .with("rate", rate / 1e6, "Mbit/s")
            .note("stopped"));
    }
    let rounds = if who == REMEMBERED { 6.0 } else { 12.0 };
    let bar = ssh + size as f64 * 8.0 / (0.95 * link.eff()) + rounds * link.rtt_ms / 1e3;
    let bar = peer.is_none().then_some(Bar::AtMost(bar));
    row.push("command", timed.seconds, "s", bar);
    row = row.with("rate", size as f64 * 8.0 / timed.seconds / 1e6, "Mbit/s");
    rig.judge(timed, row, [&from, &to])
}
