//! Bench get-servers: a download by `hikyaku get` from servers that limit it.

use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::context::Ctx;
use crate::rig::download::{Download, tuned_number};
use crate::rig::downloader::Downloader;
use crate::rig::line::Line;
use crate::rig::link::Link;
use crate::rig::odd_web::turned_away;
use crate::rig::web::Web;
use anyhow::{Context, Result};
use std::path::Path;
use std::time::Duration;

pub(crate) const BENCH: Bench = Bench {
    id: "get-servers",
    title: "get-servers: `hikyaku get` from servers with limits, 200 Mbit/s and 50 ms",
    method: "A download of 60 s over a link without random loss, from a server of the bench (`odd-web`). `two` serves two \
             connections and turns others away, by 503, 403, a reset or silence; `turned away` counts them by the server's log, a \
             minute. `all` sends 50 Mbit/s in all, and `each` 2 Mbit/s to each connection. `dip` sends 150 Mbit/s in all, and a \
             tenth of that for 12 s after 15 s; `restart` is ended after 15 s, and another server takes its port. `back` is when \
             the mean of a second was 90 % of that of the 5 s before again, counted from the end of the dip or from the restart; \
             60 s stand for never.",
    cells,
    run,
    order: Order::ByRound,
    compare,
};

const LINK: Link = Link { rate: 200e6, rtt_ms: 50.0, loss: 0.0, mtu: 1500 };
/// More than the link carries in the time.
const FILE_BYTES: u64 = 2 << 30;
const SECONDS: f64 = 60.0;
const TURNED_AWAY_MAX: f64 = 6.0;
/// Refusals of the start have a column.
const START_SECONDS: f64 = 10.0;
const CONNECTIONS_MAX: f64 = 24.0;
const BACK_SECONDS_MAX: f64 = 10.0;
/// When a server gets slow or is restarted, and for how long it is slow.
const TROUBLE_SECONDS: f64 = 15.0;
const SLOW_SECONDS: f64 = 12.0;
/// Goodput before the trouble is that of so many seconds; this share of it is enough after it.
const BEFORE_SECONDS: f64 = 5.0;
const BACK_SHARE: f64 = 0.9;

/// A server, and who downloads from it.
struct Scene {
    id: &'static str,
    options: &'static str,
    who: Downloader,
}

const fn scene(id: &'static str, options: &'static str, who: Downloader) -> Scene {
    Scene { id, options, who }
}

const TUNED: Downloader = Downloader::Tuned;
const ANY: &str = "any";
const EACH: &str = "each";
const ALL: &str = "all";
const DIP: &str = "dip";
const RESTART: &str = "restart";

const SCENES: [Scene; 10] = [
    scene("two-503", "--grants 2 --refusal 503", TUNED),
    scene("two-403", "--grants 2 --refusal 403", TUNED),
    scene("two-reset", "--grants 2 --refusal reset", TUNED),
    scene("two-silence", "--grants 2 --refusal silence", TUNED),
    scene(ANY, "", Downloader::Fixed(2)),
    scene(ALL, "--all 50", TUNED),
    scene(EACH, "--each 2", TUNED),
    scene(EACH, "--each 2", Downloader::Fixed(64)),
    scene(DIP, "--all 150 --slow-from 15 --slow-for 12", TUNED),
    scene(RESTART, "--all 150", TUNED),
];

/// A tuned download, the scene whose fixed number it is compared with, and the share that it must have.
const COMPARED: [(&str, (&str, Downloader), f64); 5] = [
    ("two-503", (ANY, Downloader::Fixed(2)), 0.97),
    ("two-403", (ANY, Downloader::Fixed(2)), 0.97),
    ("two-reset", (ANY, Downloader::Fixed(2)), 0.97),
    ("two-silence", (ANY, Downloader::Fixed(2)), 0.97),
    (EACH, (EACH, Downloader::Fixed(64)), 0.9),
];

fn cell_id(server: &str, who: Downloader) -> String {
    format!("{server}-{}", who.id())
}

fn cells(_: &Ctx) -> Vec<Cell> {
    let cell = |scene: &Scene| {
        let cell = Cell::new(cell_id(scene.id, scene.who)).with("server", scene.id);
        cell.with("who", scene.who.name())
    };
    SCENES.iter().map(cell).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let is_it = |scene: &&Scene| {
        scene.id == cell.setting("server") && scene.who.name() == cell.setting("who")
    };
    let scene = SCENES.iter().find(is_it).context("no such scene")?;
    let source = ctx.random_file(FILE_BYTES)?;
    let mut web = Web::up(ctx, LINK.lab_with_queue(ctx.round(), "1bdp")?)?;
    let log = web.far("turned-away");
    let server = server(&web, &source, &log, scene.options)?;
    web.start_server(&server)?;
    let folder = web.near("to")?;
    let line = scene.who.line(ctx, &web, &folder)?;
    // A try is too short for what happens later.
    let has_trouble = [DIP, RESTART].contains(&scene.id);
    let cap = Duration::from_secs_f64(if has_trouble { SECONDS } else { ctx.seconds(SECONDS) });
    let mut restarts = (scene.id == RESTART).then_some(TROUBLE_SECONDS);
    let done = Download::run_with(&mut web, &line, cap, &mut |web, seconds| {
        if restarts.is_some_and(|at| seconds >= at) {
            restarts = None;
            web.stop_servers();
            web.start_server(&server)?;
        }
        Ok(())
    })?;
    let row = done.row(scene.who, &source, &folder)?;
    Ok(judged(row, scene, &done, &turned_away(&log)))
}

/// The command of the server.
fn server(web: &Web, source: &Path, log: &Path, options: &str) -> Result<Line> {
    let line = Line::new(std::env::current_exe()?).words("odd-web --listen").arg(web.listens());
    Ok(line.arg("--file").arg(source).arg("--log").arg(log).words(options))
}

fn judged(mut row: Row, scene: &Scene, done: &Download, turned_away: &[f64]) -> Row {
    let is_tuned = scene.who == TUNED;
    if is_tuned && scene.id.starts_with("two-") {
        let at_first = turned_away.iter().filter(|at| **at < START_SECONDS).count();
        let a_minute = turned_away.len() as f64 / (done.seconds / 60.0);
        row.push("turned away", a_minute, "a minute", Some(Bar::AtMost(TURNED_AWAY_MAX)));
        row.push("in the first 10 s", at_first as f64, "", None);
    }
    if is_tuned && scene.id == ALL {
        let n = tuned_number(&done.output).unwrap_or(f64::NAN);
        row.push("held to", n, "", Some(Bar::AtMost(CONNECTIONS_MAX)));
    }
    let over = match scene.id {
        DIP => TROUBLE_SECONDS + SLOW_SECONDS,
        RESTART => TROUBLE_SECONDS,
        _ => return row,
    };
    let before = done.mean(TROUBLE_SECONDS - BEFORE_SECONDS, TROUBLE_SECONDS);
    let back = done.back_after(over, BACK_SHARE * before).unwrap_or(SECONDS);
    row.push("back", back, "s", Some(Bar::AtMost(BACK_SECONDS_MAX)));
    row
}

/// The tuned download beside the number that its server makes the best one.
fn compare(results: &mut [CellResult]) {
    for (server, (other, fixed), share) in COMPARED {
        let rate = |id: &str| results.iter().find(|result| result.cell == id)?.typical("rate");
        let id = cell_id(server, TUNED);
        let (Some(ours), Some(best)) = (rate(&id), rate(&cell_id(other, fixed))) else { continue };
        if let Some(cell) = results.iter_mut().find(|result| result.cell == id) {
            cell.median.push("of the best -n", ours / best, "", Some(Bar::AtLeast(share)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comparison_has_its_two_cells() {
        let ctx = Ctx::for_tests(1, Path::new(""));
        let ids: Vec<String> = cells(&ctx).iter().map(|cell| cell.id().to_owned()).collect();
        for (server, (other, fixed), _) in COMPARED {
            assert!(ids.contains(&cell_id(server, TUNED)) && ids.contains(&cell_id(other, fixed)));
        }
    }

    #[test]
    fn a_server_that_limits_each_connection_is_compared_with_many() {
        let result = |who, rate| {
            let rows = vec![Row::new().with("rate", rate, "Mbit/s")];
            CellResult::new(&Cell::new(cell_id(EACH, who)), rows, "x")
        };
        let mut results = [result(TUNED, 100.0), result(Downloader::Fixed(64), 125.0)];
        compare(&mut results);
        assert_eq!(results[0].median.measures.last().and_then(|one| one.verdict()), Some(false));
    }
}
