//! Bench tuned: the number of parallel TCP connections that `hikyaku guc` finds, beside fixed numbers and beside
//! globus-url-copy.

use super::plot::{Series, draw};
use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Cell, Row};
use crate::rig::context::Ctx;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use xtask::servers::gridftp::{self, GridFtp};
use xtask::{Need, ensure_present, run as run_program};

pub(crate) const BENCH: Bench = Bench {
    id: "tuned",
    title: "tuned: parallel connections of `hikyaku guc` over 1 Gbit/s and 10 ms, socket buffers of 64 KB",
    method: "A download from globus-gridftp-server to /dev/null, over a link with a drop-tail queue of 500 packets. The tuned \
             one runs for 60 s from its start, the others for 20 s. `all` is goodput over the whole run, `late` that over its \
             second half. Beside it globus-url-copy with the same options. The picture is `tuned/tuned.svg` in the \
             output folder.",
    cells,
    run,
    order: Order::ByRound,
    compare: ALONE,
};

/// The fixed numbers of connections.
const FIXED: [u32; 6] = [1, 4, 8, 16, 32, 64];
/// Seconds of a run that is tuned, and of one that is not.
const TUNED_SECONDS: f64 = 60.0;
const FIXED_SECONDS: f64 = 20.0;
/// More than any run transfers. The file has holes only, so that no disk is read.
const FILE_BYTES: u64 = 40 << 30;
const PEER: &[Need] = &[Need::new("globus-url-copy", "globus-gass-copy-progs")];
const OURS: &str = "hikyaku guc";
const THEIRS: &str = "globus-url-copy";

fn cells(_: &Ctx) -> Vec<Cell> {
    let tuned = Cell::new("tuned").with("who", OURS).with("connections", "tuned");
    let fixed = |who: &'static str, short: &'static str| {
        FIXED.map(|n| Cell::new(format!("{short}-{n}")).with("who", who).with("connections", n))
    };
    let all = [fixed(OURS, "fixed"), fixed(THEIRS, "globus")];
    std::iter::once(tuned).chain(all.into_iter().flatten()).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    ensure_present(gridftp::NEEDS)?;
    ensure_present(PEER)?;
    let folder = Folder::new()?;
    let (server, serve) = gridftp::prepare(&folder.0, IpAddr::from([10, 77, 1, 1]), 2811)?;
    fs::File::create(server.data.join("file"))?.set_len(FILE_BYTES)?;
    let n = cell.setting("connections");
    let seconds = ctx.seconds(if n == "tuned" { TUNED_SECONDS } else { FIXED_SECONDS });
    let mut lab = Command::new(ctx.hikyaku()?);
    lab.args(["lab", "run", "--rate", "1gbit", "--rtt", "10ms", "--queue", "500p"]);
    lab.args(["--seed", &ctx.round().to_string(), "--server-cmd", &format!("{serve:?}"), "--"]);
    lab.args(["timeout", "-s", "INT", &seconds.to_string()]);
    let is_ours = cell.setting("who") == OURS;
    let finished = match is_ours {
        true => run_program(lab.args(ours(ctx.hikyaku()?, n, &server)), limit(seconds))?,
        false => run_program(lab.args(theirs(n, &server)), limit(seconds))?,
    };
    let row = match is_ours {
        true => {
            let series = Series::of_events(n, &finished.stdout);
            keep(ctx, cell, &series)?;
            our_row(&series, &finished.stdout)
        }
        false => their_row(&finished.stdout)?,
    };
    let is_late = finished.stderr.contains("NOT VALID");
    Ok(if is_late { row.note("INVALID: the relay of the lab was late") } else { row })
}

fn limit(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds + 60.0)
}

fn ours(program: &Path, n: &str, server: &GridFtp) -> Vec<String> {
    let mut words =
        vec![program.display().to_string(), "guc".to_owned(), "--json-lines".to_owned()];
    words.extend(["-tcp-bs", "65536"].map(str::to_owned));
    if n != "tuned" {
        words.extend(["-p", n].map(str::to_owned));
    }
    words.extend([format!("{}/file", server.url), "/dev/null".to_owned()]);
    words
}

fn theirs(n: &str, server: &GridFtp) -> Vec<String> {
    // It finds its own address by name otherwise, which a namespace does not know.
    let words = ["env", "GLOBUS_HOSTNAME=10.77.0.1", "globus-url-copy", "-vb", "-p", n];
    let mut words: Vec<String> = words.map(str::to_owned).into();
    words.extend(["-tcp-bs", "65536"].map(str::to_owned));
    words.extend([format!("{}/file", server.url), "file:///dev/null".to_owned()]);
    words
}

fn our_row(series: &Series, events: &str) -> Row {
    let row = Row::new().with("all", series.all(), "Mbit/s").with("late", series.late(), "Mbit/s");
    let found = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|event| event["event"] == "chunk" && event["phase"] == "found");
    let Some(found) = found else { return row };
    let number = |name: &str| found[name].as_f64().unwrap_or(f64::NAN);
    // The event comes at the end of the first chunk with the number that was found.
    row.with("found", number("connections"), "connections").with(
        "after",
        number("seconds") - number("took"),
        "s",
    )
}

/// By its own last line: bytes, and the average since its start in MiB a second.
fn their_row(text: &str) -> Result<Row> {
    let last = text.split(['\r', '\n']).rfind(|line| line.contains("MB/sec avg"));
    let words: Vec<&str> =
        last.context("globus-url-copy tells no rate")?.split_whitespace().collect();
    let rate: f64 = words.get(2).context("no average")?.parse()?;
    Ok(Row::new().with("all", rate * 8.0 * 1.048_576, "Mbit/s"))
}

/// Keeps the curve, and draws all that are there.
fn keep(ctx: &Ctx, cell: &Cell, series: &Series) -> Result<()> {
    let folder = ctx.out().join("tuned");
    fs::create_dir_all(&folder)?;
    let path = |id: &str| folder.join(format!("series-{id}-{}.json", ctx.round()));
    fs::write(path(cell.id()), serde_json::to_string(series)?)?;
    let read = |cell: &Cell| -> Option<Series> {
        serde_json::from_str(&fs::read_to_string(path(cell.id())).ok()?).ok()
    };
    let all: Vec<Series> = cells(ctx).iter().filter_map(read).collect();
    ensure!(!all.is_empty(), "no curve to draw");
    Ok(fs::write(folder.join("tuned.svg"), draw(&all))?)
}

/// A folder for the server, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("hikyaku-tuned-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
