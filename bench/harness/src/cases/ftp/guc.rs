//! Bench guc: the number of parallel TCP connections that `hikyaku guc` finds, beside fixed numbers, the published rule and
//! globus-url-copy.

use super::plot::{Series, draw};
use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::context::Ctx;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use xtask::servers::gridftp::{self, GridFtp};
use xtask::{Need, ensure_present, run as run_program};

pub(crate) const BENCH: Bench = Bench {
    id: "guc",
    title: "guc: parallel connections of `hikyaku guc` over 1 Gbit/s",
    method: "A download from globus-gridftp-server to /dev/null. Path `windows` is that of the paper on the published \
             rule: 10 ms, windows of 64 KB, which the kernel makes of socket buffers of 54,000 bytes, a drop-tail queue \
             of 500 packets; `clean` and `lossy` have 100 ms, a queue of one bandwidth-delay product, 0 and 0.1 % loss, \
             and the kernel's buffers. Runs whose number is tuned take 60 s, those of a fixed number 20 s; those of \
             globus-url-copy on `clean` and `lossy` 60 s. `all` is goodput over the whole run, `late` over its second \
             half; `reached` is the time after which the mean of 5 s was 900 Mbit/s for the first time; `number` is the \
             median number of connections of the second half. `share` is `all` over that of the best globus-url-copy on \
             the same path. The pictures `guc/PATH.svg` in the output folder have goodput and number over time, and the \
             point that the paper's figures 5 and 6 come to rest at.",
    cells,
    run,
    order: Order::ByRound,
    compare,
};

/// The fixed numbers of the paper's figures.
const FIXED: [u32; 6] = [1, 4, 8, 16, 32, 64];
/// Those of globus-url-copy.
const GLOBUS: [u32; 4] = [1, 4, 16, 32];
/// Seconds of a run that is tuned, and of one that is not.
const TUNED_SECONDS: f64 = 60.0;
const FIXED_SECONDS: f64 = 20.0;
/// More than any run transfers. The file has holes only, so that no disk is read.
const FILE_BYTES: u64 = 40 << 30;
const PEER: &[Need] = &[Need::new("globus-url-copy", "globus-gass-copy-progs")];
const OURS: &str = "hikyaku guc";
const THEIRS: &str = "globus-url-copy";
/// Mbit/s on path `windows`, in the paper and here.
const GOAL_MBIT: f64 = 900.0;
/// The median number of connections there: 32 in the paper.
const NUMBER: (f64, f64) = (24.0, 40.0);
/// Of the best globus-url-copy.
const SHARE: f64 = 0.95;

/// A path between client and server.
struct Path {
    id: &'static str,
    lab: &'static [&'static str],
    /// Options of both programs.
    options: &'static [&'static str],
}

const WINDOWS: Path = Path {
    id: "windows",
    lab: &["--rtt", "10ms", "--queue", "500p"],
    options: &["-tcp-bs", "54000"],
};
const PATHS: [Path; 3] = [
    WINDOWS,
    Path { id: "clean", lab: &["--rtt", "100ms", "--queue", "1bdp"], options: &[] },
    Path {
        id: "lossy",
        lab: &["--rtt", "100ms", "--queue", "1bdp", "--loss", "0.1%"],
        options: &[],
    },
];

fn cells(_: &Ctx) -> Vec<Cell> {
    let cell = |path: &str, name: &str, who: &str, connections: &str| {
        let cell = Cell::new(format!("{path}-{name}")).with("path", path).with("who", who);
        cell.with("connections", connections)
    };
    PATHS
        .iter()
        .flat_map(|path| {
            let of = |name: &str, who: &str, n: &str| cell(path.id, name, who, n);
            let tuned = of("tuned", OURS, "tuned");
            let published = of("published", OURS, "published").once();
            let globus = GLOBUS.map(|n| of(&format!("globus-{n}"), THEIRS, &n.to_string()));
            let fixed = FIXED.map(|n| of(&format!("fixed-{n}"), OURS, &n.to_string()).once());
            let fixed = fixed.into_iter().filter(|_| path.id == WINDOWS.id);
            [tuned, published].into_iter().chain(fixed).chain(globus)
        })
        .collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    ensure_present(gridftp::NEEDS)?;
    ensure_present(PEER)?;
    let path = PATHS.iter().find(|path| path.id == cell.setting("path")).context("no such path")?;
    let folder = Folder::new()?;
    let (server, serve) = gridftp::prepare(&folder.0, IpAddr::from([10, 77, 1, 1]), 2811)?;
    fs::File::create(server.data.join("file"))?.set_len(FILE_BYTES)?;
    let n = cell.setting("connections");
    let (is_ours, is_fixed) = (cell.setting("who") == OURS, n.parse::<u32>().is_ok());
    let is_short = is_fixed && path.id == WINDOWS.id;
    let seconds = ctx.seconds(if is_short { FIXED_SECONDS } else { TUNED_SECONDS });
    let mut lab = Command::new(ctx.hikyaku()?);
    lab.args(["lab", "run", "--rate", "1gbit"]).args(path.lab);
    lab.args(["--seed", &ctx.round().to_string(), "--server-cmd", &format!("{serve:?}"), "--"]);
    lab.args(["timeout", "-s", "INT", &seconds.to_string()]);
    let words = match is_ours {
        true => ours(ctx.hikyaku()?, n, path, &server),
        false => theirs(n, path, &server),
    };
    let finished = run_program(lab.args(words), Duration::from_secs_f64(seconds + 60.0))?;
    let row = match is_ours {
        true => {
            let series = Series::of_events(n, &finished.stdout);
            keep(ctx, cell, &series)?;
            our_row(path, n, &series)
        }
        false => their_row(&finished.stdout)?,
    };
    let is_late = finished.stderr.contains("NOT VALID");
    Ok(if is_late { row.note("INVALID: the relay of the lab was late") } else { row })
}

fn ours(program: &std::path::Path, n: &str, path: &Path, server: &GridFtp) -> Vec<String> {
    let mut words =
        vec![program.display().to_string(), "guc".to_owned(), "--json-lines".to_owned()];
    words.extend(path.options.iter().map(|&word| word.to_owned()));
    match n {
        "tuned" => {}
        "published" => words.extend(["-apt-tuner", "paper"].map(str::to_owned)),
        fixed => words.extend(["-p", fixed].map(str::to_owned)),
    }
    words.extend([format!("{}/file", server.url), "/dev/null".to_owned()]);
    words
}

fn theirs(n: &str, path: &Path, server: &GridFtp) -> Vec<String> {
    // It finds its own address by name otherwise, which a namespace does not know.
    let words = ["env", "GLOBUS_HOSTNAME=10.77.0.1", "globus-url-copy", "-vb", "-p", n];
    let mut words: Vec<String> = words.map(str::to_owned).into();
    words.extend(path.options.iter().map(|&word| word.to_owned()));
    words.extend([format!("{}/file", server.url), "file:///dev/null".to_owned()]);
    words
}

fn our_row(path: &Path, n: &str, series: &Series) -> Row {
    let row = Row::new().with("all", series.all(), "Mbit/s");
    if n.parse::<u32>().is_ok() {
        return row.with("late", series.late(), "Mbit/s");
    }
    let number = series.late_number();
    if n == "published" || path.id != WINDOWS.id {
        let row = row.with("late", series.late(), "Mbit/s");
        return row.with("number", number, "connections");
    }
    let reached = series.reached(GOAL_MBIT).unwrap_or(f64::INFINITY);
    row.held_to("late", series.late(), "Mbit/s", Bar::AtLeast(GOAL_MBIT))
        .held_to("reached", reached, "s", Bar::AtMost(TUNED_SECONDS))
        .held_to("number", number, "connections", Bar::AtLeast(NUMBER.0))
        .held_to("at most", number, "connections", Bar::AtMost(NUMBER.1))
}

/// By its own last line: bytes, and the average since its start in MiB a second.
fn their_row(text: &str) -> Result<Row> {
    let last = text.split(['\r', '\n']).rfind(|line| line.contains("MB/sec avg"));
    let words: Vec<&str> =
        last.context("globus-url-copy tells no rate")?.split_whitespace().collect();
    let rate: f64 = words.get(2).context("no average")?.parse()?;
    Ok(Row::new().with("all", rate * 8.0 * 1.048_576, "Mbit/s"))
}

/// The share of the tuned run in the best of globus-url-copy.
fn compare(results: &mut [CellResult]) {
    for path in &PATHS {
        let all = |name: &str, results: &[CellResult]| {
            let id = format!("{}-{name}", path.id);
            let found = results.iter().find(|one| one.cell == id)?;
            found.median.measures.iter().find(|one| one.name == "all").map(|one| one.value)
        };
        let rivals = GLOBUS.iter().filter_map(|n| all(&format!("globus-{n}"), results));
        let best = rivals.fold(f64::NAN, f64::max);
        let share = all("tuned", results).map(|tuned| tuned / best);
        let id = format!("{}-tuned", path.id);
        let tuned = results.iter_mut().find(|one| one.cell == id);
        if let (Some(tuned), Some(share)) = (tuned, share.filter(|share| share.is_finite())) {
            tuned.median.push("share", share, "", Some(Bar::AtLeast(SHARE)));
        }
    }
}

/// Keeps the curve, and draws all that are there of its path.
fn keep(ctx: &Ctx, cell: &Cell, series: &Series) -> Result<()> {
    let folder = ctx.out().join("guc");
    fs::create_dir_all(&folder)?;
    let path = |id: &str| folder.join(format!("series-{id}-{}.json", ctx.round()));
    fs::write(path(cell.id()), serde_json::to_string(series)?)?;
    let read = |cell: &Cell| -> Option<Series> {
        let first = folder.join(format!("series-{}-1.json", cell.id()));
        let text = fs::read_to_string(path(cell.id())).or_else(|_| fs::read_to_string(first));
        serde_json::from_str(&text.ok()?).ok()
    };
    let of_path = cell.setting("path");
    let cells = cells(ctx);
    let all = cells.iter().filter(|cell| cell.setting("path") == of_path);
    let all: Vec<Series> = all.filter_map(read).collect();
    ensure!(!all.is_empty(), "no curve to draw");
    Ok(fs::write(folder.join(format!("{of_path}.svg")), draw(&all, of_path == WINDOWS.id))?)
}

/// A folder for the server, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("hikyaku-guc-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
