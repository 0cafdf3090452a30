//! Bench get: a file of a web server by `hikyaku get`, beside aria2c, axel and curl and beside fixed numbers of connections.

use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::context::Ctx;
use crate::rig::download::{Download, PAYLOAD_SHARE};
use crate::rig::downloader::Downloader;
use crate::rig::link::Link;
use crate::rig::web::Web;
use anyhow::{Context, Result};
use std::time::Duration;

pub(crate) const BENCH: Bench = Bench {
    id: "get",
    title: "get: a download from Apache by `hikyaku get`, aria2c and axel, with Debian's TCP",
    method: "A file of 1 GiB of random bytes, from RAM disk to RAM disk, from Apache (event module and default settings, \
             sendfile). TCP has Debian's buffers and CUBIC. The queue holds one bandwidth-delay product unless the cell says \
             otherwise; loss is for each direction. A program is stopped after 45 s. `rate` of a finished download is the size \
             over the time of the whole command; of a stopped one it is what the link had delivered, headers left out, over \
             the time. `kept` is what was found in the file, of what the link had delivered: programs write late, and some \
             request bytes twice. What arrived is compared, in unfinished files too. `connections` were open a second before \
             the end, `tuned to` is the last number that the rule measured. Each round takes all programs of a path one after \
             the other; curl and fixed numbers are measured once, `hikyaku get` over 200 ms and 0.1 or 1 % six times. All of \
             them run at a lower priority than the emulated link.",
    cells,
    run,
    order: Order::ByRound,
    compare,
};

pub(crate) const FILE_BYTES: u64 = 1 << 30;
pub(crate) const CAP_SECONDS: f64 = 45.0;
/// Where both peers have this share of the line, [`ON_FULL_LINE`] of the better one is enough.
const FULL_LINE: f64 = 0.95;
const ON_FULL_LINE: f64 = 0.98;
const OF_BEST_FIXED: f64 = 0.85;

/// A path, and the rates that the tuned download must reach on it, in Mbit/s.
struct Path {
    link: Link,
    /// Of the bandwidth-delay product.
    queue: f64,
    rates: Option<Bars>,
}

struct Bars {
    median: Option<f64>,
    least: f64,
}

const fn path(mbit: f64, rtt_ms: f64, loss_percent: f64) -> Path {
    let link = Link { rate: mbit * 1e6, rtt_ms, loss: loss_percent / 100.0, mtu: 1500 };
    Path { link, queue: 1.0, rates: None }
}

const PATHS: [Path; 13] = [
    path(1000.0, 100.0, 0.1),
    path(1000.0, 100.0, 0.0),
    path(1000.0, 20.0, 0.01),
    path(1000.0, 200.0, 0.0),
    path(1000.0, 200.0, 0.01),
    Path { rates: Some(Bars { median: None, least: 300.0 }), ..path(1000.0, 200.0, 0.1) },
    Path { rates: Some(Bars { median: Some(55.0), least: 45.0 }), ..path(1000.0, 200.0, 1.0) },
    path(1000.0, 10.0, 0.0),
    Path { queue: 0.1, ..path(1000.0, 50.0, 0.0) },
    path(100.0, 30.0, 0.0),
    path(100.0, 30.0, 1.0),
    path(10.0, 60.0, 0.0),
    path(300.0, 300.0, 0.01),
];

const PEERS: [Downloader; 2] = [Downloader::Aria2c, Downloader::Axel];
const FIXED: [Downloader; 4] =
    [Downloader::Fixed(8), Downloader::Fixed(16), Downloader::Fixed(32), Downloader::Fixed(64)];

fn everybody() -> impl Iterator<Item = Downloader> {
    [Downloader::Tuned].into_iter().chain(PEERS).chain([Downloader::Curl]).chain(FIXED)
}

impl Path {
    fn id(&self) -> String {
        let Link { rate, rtt_ms, loss, .. } = self.link;
        let queue = if self.queue == 1.0 { String::new() } else { format!("-q{}", self.queue) };
        format!("{}m-{rtt_ms}ms-{}{queue}", rate / 1e6, percent(loss))
    }

    /// The settings of its cells.
    fn settings(&self) -> [(&'static str, f64); 4] {
        let Link { rate, rtt_ms, loss, .. } = self.link;
        let link = [("rate Mbit/s", rate / 1e6), ("RTT ms", rtt_ms), ("loss %", percent(loss))];
        [link[0], link[1], link[2], ("queue BDP", self.queue)]
    }

    fn is_of(&self, cell: &Cell) -> bool {
        self.settings().iter().all(|(name, value)| cell.setting(name) == value.to_string())
    }

    fn cell(&self, who: Downloader) -> Cell {
        let cell = Cell::new(format!("{}-{}", self.id(), who.id()));
        let of_path = |cell: Cell, (name, value)| cell.with(name, value);
        let cell = self.settings().into_iter().fold(cell, of_path).with("who", who.name());
        match who {
            Downloader::Tuned if self.rates.is_some() => cell.twice(),
            Downloader::Tuned | Downloader::Aria2c | Downloader::Axel => cell,
            Downloader::Curl | Downloader::Fixed(_) => cell.once(),
        }
    }
}

/// A share in percent, without the noise of binary fractions.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

fn cells(_: &Ctx) -> Vec<Cell> {
    PATHS.iter().flat_map(|path| everybody().map(|who| path.cell(who))).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let path = PATHS.iter().find(|path| path.is_of(cell)).context("no such path")?;
    let who = everybody().find(|who| who.name() == cell.setting("who")).context("nobody")?;
    download(ctx, &path.link, path.queue, who)
}

/// One download from Apache over a link whose queue holds so many bandwidth-delay products.
pub(crate) fn download(ctx: &Ctx, link: &Link, queue: f64, who: Downloader) -> Result<Row> {
    let source = ctx.random_file(if ctx.is_quick() { FILE_BYTES / 16 } else { FILE_BYTES })?;
    let mut web = Web::up(ctx, link.lab_with_queue(ctx.round(), &format!("{queue}bdp"))?)?;
    web.start_apache(&source)?;
    let folder = web.near("to")?;
    let line = who.line(ctx, &web, &folder)?;
    let cap = Duration::from_secs_f64(ctx.seconds(CAP_SECONDS));
    Download::run(&mut web, &line, cap)?.row(who, &source, &folder)
}

/// The tuned download beside the better of the peers, beside the best fixed number, and beside what the path must give.
fn compare(results: &mut [CellResult]) {
    for path in &PATHS {
        let of = |who: Downloader| {
            let id = format!("{}-{}", path.id(), who.id());
            results.iter().find(|result| result.cell == id)?.typical("rate")
        };
        let Some(ours) = of(Downloader::Tuned) else { continue };
        let peers: Vec<f64> = PEERS.into_iter().filter_map(of).collect();
        let fixed = FIXED.into_iter().filter_map(of).reduce(f64::max);
        let line = path.link.rate / 1e6 * PAYLOAD_SHARE;
        let id = format!("{}-{}", path.id(), Downloader::Tuned.id());
        let Some(cell) = results.iter_mut().find(|result| result.cell == id) else { continue };
        let rates = cell.values("rate");
        let row = &mut cell.median;
        if let Some(peer) = peers.iter().copied().reduce(f64::max) {
            let bar = if is_full(&peers, line) { ON_FULL_LINE } else { 1.0 };
            row.push("of the better peer", ours / peer, "", Some(Bar::AtLeast(bar)));
        }
        if let Some(fixed) = fixed {
            row.push("of the best -n", ours / fixed, "", Some(Bar::AtLeast(OF_BEST_FIXED)));
        }
        if let Some(Bars { median, least }) = path.rates {
            if let Some(median) = median {
                row.push("median", ours, "Mbit/s", Some(Bar::AtLeast(median)));
            }
            let worst = rates.into_iter().fold(f64::INFINITY, f64::min);
            row.push("least", worst, "Mbit/s", Some(Bar::AtLeast(least)));
        }
    }
}

/// Whether all peers, of which there is more than one, have nearly what the line carries.
fn is_full(peers: &[f64], line: f64) -> bool {
    peers.len() == PEERS.len() && peers.iter().all(|rate| *rate >= FULL_LINE * line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(path: &Path, who: Downloader, rates: &[f64]) -> CellResult {
        let rows = rates.iter().map(|rate| Row::new().with("rate", *rate, "Mbit/s"));
        CellResult::new(&path.cell(who), rows.collect(), "x")
    }

    fn verdicts(path: &Path, ours: &[f64], others: [f64; 3]) -> Vec<(String, bool)> {
        let [aria2c, axel, fixed] = others;
        let mut results = [
            result(path, Downloader::Tuned, ours),
            result(path, Downloader::Aria2c, &[aria2c]),
            result(path, Downloader::Axel, &[axel]),
            result(path, Downloader::Fixed(16), &[fixed]),
        ];
        compare(&mut results);
        let measures = &results[0].median.measures;
        measures.iter().filter_map(|one| Some((one.name.clone(), one.verdict()?))).collect()
    }

    #[test]
    fn the_better_peer_and_the_best_number_are_the_bars() {
        let of = |peer: bool, fixed: bool| {
            [("of the better peer", peer), ("of the best -n", fixed)]
                .map(|(a, b)| (a.to_owned(), b))
        };
        assert_eq!(verdicts(&PATHS[0], &[200.0], [190.0, 110.0, 230.0]), of(true, true));
        assert_eq!(verdicts(&PATHS[0], &[200.0], [190.0, 201.0, 240.0]), of(false, false));
        // On a line that both peers fill, 98 % of the better one is enough.
        assert_eq!(verdicts(&PATHS[1], &[910.0], [920.0, 900.0, 920.0]), of(true, true));
        assert_eq!(verdicts(&PATHS[1], &[910.0], [920.0, 800.0, 920.0]), of(false, true));
    }

    #[test]
    fn the_least_of_six_runs_has_a_bar() {
        let lossy =
            PATHS.iter().find(|path| path.link.loss == 0.01 && path.rates.is_some()).unwrap();
        let of = |rates: &[f64]| verdicts(lossy, rates, [40.0, 40.0, 60.0])[2..].to_vec();
        let expected = |median: bool, least: bool| {
            vec![("median".to_owned(), median), ("least".to_owned(), least)]
        };
        assert_eq!(of(&[60.0, 46.0, 58.0]), expected(true, true));
        assert_eq!(of(&[60.0, 44.0, 50.0]), expected(false, false));
    }

    #[test]
    fn each_cell_has_its_path() {
        for (index, path) in PATHS.iter().enumerate() {
            let cell = path.cell(Downloader::Tuned).renamed("other".to_owned());
            assert_eq!(PATHS.iter().position(|path| path.is_of(&cell)), Some(index));
        }
    }
}
