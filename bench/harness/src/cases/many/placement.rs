//! Bench placement: a few large files go up to unequal servers.

use super::site::{Site, ip};
use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::files::random_file;
use crate::rig::line::Line;
use crate::rig::link::Link;
use anyhow::{Context, Result, ensure};
use hikyaku_lab::{Access, Side};
use hikyaku_units::Rate;
use std::fs;
use std::time::{Duration, Instant};
use xtask::Running;

pub(crate) const BENCH: Bench = Bench {
    id: "placement",
    title: "Placement: 4 large and 100 small files up to 13 servers at 40 to 400 Mbit/s, 45 to 200 ms, 0.2 %",
    method: "The large files have 1 GB each, the small ones 1 MB; with `scale` 0.1 all rates and sizes are a tenth, for \
             machines with few processors. `least` is the time of the four fastest lines, headers allowed for: the \
             fourth of them with one large file. Time is that of the whole program, logins included. What arrived is \
             compared.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

/// Mbit/s, in an order in which the first servers are not the fastest.
const RATES: [u32; 13] = [100, 40, 240, 60, 400, 50, 140, 320, 70, 180, 80, 260, 120];
/// Milliseconds there and back.
const RTTS: [u64; 13] = [45, 200, 100, 150, 60, 80, 120, 180, 90, 140, 70, 160, 110];
const LOSS: f64 = 0.002;
const LARGE: u64 = 4;
const LARGE_BYTES: f64 = 1e9;
const SMALL: u64 = 100;
const SMALL_BYTES: f64 = 1e6;
const SAMPLE: Duration = Duration::from_millis(50);
/// A copy that takes more than so many times the least time is stopped.
const CAP: f64 = 6.0;

fn cells(_: &Ctx) -> Vec<Cell> {
    ["0.1", "1"].map(|scale| Cell::new(format!("scale{scale}")).with("scale", scale)).into()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let scale: f64 = cell.setting("scale").parse()?;
    let link = Link { rate: 10e9, rtt_ms: 1.0, loss: LOSS, mtu: 1500 };
    let mut spec = link.lab(ctx.round())?;
    let access = |(rate, rtt): (&u32, &u64)| Access {
        rate: Some(Rate::from_bits_per_sec((f64::from(*rate) * 1e6 * scale) as u64)),
        delay: Duration::from_millis(rtt / 2),
    };
    spec.servers = RATES.iter().zip(&RTTS).map(access).collect();
    let mut site = Site::up(spec)?;
    let set = site.near("set");
    fs::create_dir_all(&set)?;
    for number in 0..LARGE + SMALL {
        let size = if number < LARGE { LARGE_BYTES } else { SMALL_BYTES };
        random_file(&set.join(format!("{number}.dat")), (size * scale) as u64, number + 1)?;
    }
    site.start_daemons(ctx.hikyaku()?)?;
    let hosts: Vec<String> = site.numbers().map(ip).collect();
    let line = Line::new(ctx.hikyaku()?).words("cp -q -r").arg(&set);
    let line = line.arg(format!("hikyaku://{}/", hosts.join(",")));
    let least = least_seconds(&link);
    site.lab.restart()?;
    let began = Instant::now();
    let mut running = Running::start(&mut site.command(Side::Client, &line)?)?;
    let finished = loop {
        if let Some(finished) = running.wait(Instant::now() + SAMPLE)? {
            break Some(finished);
        }
        if began.elapsed().as_secs_f64() > CAP * least {
            break None;
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    let Some(finished) = finished else {
        running.stop()?;
        return Ok(Row::new().note("stopped"));
    };
    finished.success()?;
    compare(&site)?;
    let mut row = Row::new().with("time", seconds, "s").with("least", least, "s");
    row.push("of the least", seconds / least, "x", Some(Bar::AtMost(1.2)));
    let report = site.lab.report()?;
    Ok(if report.valid {
        row
    } else {
        row.note(format!("INVALID: {}", report.problems.join(", ")))
    })
}

/// Seconds that the fourth of the fastest lines needs for one large file. It is the same at every scale.
fn least_seconds(link: &Link) -> f64 {
    let mut rates = RATES;
    rates.sort_unstable_by(|one, other| other.cmp(one));
    let payload = link.eff() / link.rate;
    LARGE_BYTES * 8.0 / (f64::from(rates[LARGE as usize - 1]) * 1e6 * payload)
}

/// Whether every file is on one server, with the right content.
fn compare(site: &Site) -> Result<()> {
    let mut found = 0;
    for number in site.numbers() {
        let folder = site.root(number).join("set");
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let entry = entry?;
            let near = fs::read(site.near("set").join(entry.file_name()));
            let is_same = fs::read(entry.path())? == near.context("a file that was not sent")?;
            ensure!(is_same, "{} differs", entry.path().display());
            found += 1;
        }
    }
    ensure!(found == LARGE + SMALL, "{found} files were stored, {} were sent", LARGE + SMALL);
    Ok(())
}
