//! Bench many: one client and 1 to 13 servers.

use super::site::{Site, WEB_PORT, ip};
use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::files::random_file;
use crate::rig::line::Line;
use crate::rig::link::Link;
use anyhow::{Context, Result, ensure};
use hikyaku_lab::{Access, Report, Side};
use hikyaku_units::Rate;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use xtask::Running;

pub(crate) const BENCH: Bench = Bench {
    id: "many",
    title: "Many servers: a client at 1 Gbit/s and 1 to 13 servers at 77 Mbit/s, 150 ms away",
    method: "Each server stores 39 files of 2.5 MB on RAM disk, and the client fetches all, or stores as many on the servers. \
             `rate` is all bytes by the time from the start of the program to its end, logins included. `steady` is the \
             payload from 2 s after the first byte until the first server is idle, `of the lines` what that is of the smaller of \
             link and all servers (headers allowed for). `90 %` is when the last server to get there had nine tenths \
             of its rate for half a second. aria2c fetches 16 files at once from a web server on each (Python's \
             `http.server`), scp is one program a server, all at once; both once, over Debian's TCP, stopped after 60 s. \
             What arrived is compared.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const COUNTS: [u32; 5] = [1, 2, 4, 8, 13];
const FILES_PER_SERVER: u32 = 39;
const FILE_BYTES: u64 = 2_500_000;
const SERVER_RATE: f64 = 77e6;
const RTT_MS: f64 = 150.0;
const CAP: Duration = Duration::from_secs(60);
const SAMPLE: Duration = Duration::from_millis(100);
/// Left out after the first byte.
const START_UP: f64 = 2.0;
/// A server is idle in a sample in which it sends less than this share of its rate.
const IDLE_SHARE: f64 = 0.3;
/// Samples over which a rate is taken.
const SMOOTH: usize = 5;

fn cells(_: &Ctx) -> Vec<Cell> {
    let mut cells = Vec::new();
    for loss in [0.0, 0.5] {
        for way in ["down", "up"] {
            for servers in COUNTS {
                let who: &[&str] =
                    if way == "down" { &["hikyaku", "aria2c", "scp"] } else { &["hikyaku", "scp"] };
                for who in who {
                    let cell = Cell::new(format!("{way}-{servers}-{loss}-{who}"));
                    let cell = cell.with("way", way).with("servers", servers);
                    let cell = cell.with("loss %", loss).with("who", who);
                    cells.push(if *who == "hikyaku" { cell } else { cell.once() });
                }
            }
        }
    }
    cells
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let servers: u32 = cell.setting("servers").parse()?;
    let loss: f64 = cell.setting("loss %").parse()?;
    let (is_down, who) = (cell.setting("way") == "down", cell.setting("who"));
    let link = Link::gigabit(RTT_MS, loss / 100.0);
    let access =
        Access { rate: Some(Rate::from_bits_per_sec(SERVER_RATE as u64)), delay: Duration::ZERO };
    let mut spec = link.lab(ctx.round())?;
    spec.servers = vec![access; servers as usize];
    let mut site = Site::up(spec)?;
    let files = if ctx.is_quick() { FILES_PER_SERVER / 4 } else { FILES_PER_SERVER };
    let bytes = u64::from(servers * files) * FILE_BYTES;
    let set = site.near("set");
    for number in site.numbers() {
        let to = if is_down { site.root(number).join("set") } else { set.clone() };
        fs::create_dir_all(&to)?;
        for file in 0..files {
            random_file(
                &to.join(format!("{number}-{file}.dat")),
                FILE_BYTES,
                u64::from(number << 8 | file),
            )?;
        }
    }
    let line = match who {
        "hikyaku" => {
            site.start_daemons(ctx.hikyaku()?)?;
            ours(ctx.hikyaku()?, &site, is_down)
        }
        "aria2c" => {
            site.start_web()?;
            aria2c(&site, files)?
        }
        _ => {
            let options = site.start_ssh()?;
            scp(&site, &options, is_down)
        }
    };
    site.lab.restart()?;
    let began = Instant::now();
    let mut running = Running::start(&mut site.command(Side::Client, &line)?)?;
    let mut samples = Vec::new();
    let finished = loop {
        samples.push((began.elapsed().as_secs_f64(), site.lab.report()?));
        if let Some(finished) = running.wait(Instant::now() + SAMPLE)? {
            break Some(finished);
        }
        if began.elapsed() > CAP {
            break None;
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    let Some(finished) = finished else {
        running.stop()?;
        return Ok(Row::new().note("stopped"));
    };
    finished.success()?;
    compare(&site, is_down, servers * files)?;
    let line_rate = link.eff().min(f64::from(servers) * SERVER_RATE * link.eff() / link.rate);
    let mut row = Row::new().with("rate", bytes as f64 * 8.0 / seconds / 1e6, "Mbit/s");
    if let Some(steady) = Steady::of(&samples, is_down, bytes) {
        let share = 100.0 * steady.rate / line_rate;
        row.push("steady", steady.rate / 1e6, "Mbit/s", None);
        row.push("of the lines", share, "%", (who == "hikyaku").then_some(Bar::AtLeast(95.0)));
        row.push("90 %", steady.all_up, "s", None);
    }
    let report = site.lab.report()?;
    Ok(if report.valid {
        row
    } else {
        row.note(format!("INVALID: {}", report.problems.join(", ")))
    })
}

fn ours(program: &Path, site: &Site, is_down: bool) -> Line {
    let hosts: Vec<String> = site.numbers().map(ip).collect();
    let line = Line::new(program).words("cp -q -r");
    if is_down {
        line.arg(format!("hikyaku://{}/set", hosts.join(","))).arg(site.near(""))
    } else {
        line.arg(site.near("set")).arg(format!("hikyaku://{}/", hosts.join(",")))
    }
}

fn aria2c(site: &Site, files: u32) -> Result<Line> {
    let mut list = String::new();
    // One of each server in turn, as somebody who wants all of them busy would write it.
    for file in 0..files {
        for number in site.numbers() {
            writeln!(list, "http://{}:{WEB_PORT}/set/{number}-{file}.dat", ip(number))?;
        }
    }
    let path = site.near("list");
    fs::write(&path, list)?;
    Ok(Line::new("aria2c").words("-q -j 16 -i").arg(path).arg("-d").arg(site.near("set")))
}

fn scp(site: &Site, options: &str, is_down: bool) -> Line {
    let one = |number: u32| {
        let far = format!("{}:{}", ip(number), site.root(number).display());
        if is_down {
            format!("scp -q -r {options} {far}/set {} &", site.near("").display())
        } else {
            let near = site.near("set");
            format!(
                "mkdir -p {0}/set; scp -q {options} {1}/{number}-* {far}/set/ &",
                site.root(number).display(),
                near.display()
            )
        }
    };
    let all: String = site.numbers().map(one).collect::<Vec<_>>().join("\n");
    Line::new("sh").arg("-c").arg(format!("{all}\nwait"))
}

/// Whether as many files have come as were sent, each with the right content.
fn compare(site: &Site, is_down: bool, count: u32) -> Result<()> {
    let mut found = 0;
    for number in site.numbers() {
        let folder = site.root(number).join("set");
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let entry = entry?;
            let far = fs::read(entry.path())?;
            let near =
                fs::read(site.near("set").join(entry.file_name())).context("a file is missing")?;
            ensure!(near == far, "{} differs", entry.path().display());
            found += 1;
        }
    }
    let way = if is_down { "fetched" } else { "stored" };
    ensure!(found == count, "{found} of {count} files were {way}");
    Ok(())
}

/// The part in which all servers send.
struct Steady {
    /// Payload in bits a second.
    rate: f64,
    /// Seconds until all servers had been at nine tenths of their rate.
    all_up: f64,
}

impl Steady {
    /// Nothing, if the run was too short.
    fn of(samples: &[(f64, Report)], is_down: bool, payload: u64) -> Option<Self> {
        let of_server = |report: &Report, server: usize| {
            let server = &report.servers[server];
            (if is_down { server.down_delivered_bytes } else { server.up_delivered_bytes }) as f64
        };
        let all = |report: &Report| {
            (0..report.servers.len()).map(|server| of_server(report, server)).sum::<f64>()
        };
        let (_, last) = samples.last()?;
        let servers = last.servers.len();
        let end = all(last);
        // Requests and greetings are no payload.
        let first = samples.iter().find(|(_, report)| all(report) > 0.01 * end)?.0;
        let rate = |server: usize, at: usize| {
            let (from, to) = (&samples[at.checked_sub(SMOOTH)?], &samples[at]);
            let bytes = of_server(&to.1, server) - of_server(&from.1, server);
            Some(bytes * 8.0 / (to.0 - from.0))
        };
        let is_up = |server: usize, at: usize| {
            rate(server, at).is_some_and(|rate| rate >= 0.9 * SERVER_RATE)
        };
        let up = |server: usize| {
            (0..samples.len()).find(|at| is_up(server, *at)).map(|at| samples[at].0)
        };
        let all_up = (0..servers).filter_map(up).fold(first, f64::max);
        let begin = samples.iter().position(|(at, _)| *at >= first + START_UP)?;
        let idle = |at: &usize| {
            (0..servers)
                .any(|server| rate(server, *at).is_some_and(|rate| rate < IDLE_SHARE * SERVER_RATE))
        };
        let stop =
            (begin + SMOOTH..samples.len()).find(idle).map_or(samples.len() - 1, |at| at - SMOOTH);
        let (from, to) = (samples.get(begin)?, samples.get(stop)?);
        let wire = (all(&to.1) - all(&from.1)) * 8.0 / (to.0 - from.0);
        (stop > begin).then(|| Self { rate: wire * payload as f64 / end, all_up })
    }
}
