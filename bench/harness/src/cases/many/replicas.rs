//! Bench replicas: unequal servers, of which two have each file.

use super::site::{Site, WEB_PORT, ip};
use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::files::random_file;
use crate::rig::line::Line;
use crate::rig::link::Link;
use anyhow::{Context, Result, ensure};
use hikyaku_lab::{Access, Side};
use hikyaku_units::Rate;
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};
use xtask::Running;

pub(crate) const BENCH: Bench = Bench {
    id: "replicas",
    title: "Replicas: 13 servers at 5 to 300 Mbit/s, 150 ms, each of 512 files on two of them",
    method: "Rates and places are drawn by the seed (rates evenly on a logarithmic scale). `optimum` is the least time \
             in which any plan could bring all bytes, by maximum flow: over all sets of servers, the bytes that only \
             these have by their rates together, headers allowed for. `time` is from the first request to the last \
             byte, logins not included; `whole` is that of the program. aria2c is given both URIs of each file and \
             fetches 16 files at once; it is stopped after five times the optimum. What arrived is compared.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const SERVERS: u32 = 13;
const FILES: u32 = 512;
const FILE_BYTES: u64 = 10_000_000;
const RATES: [f64; 2] = [5e6, 300e6];
const RTT: Duration = Duration::from_millis(150);
const SEEDS: u64 = 5;
/// More than greetings and lists of names of all servers.
const FIRST_BYTES: u64 = 500_000;
const SAMPLE: Duration = Duration::from_millis(50);

fn cells(_: &Ctx) -> Vec<Cell> {
    let of = |seed| {
        ["hikyaku", "aria2c"].map(|who| {
            Cell::new(format!("seed{seed}-{who}")).with("seed", seed).with("who", who).once()
        })
    };
    (1..=SEEDS).flat_map(of).collect()
}

/// What the seed says.
struct Draw {
    /// Bits a second of each server.
    rates: Vec<f64>,
    /// The two servers that have each file, counted from 0.
    places: Vec<[usize; 2]>,
}

impl Draw {
    fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let [least, most] = RATES;
        let rates = (0..SERVERS).map(|_| least * (most / least).powf(rng.f64())).collect();
        let servers = SERVERS as usize;
        let place = |_| {
            let first = rng.usize(..servers);
            [first, (first + rng.usize(1..servers)) % servers]
        };
        Self { rates, places: (0..FILES).map(place).collect() }
    }

    /// The least seconds for files of so many bytes, with so much payload in a bit of the wire.
    fn optimum(&self, file: u64, link: f64, share: f64) -> f64 {
        let bits = |files: usize| files as f64 * file as f64 * 8.0;
        let of_set = |set: usize| {
            let has = |server: usize| set >> server & 1 == 1;
            let files =
                self.places.iter().filter(|of| of.iter().all(|server| has(*server))).count();
            let rate: f64 = self
                .rates
                .iter()
                .enumerate()
                .filter(|(at, _)| has(*at))
                .map(|(_, rate)| rate)
                .sum();
            bits(files) / (rate * share)
        };
        (1..1 << self.rates.len())
            .map(of_set)
            .fold(bits(self.places.len()) / (link * share), f64::max)
    }
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let seed: u64 = cell.setting("seed").parse()?;
    let who = cell.setting("who");
    let draw = Draw::new(seed);
    let link = Link::gigabit(RTT.as_secs_f64() * 1e3, 0.0);
    let mut spec = link.lab(u32::try_from(seed)?)?;
    let access = |rate: &f64| Access {
        rate: Some(Rate::from_bits_per_sec(*rate as u64)),
        delay: Duration::ZERO,
    };
    spec.servers = draw.rates.iter().map(access).collect();
    let mut site = Site::up(spec)?;
    let file_bytes = if ctx.is_quick() { FILE_BYTES / 10 } else { FILE_BYTES };
    for number in site.numbers() {
        fs::create_dir_all(site.root(number).join("set"))?;
    }
    for (file, places) in draw.places.iter().enumerate() {
        let [first, second] = places
            .map(|server| site.root(server as u32 + 1).join("set").join(format!("{file}.dat")));
        random_file(&first, file_bytes, file as u64)?;
        // The same file: replicas have the same times.
        fs::hard_link(first, second)?;
    }
    let optimum = draw.optimum(file_bytes, link.rate, link.eff() / link.rate);
    let line = match who {
        "hikyaku" => {
            site.start_daemons(ctx.hikyaku()?)?;
            let hosts: Vec<String> = site.numbers().map(ip).collect();
            let source = format!("hikyaku://{}/set", hosts.join(","));
            Line::new(ctx.hikyaku()?).words("cp -q -r").arg(source).arg(site.near(""))
        }
        _ => {
            site.start_web()?;
            aria2c(&site, &draw)?
        }
    };
    site.lab.restart()?;
    let began = Instant::now();
    let cap = Duration::from_secs_f64(optimum * 5.0 + 10.0);
    let mut running = Running::start(&mut site.command(Side::Client, &line)?)?;
    let mut first = None;
    let finished = loop {
        let delivered = site.lab.report()?.down.delivered_bytes;
        if delivered > FIRST_BYTES {
            first.get_or_insert_with(|| began.elapsed().saturating_sub(RTT));
        }
        if let Some(finished) = running.wait(Instant::now() + SAMPLE)? {
            break Some(finished);
        }
        if began.elapsed() > cap {
            break None;
        }
    };
    let whole = began.elapsed();
    let row = Row::new().with("optimum", optimum, "s");
    let Some(finished) = finished else {
        running.stop()?;
        return Ok(row.note("stopped"));
    };
    finished.success()?;
    for (file, [first, _]) in draw.places.iter().enumerate() {
        let name = format!("set/{file}.dat");
        let far = fs::read(site.root(*first as u32 + 1).join(&name))?;
        let near = fs::read(site.near(&name)).context("a file is missing")?;
        ensure!(near == far, "{name} differs");
    }
    let time = (whole - first.context("nothing has come")?).as_secs_f64();
    let bar = (who == "hikyaku").then_some(Bar::AtMost(1.15));
    let mut row = row.with("time", time, "s").with("whole", whole.as_secs_f64(), "s");
    row.push("of the optimum", time / optimum, "x", bar);
    let report = site.lab.report()?;
    Ok(if report.valid {
        row
    } else {
        row.note(format!("INVALID: {}", report.problems.join(", ")))
    })
}

fn aria2c(site: &Site, draw: &Draw) -> Result<Line> {
    let mut list = String::new();
    for (file, places) in draw.places.iter().enumerate() {
        let url =
            |server: usize| format!("http://{}:{WEB_PORT}/set/{file}.dat", ip(server as u32 + 1));
        writeln!(list, "{}", places.map(url).join("\t"))?;
    }
    let path = site.near("list");
    fs::write(&path, list)?;
    Ok(Line::new("aria2c").words("-q -j 16 -i").arg(path).arg("-d").arg(site.near("set")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_optimum_is_that_of_the_narrowest_set() {
        let places = vec![[0, 1], [0, 1], [1, 2]];
        let draw = Draw { rates: vec![8.0, 8.0, 800.0], places };
        // Two files of ten bytes lie on the first two only: 160 bits at 16 bit/s.
        assert!((draw.optimum(10, 1e9, 1.0) - 10.0).abs() < 1e-9);
        // The link for all of them together.
        assert!((draw.optimum(10, 12.0, 1.0) - 20.0).abs() < 1e-9);
        assert!((draw.optimum(10, 12.0, 0.5) - 40.0).abs() < 1e-9);
    }

    #[test]
    fn the_two_places_of_a_file_differ() {
        let draw = Draw::new(1);
        assert!(draw.places.iter().all(|[one, other]| one != other));
        assert!(draw.rates.iter().all(|rate| (RATES[0]..=RATES[1]).contains(rate)));
    }
}
