//! `cargo xtask bench`: a table of benches, each a list of cells, each cell kept once measured.
//!
//! To add a bench: write a file under `cases/` with a `pub(crate) const BENCH: Bench`, and name it in
//! [`BENCHES`]. `cases/ground/machine.rs` is the smallest example.

mod beside;
#[cfg(test)]
mod tests;

use crate::cases::{BENCHES, ground::machine};
use crate::record::row::{Cell, CellResult, Report, Row};
use crate::record::{provenance, publish, store, table};
use crate::rig::context::Ctx;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::{NETWORK_TOOLS, Need, ensure_present, is_root, workspace};

/// What benches run beyond what the tests need.
const TOOLS: &[Need] = &[
    Need::new("ping", "iputils-ping"),
    Need::new("setpriv", "util-linux"),
    Need::new("curl", "curl"),
    Need::new("python3", "python3"),
    Need::new("fusermount3", "fuse3"),
];
/// Programs of others, which two builds of the product are compared without.
const OTHERS: &[Need] = &[
    Need::new("rsync", "rsync"),
    Need::new("rclone", "rclone"),
    Need::new("sshfs", "sshfs"),
    Need::new("aria2c", "aria2"),
    Need::new("axel", "axel"),
];

/// A question, put to the machine in a number of cells.
pub(crate) struct Bench {
    /// What users type.
    pub(crate) id: &'static str,
    /// One line: what is measured.
    pub(crate) title: &'static str,
    /// How it is measured and how to read it; stands above the published table.
    pub(crate) method: &'static str,
    /// The points at which to measure. Ids are unique in a bench and fit for file names.
    pub(crate) cells: fn(&Ctx) -> Vec<Cell>,
    /// Measures one cell once. Called `--runs` times; [`Ctx::round`] tells which time it is.
    pub(crate) run: fn(&Ctx, &Cell) -> Result<Row>,
    /// In which order cells and rounds are taken.
    pub(crate) order: Order,
    /// Adds to the medians what only a look at other cells tells. Cells may be missing.
    pub(crate) compare: fn(&mut [CellResult]),
}

/// In which order cells and rounds are taken.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    /// All rounds of a cell, then the next cell.
    ByCell,
    /// All cells of a round, then the next round: a machine that drifts hits all cells alike.
    ByRound,
}

/// Names that benches had, and those of today. Until the next minor version both are accepted.
const OLD_NAMES: &[(&str, &str)] = &[
    ("s1", "fill"),
    ("s2", "transports"),
    ("s3", "start"),
    ("s4", "queue"),
    ("s5", "processor"),
    ("s6", "ten-gigabit"),
    ("s7", "fixed-rates"),
    ("s8", "random-paths"),
    ("s9", "trouble"),
    ("s10", "memory"),
    ("c1", "one-file"),
    ("c2", "small-files"),
    ("c3", "tree"),
    ("c4", "no-limit"),
    ("c5", "interrupted"),
    ("c6", "bad-peer"),
    ("c7", "extreme-sizes"),
    ("c8", "sync-by-sftp"),
    ("a1", "flood"),
    ("d1", "equal-flows"),
    ("d2", "round-trips"),
    ("d3", "beside-tcp"),
    ("d4", "queue-kinds"),
    ("d5", "late-flow"),
    ("d6", "short-flows"),
    ("p1", "ssh-channel"),
    ("pep", "proxy-switch"),
    ("vrs9", "shared-files"),
    ("tuned", "guc"),
];

/// For benches whose cells stand alone.
pub(crate) const ALONE: fn(&mut [CellResult]) = |_| {};

/// Options of `cargo xtask bench`.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct BenchArgs {
    /// Which benches to run; `all` for every one.
    #[arg(value_name = "ID", required_unless_present = "list")]
    pub(crate) ids: Vec<String>,
    /// List the benches and stop.
    #[arg(long)]
    pub(crate) list: bool,
    /// Keep what is in the output folder already, but for rounds in which the rig was late.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Measure only the cells whose id contains this text, or one of several with commas between them.
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// How many times to measure each cell; the table shows medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Where to keep results.
    #[arg(long, value_name = "DIR", default_value = "bench-results")]
    pub(crate) out: PathBuf,
    /// Measure each cell of the product with this other build of `hikyaku`, too, in turn, and show the median ratio with
    /// its 95 % interval, for which six runs are needed at least.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) beside: Option<PathBuf>,
    /// Measure this build of `hikyaku`, made elsewhere, in place of one that is built here.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "publish")]
    pub(crate) program: Option<PathBuf>,
    /// Rewrite the section of the bench in docs/internals/measurements.md.
    #[arg(long, conflicts_with_all = ["only", "beside"])]
    pub(crate) publish: bool,
    /// Take a fraction of the time, to see that a bench works. Its figures are kept apart, in a
    /// folder `quick` of the output folder.
    #[arg(long, conflicts_with = "publish")]
    pub(crate) quick: bool,
}

impl BenchArgs {
    /// Whether a cell is to be measured.
    fn chooses(&self, cell: &Cell) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| cell.id().contains(text.as_str()))
    }
}

/// Runs the benches asked for. A cell that fails is reported and does not stop the others.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    if args.list {
        let width = BENCHES.iter().map(|bench| bench.id.len()).max().unwrap_or(0);
        BENCHES.iter().for_each(|bench| println!("{:width$}  {}", bench.id, bench.title));
        return Ok(ExitCode::SUCCESS);
    }
    let benches = chosen(BENCHES, &args.ids)?;
    if benches.iter().any(|bench| bench.id != machine::BENCH.id) {
        if !is_root() {
            bail!(
                "benches make network namespaces and need root\n\
                 try: sudo env \"PATH=$PATH\" cargo xtask bench {}",
                args.ids.join(" ")
            );
        }
        ensure_present(NETWORK_TOOLS)?;
        ensure_present(TOOLS)?;
        if args.beside.is_none() {
            ensure_present(OTHERS)?;
        }
    }
    let mut failures = 0;
    for bench in benches {
        failures += match &args.beside {
            Some(program) => beside::run(bench, args, program)?,
            None => run_bench(bench, args)?,
        };
    }
    if failures > 0 {
        eprintln!("bench: {failures} cells failed; `--resume` measures only what is missing");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen<'a>(benches: &'a [Bench], ids: &[String]) -> Result<Vec<&'a Bench>> {
    if ids.iter().any(|id| id == "all") {
        return Ok(benches.iter().collect());
    }
    let find = |id: &String| {
        let old = OLD_NAMES.iter().find(|(old, _)| old == id);
        let name = old.map_or(id.as_str(), |(_, name)| name);
        match benches.iter().find(|bench| bench.id == name) {
            Some(bench) => Ok(bench),
            None => bail!("no bench is called {id}\ntry: cargo xtask bench --list"),
        }
    };
    ids.iter().map(find).collect()
}

/// The number of cells that failed.
fn run_bench(bench: &Bench, args: &BenchArgs) -> Result<usize> {
    let root = workspace();
    let mut context = Ctx::new(&root, args);
    let mut provenance = provenance::Provenance::collect(&root)?;
    if let Some(program) = &args.program {
        let found = program.canonicalize().with_context(|| format!("no {}", program.display()))?;
        provenance.commit = provenance::of_program(&found)?;
        context = context.with_hikyaku(found);
    }
    println!("{}: {}", bench.id, bench.title);
    let cells = (bench.cells)(&context);
    let mut series: Vec<Series> = cells
        .into_iter()
        .filter(|cell| args.chooses(cell))
        .map(|cell| Series::start(cell, bench, &context, args.resume, &provenance.commit))
        .collect();
    for (index, round) in steps(bench.order, &series) {
        context.set_round(round);
        series[index].measure(bench, &context, &provenance.commit)?;
    }
    let failures = series.iter().filter(|series| series.has_failed).count();
    let mut results: Vec<CellResult> =
        series.into_iter().filter_map(|series| series.result).collect();
    (bench.compare)(&mut results);
    println!("\n{}{}", table::text(&results), table::verdict(&results));
    let report = Report::new(bench.id, bench.title, provenance, results);
    store::write(&context.out().join(format!("{}.json", bench.id)), &report)?;
    if args.publish {
        if failures > 0 {
            bail!("{}: not published, for {failures} cells failed", bench.id);
        }
        publish::section(&root, bench.method, &report)?;
    }
    Ok(failures)
}

/// Which cell to measure for which round, in turn; what is there already is left out.
fn steps(order: Order, series: &[Series]) -> Vec<(usize, u32)> {
    let missing = |(index, one): (usize, &Series)| {
        (1..=one.want)
            .filter(|round| one.lacks(*round))
            .map(|round| (index, round))
            .collect::<Vec<_>>()
    };
    let mut steps: Vec<(usize, u32)> = series.iter().enumerate().flat_map(missing).collect();
    if matches!(order, Order::ByRound) {
        steps.sort_by_key(|&(index, round)| (round, index));
    }
    steps
}

/// The measurements of one cell so far.
struct Series {
    cell: Cell,
    want: u32,
    path: PathBuf,
    result: Option<CellResult>,
    /// What is kept is of this product, so that a round that was no figure may be taken again.
    may_mend: bool,
    has_failed: bool,
}

impl Series {
    /// With what is kept, if that is wanted. Rounds of one product do not go with those of another.
    fn start(cell: Cell, bench: &Bench, context: &Ctx, resume: bool, commit: &str) -> Self {
        let want = cell.runs(context.runs());
        let path = store::cell_path(context.out(), bench.id, cell.id());
        let kept = resume.then(|| store::read_cell(&path)).flatten();
        let is_whole = |kept: &CellResult| kept.runs.len() >= want as usize;
        let is_same = |kept: &CellResult| context.is_same_product(&kept.commit, commit);
        let may_mend = kept.as_ref().is_some_and(is_same);
        let result = kept.filter(|kept| is_whole(kept) || may_mend);
        if let Some(kept) = result.as_ref().filter(|kept| kept.commit != commit) {
            println!("  {}: kept, measured at {}", cell.id(), kept.commit);
        }
        Self { cell, want, path, result, may_mend, has_failed: false }
    }

    /// Whether a round is to be measured: it is not there, or it is no figure.
    fn lacks(&self, round: u32) -> bool {
        let runs = self.result.as_ref().map_or(&[][..], |result| &result.runs);
        match runs.get(round as usize - 1) {
            Some(row) => self.may_mend && !row.is_valid(),
            None => true,
        }
    }

    /// Measures one round and keeps it at once. A cell that has failed is left alone.
    fn measure(&mut self, bench: &Bench, context: &Ctx, commit: &str) -> Result<()> {
        if self.has_failed {
            return Ok(());
        }
        let row = match (bench.run)(context, &self.cell) {
            Ok(row) => row,
            Err(error) => {
                self.has_failed = true;
                eprintln!("  {}: FAILED: {error:#}", self.cell.id());
                return Ok(());
            }
        };
        println!("  {} ({}): {}", self.cell.id(), context.round(), table::values(&row));
        let mut runs = self.result.take().map_or_else(Vec::new, |result| result.runs);
        match runs.get_mut(context.round() as usize - 1) {
            Some(late) => *late = row,
            None => runs.push(row),
        }
        let result = CellResult::new(&self.cell, runs, commit);
        store::write(&self.path, &result)?;
        self.result = Some(result);
        Ok(())
    }
}
