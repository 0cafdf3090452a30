//! Bench get-fair: tuned downloads beside each other, and beside downloads by one connection.

use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::context::Ctx;
use crate::rig::download::{PAYLOAD_SHARE, marked};
use crate::rig::downloader::Downloader;
use crate::rig::link::Link;
use crate::rig::together::{Entry, Together, together};
use crate::rig::web::Web;
use anyhow::{Context, Result};

pub(crate) const BENCH: Bench = Bench {
    id: "get-fair",
    title: "get-fair: tuned downloads beside each other and beside curl, 300 Mbit/s",
    method: "Downloads from Apache over one link without random loss, with Debian's TCP; the rig is that of bench `get`. \
             `alone`: one tuned download for 45 s. `four`: four of them that begin 8 s apart; `Jain` is the index of their \
             goodput over the last 30 s, 45 s after the last began, and `sum` their share of what the link carries. \
             `most connections` is the largest number that a tuner measured last. `plain`: one or four downloads by curl, \
             which has one connection, and 10 s later a download by `hikyaku get` or by aria2c with 16; `plain` is what all \
             curls together have in the 60 s that follow. Goodput of `hikyaku get` is that of its events, and of curl the \
             growth of its file.",
    cells,
    run,
    order: Order::ByRound,
    compare,
};

const MBIT: f64 = 300.0;
/// More than any of them fetches.
const FILE_BYTES: u64 = 2 << 30;
/// How long a tuned download runs after the last has begun, and how much of that is judged when there are several.
const SETTLED_SECONDS: f64 = 45.0;
const JUDGED_SECONDS: f64 = 30.0;
const APART_SECONDS: f64 = 8.0;
/// When the other download begins beside plain ones, and for how long they are judged.
const BESIDE_FROM_SECONDS: f64 = 10.0;
const BESIDE_SECONDS: f64 = 60.0;
/// Queues from this size on can be seen to stand.
const VISIBLE_QUEUE: f64 = 0.3;

const JAIN: f64 = 0.95;
const CONNECTIONS_MAX: f64 = 24.0;
const SUM: f64 = 0.97;
const PLAIN_KEEPS: f64 = 0.95;

/// Round trips in milliseconds and queues of the bandwidth-delay product.
const ROUND_TRIPS: [f64; 3] = [10.0, 30.0, 200.0];
const QUEUES: [f64; 3] = [0.1, 0.3, 1.0];
const BESIDE: [(f64, f64); 2] = [(30.0, 1.0), (200.0, 0.1)];
const NEIGHBOURS: [Downloader; 2] = [Downloader::Tuned, Downloader::Aria2c];

/// The settings of a cell.
#[derive(Clone, Copy)]
struct Scene {
    rtt_ms: f64,
    queue: f64,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Alone,
    Four,
    Plain { count: usize, beside: Downloader },
}

impl Scene {
    fn cell(&self) -> Cell {
        let (id, plain, who) = match self.kind {
            Kind::Alone => ("alone".to_owned(), 0, Downloader::Tuned),
            Kind::Four => ("four".to_owned(), 0, Downloader::Tuned),
            Kind::Plain { count, beside } => (format!("plain{count}"), count, beside),
        };
        let path = format!("{}ms-q{}", self.rtt_ms, self.queue);
        Cell::new(format!("{id}-{path}-{}", who.id()))
            .with("RTT ms", self.rtt_ms)
            .with("queue BDP", self.queue)
            .with("scene", id)
            .with("curls", plain)
            .with("who", who.name())
    }

    /// Who downloads, and for how long all of them run.
    fn entries(&self, ctx: &Ctx) -> (Vec<Entry>, f64) {
        let settled = ctx.seconds(SETTLED_SECONDS);
        match self.kind {
            Kind::Alone => (vec![(Downloader::Tuned, 0.0)], settled),
            Kind::Four => {
                let begins = [0.0, 1.0, 2.0, 3.0].map(|nth| nth * ctx.seconds(APART_SECONDS));
                (begins.map(|at| (Downloader::Tuned, at)).into(), begins[3] + settled)
            }
            Kind::Plain { count, beside } => {
                let from = ctx.seconds(BESIDE_FROM_SECONDS);
                let mut entries = vec![(Downloader::Curl, 0.0); count];
                entries.push((beside, from));
                (entries, from + ctx.seconds(BESIDE_SECONDS))
            }
        }
    }

    fn row(&self, ctx: &Ctx, seconds: f64, done: &Together) -> Row {
        let line = MBIT * 1e6 * PAYLOAD_SHARE;
        let is_visible = self.queue >= VISIBLE_QUEUE;
        let numbers = done.each.iter().filter_map(|one| one.tuned_to);
        let most = numbers.reduce(f64::max).unwrap_or(f64::NAN);
        let bar = is_visible.then_some(Bar::AtMost(CONNECTIONS_MAX));
        match self.kind {
            Kind::Alone => {
                let mut row =
                    Row::new().with("sum", done.link.mean(0.0, seconds) / line, "of the line");
                row.push("most connections", most, "", bar);
                row
            }
            Kind::Four => {
                let from = seconds - ctx.seconds(JUDGED_SECONDS);
                let each: Vec<f64> =
                    done.each.iter().map(|one| one.goodput.mean(from, seconds)).collect();
                let sum = done.link.mean(from, seconds) / line;
                let mut row = Row::new()
                    .held_to("sum", sum, "of the line", Bar::AtLeast(SUM))
                    .held_to("Jain", hikyaku_sim::jain(&each), "", Bar::AtLeast(JAIN));
                row.push("most connections", most, "", bar);
                for (rate, name) in each.iter().zip(["first", "second", "third", "fourth"]) {
                    row.push(name, rate / 1e6, "Mbit/s", None);
                }
                row
            }
            Kind::Plain { count, .. } => {
                let from = ctx.seconds(BESIDE_FROM_SECONDS);
                let curls = done.each.iter().take(count);
                let plain: f64 = curls.map(|one| one.goodput.mean(from, seconds)).sum();
                let all = done.link.mean(from, seconds);
                let row = Row::new().with("plain", plain / 1e6, "Mbit/s");
                let row = row.with("the other", (all - plain) / 1e6, "Mbit/s");
                if most.is_nan() { row } else { row.with("most connections", most, "") }
            }
        }
    }
}

fn scenes() -> Vec<Scene> {
    let mut scenes = Vec::new();
    for (rtt_ms, queue) in ROUND_TRIPS.into_iter().flat_map(|rtt| QUEUES.map(|queue| (rtt, queue)))
    {
        if queue >= VISIBLE_QUEUE {
            scenes.push(Scene { rtt_ms, queue, kind: Kind::Alone });
        }
        scenes.push(Scene { rtt_ms, queue, kind: Kind::Four });
    }
    for (rtt_ms, queue) in BESIDE {
        for count in [1, 4] {
            let beside = |beside| Scene { rtt_ms, queue, kind: Kind::Plain { count, beside } };
            scenes.extend(NEIGHBOURS.map(beside));
        }
    }
    scenes
}

fn cells(_: &Ctx) -> Vec<Cell> {
    scenes().iter().map(Scene::cell).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let is_it = |scene: &Scene| {
        let of_scene = scene.cell();
        let names = ["RTT ms", "queue BDP", "scene", "curls", "who"];
        names.iter().all(|name| of_scene.setting(name) == cell.setting(name))
    };
    let scene = scenes().into_iter().find(is_it).context("no such scene")?;
    let source = ctx.random_file(FILE_BYTES)?;
    let link = Link { rate: MBIT * 1e6, rtt_ms: scene.rtt_ms, loss: 0.0, mtu: 1500 };
    let queue = format!("{}bdp", scene.queue);
    let mut web = Web::up(ctx, link.lab_with_queue(ctx.round(), &queue)?)?;
    web.start_apache(&source)?;
    let (entries, seconds) = scene.entries(ctx);
    let done = together(ctx, &web, &source, &entries, seconds)?;
    Ok(marked(scene.row(ctx, seconds, &done), &done.report))
}

/// What plain downloads keep beside ours, of what they keep beside aria2c.
fn compare(results: &mut [CellResult]) {
    for (rtt_ms, queue) in BESIDE {
        for count in [1, 4] {
            let id = |beside| Scene { rtt_ms, queue, kind: Kind::Plain { count, beside } }.cell();
            let [ours, theirs] = NEIGHBOURS.map(|who| id(who).id().to_owned());
            let plain =
                |id: &str| results.iter().find(|result| result.cell == id)?.typical("plain");
            let (Some(beside_ours), Some(beside_theirs)) = (plain(&ours), plain(&theirs)) else {
                continue;
            };
            if let Some(cell) = results.iter_mut().find(|result| result.cell == ours) {
                let kept = beside_ours / beside_theirs;
                cell.median.push("plain keeps", kept, "", Some(Bar::AtLeast(PLAIN_KEEPS)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_plain_downloads_keep_is_a_share_of_that_beside_aria2c() {
        let cell = |beside, plain| {
            let scene = Scene { rtt_ms: 30.0, queue: 1.0, kind: Kind::Plain { count: 4, beside } };
            CellResult::new(&scene.cell(), vec![Row::new().with("plain", plain, "Mbit/s")], "x")
        };
        let kept = |ours: f64| {
            let mut results = [cell(Downloader::Tuned, ours), cell(Downloader::Aria2c, 50.0)];
            compare(&mut results);
            let measure = results[0].median.measures.iter().find(|one| one.name == "plain keeps");
            measure.and_then(crate::record::row::Measure::verdict)
        };
        assert_eq!((kept(48.0), kept(47.0)), (Some(true), Some(false)));
    }

    #[test]
    fn tuned_downloads_begin_one_after_the_other() {
        let ctx = Ctx::for_tests(1, std::path::Path::new(""));
        let four = Scene { rtt_ms: 30.0, queue: 1.0, kind: Kind::Four };
        let (entries, seconds) = four.entries(&ctx);
        assert_eq!(entries.iter().map(|entry| entry.1).collect::<Vec<_>>(), [0.0, 8.0, 16.0, 24.0]);
        assert_eq!(seconds, 69.0);
    }
}
