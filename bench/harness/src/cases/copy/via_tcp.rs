//! Bench via: a copy over several TCP connections, where UDP may not go.

use crate::bench::{Bench, Order};
use crate::cases::web::get::{CAP_SECONDS, FILE_BYTES, download};
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::contender::Contender;
use crate::rig::context::Ctx;
use crate::rig::copier::{Copier, Job};
use crate::rig::download::payload;
use crate::rig::downloader::Downloader;
use crate::rig::files::written;
use crate::rig::ground::Ground;
use crate::rig::line::End;
use crate::rig::link::Link;
use crate::rig::ssh::Rig;
use crate::rig::sysctl::{Buffers, DEBIAN};
use crate::rig::trial::{Surroundings, measure};
use anyhow::{Context, Result};
use hikyaku_lab::Lab;
use std::fs;
use std::time::Duration;
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "via",
    title: "via: `cp --via tcp` beside scp and rsync over 1 Gbit/s and 100 ms, with Debian's TCP",
    method: "A file of 1 GiB of random bytes from RAM disk to RAM disk through a real OpenSSH server, down and up. TCP has \
             Debian's buffers and CUBIC, and the queue holds one bandwidth-delay product; loss is for each direction. `rate` \
             is the size over the time of the whole command, `after login` over the time less that of `ssh host true`. A \
             command is stopped after 45 s: its rate is then what the link had delivered, headers left out. What arrived is \
             compared, in unfinished files too. `hikyaku get` downloads the same file from Apache (bench `get`), and iperf3 \
             sends through 16 connections for 20 s.",
    cells,
    run,
    order: Order::ByRound,
    compare,
};

const RTT_MS: f64 = 100.0;
/// In percent, each way.
const LOSSES: [f64; 3] = [0.0, 0.1, 1.0];
const QUEUE: &str = "1bdp";
const IPERF_SECONDS: f64 = 20.0;
const OF_SCP: f64 = 1.0;
const OF_GET: f64 = 0.85;

/// Which way the file goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Down,
    Up,
}

/// Who carries it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Copy(Copier),
    Get,
    Iperf3,
}

const COPIERS: [Who; 3] =
    [Who::Copy(Copier::Hikyaku), Who::Copy(Copier::Scp), Who::Copy(Copier::Rsync)];
const WAYS: [Way; 2] = [Way::Down, Way::Up];

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }

    /// Everybody who is measured this way.
    fn all(self) -> impl Iterator<Item = Who> {
        COPIERS.into_iter().chain([match self {
            Self::Down => Who::Get,
            Self::Up => Who::Iperf3,
        }])
    }
}

impl Who {
    const fn id(self) -> &'static str {
        match self {
            Self::Copy(copier) => copier.name(),
            Self::Get => "get",
            Self::Iperf3 => "iperf3",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Copy(Copier::Hikyaku) => "hikyaku cp --via tcp",
            Self::Copy(copier) => copier.name(),
            Self::Get => "hikyaku get",
            Self::Iperf3 => "iperf3 -P 16",
        }
    }
}

fn cell(loss: f64, way: Way, who: Who) -> Cell {
    let cell = Cell::new(format!("{loss}-{}-{}", way.name(), who.id()))
        .with("loss %", loss)
        .with("way", way.name())
        .with("who", who.name());
    if who == Who::Iperf3 { cell.once() } else { cell }
}

fn cells(_: &Ctx) -> Vec<Cell> {
    let of =
        |loss| WAYS.into_iter().flat_map(move |way| way.all().map(move |who| cell(loss, way, who)));
    LOSSES.into_iter().flat_map(of).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let loss: f64 = cell.setting("loss %").parse()?;
    let way = WAYS.into_iter().find(|way| way.name() == cell.setting("way")).context("no way")?;
    let who = way.all().find(|who| who.name() == cell.setting("who")).context("nobody")?;
    let link = Link::gigabit(RTT_MS, loss / 100.0);
    match who {
        Who::Copy(copier) => copy(ctx, &link, way, copier),
        Who::Get => download(ctx, &link, 1.0, Downloader::Tuned),
        Who::Iperf3 => iperf3(ctx, &link),
    }
}

fn iperf3(ctx: &Ctx, link: &Link) -> Result<Row> {
    let seconds = ctx.seconds(IPERF_SECONDS);
    let who = Contender::iperf3("-P 16", seconds)?;
    let mut around = Surroundings::new(link.lab_with_queue(ctx.round(), QUEUE)?, seconds);
    around.buffers = DEBIAN;
    let outcome = measure(ctx, &around, &who)?;
    let row = Row::new().with("rate", outcome.transfer.whole() / 1e6, "Mbit/s");
    Ok(outcome.notes.into_iter().fold(row, Row::note))
}

fn copy(ctx: &Ctx, link: &Link, way: Way, copier: Copier) -> Result<Row> {
    let source = ctx.random_file(if ctx.is_quick() { FILE_BYTES / 16 } else { FILE_BYTES })?;
    let ground = Ground::Lab(Lab::up(link.lab_with_queue(ctx.round(), QUEUE)?)?);
    let rig = Rig::over(ground, ctx.disk()?, &workspace())?;
    let _buffers = Buffers::limit(DEBIAN)?;
    let (from, to) = match way {
        Way::Down => (End::Server, End::Client),
        Way::Up => (End::Client, End::Server),
    };
    // Programs copy a symbolic link in different ways.
    fs::hard_link(&source, rig.at(from, "data"))?;
    let folder = rig.at(to, "to");
    fs::create_dir(&folder)?;
    let job = match way {
        Way::Down => Job::Get { from: rig.far("data"), to: folder.join("copy") },
        Way::Up => Job::Put { from: rig.at(from, "data"), to: rig.far("to/copy") },
    };
    let line = copier.line(ctx, &rig, &job)?;
    let line = if copier == Copier::Hikyaku { line.words("--via tcp") } else { line };
    let login = rig.ssh()?;
    rig.restart()?;
    let timed =
        rig.timed(&line.behind_the_lab(), Duration::from_secs_f64(ctx.seconds(CAP_SECONDS)))?;
    let report = rig.report()?;
    let bytes = match &timed.finished {
        Some(_) => fs::metadata(&source)?.len() as f64,
        None => payload(if way == Way::Down { &report.down } else { &report.up }),
    };
    if timed.finished.is_none() {
        written(&source, &folder)?;
    }
    let mbit = |seconds: f64| bytes * 8e-6 / seconds;
    let row = Row::new().with("rate", mbit(timed.seconds), "Mbit/s").with(
        "after login",
        mbit(timed.seconds - login),
        "Mbit/s",
    );
    rig.judge(timed, row, [&source, &folder.join("copy")])
}

/// Ours beside scp and rsync, and beside `hikyaku get` over the same link.
fn compare(results: &mut [CellResult]) {
    for (loss, way) in LOSSES.into_iter().flat_map(|loss| WAYS.map(|way| (loss, way))) {
        let id = |way, who| cell(loss, way, who).id().to_owned();
        let value =
            |id: &str, name: &str| results.iter().find(|result| result.cell == id)?.typical(name);
        let ours = id(way, Who::Copy(Copier::Hikyaku));
        let Some(rate) = value(&ours, "rate") else { continue };
        let of = |copier| Some(rate / value(&id(way, Who::Copy(copier)), "rate")?);
        let (scp, rsync) = (of(Copier::Scp), of(Copier::Rsync));
        let get = value(&id(Way::Down, Who::Get), "rate");
        let get = get.and_then(|get| Some(value(&ours, "after login")? / get));
        let Some(cell) = results.iter_mut().find(|result| result.cell == ours) else { continue };
        let bars = [
            ("times scp's", scp, Some(Bar::AtLeast(OF_SCP))),
            ("times rsync's", rsync, None),
            ("times get's", get, Some(Bar::AtLeast(OF_GET))),
        ];
        for (name, value, bar) in bars {
            if let Some(value) = value {
                cell.median.push(name, value, "", bar);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_are_compared_with_scp_and_with_a_download() {
        let result = |way, who, rate: f64| {
            let row =
                Row::new().with("rate", rate, "Mbit/s").with("after login", rate * 1.1, "Mbit/s");
            CellResult::new(&cell(0.1, way, who), vec![row], "x")
        };
        let mut results = [
            result(Way::Up, Who::Copy(Copier::Hikyaku), 200.0),
            result(Way::Up, Who::Copy(Copier::Scp), 210.0),
            result(Way::Down, Who::Get, 250.0),
        ];
        compare(&mut results);
        let measures = &results[0].median.measures;
        let verdicts: Vec<_> = measures.iter().filter_map(|one| one.verdict()).collect();
        assert_eq!(verdicts, [false, true]);
    }
}
