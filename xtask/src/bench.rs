//! `cargo xtask bench`: a table of benches, each a list of cells, each cell kept once measured.
//!
//! To add a bench: write `bench/NAME.rs` with a `pub(super) const BENCH: Bench`, and name it in
//! [`BENCHES`]. `bench/machine.rs` is the smallest example.

mod context;
mod host;
mod machine;
mod publish;
mod record;
mod store;
mod table;

use crate::root;
use anyhow::{Result, bail};
use context::Ctx;
use record::{Cell, CellResult, Report, Row};
use std::path::PathBuf;
use std::process::ExitCode;

/// All benches, in the order in which `--list` and `all` take them.
const BENCHES: &[Bench] = &[machine::BENCH];

/// A question, put to the machine in a number of cells.
struct Bench {
    /// What users type.
    id: &'static str,
    /// One line: what is measured.
    title: &'static str,
    /// How it is measured and how to read it; stands above the published table.
    method: &'static str,
    /// The points at which to measure. Ids are unique in a bench and fit for file names.
    cells: fn(&Ctx) -> Vec<Cell>,
    /// Measures one cell once. Called `--runs` times; [`Ctx::round`] tells which time it is.
    run: fn(&Ctx, &Cell) -> Result<Row>,
}

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    /// Which benches to run; `all` for every one.
    #[arg(value_name = "ID", required_unless_present = "list")]
    ids: Vec<String>,
    /// List the benches and stop.
    #[arg(long)]
    list: bool,
    /// Keep the cells that are in the output folder already.
    #[arg(long)]
    resume: bool,
    /// Measure only the cells whose id contains this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// How many times to measure each cell; the table shows medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Where to keep results.
    #[arg(long, value_name = "DIR", default_value = "bench-results")]
    out: PathBuf,
    /// Rewrite the section of the bench in docs/benchmarks.md.
    #[arg(long, conflicts_with = "only")]
    publish: bool,
}

/// Runs the benches asked for. A cell that fails is reported and does not stop the others.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    if args.list {
        let width = BENCHES.iter().map(|bench| bench.id.len()).max().unwrap_or(0);
        BENCHES.iter().for_each(|bench| println!("{:width$}  {}", bench.id, bench.title));
        return Ok(ExitCode::SUCCESS);
    }
    let mut failures = 0;
    for bench in chosen(BENCHES, &args.ids)? {
        failures += run_bench(bench, args)?;
    }
    if failures > 0 {
        eprintln!("xtask: {failures} cells failed; `--resume` measures only what is missing");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen<'a>(benches: &'a [Bench], ids: &[String]) -> Result<Vec<&'a Bench>> {
    if ids.iter().any(|id| id == "all") {
        return Ok(benches.iter().collect());
    }
    let find = |id: &String| match benches.iter().find(|bench| bench.id == id) {
        Some(bench) => Ok(bench),
        None => bail!("no bench is called {id}\ntry: cargo xtask bench --list"),
    };
    ids.iter().map(find).collect()
}

/// The number of cells that failed.
fn run_bench(bench: &Bench, args: &BenchArgs) -> Result<usize> {
    let root = root::workspace();
    let mut context = Ctx::new(&root, args.runs);
    let provenance = host::Provenance::collect(&root)?;
    println!("{}: {}", bench.id, bench.title);
    let mut results = Vec::new();
    let mut failures = 0;
    for cell in (bench.cells)(&context) {
        if args.only.as_ref().is_some_and(|text| !cell.id().contains(text.as_str())) {
            continue;
        }
        let path = store::cell_path(&args.out, bench.id, cell.id());
        if let Some(kept) = args.resume.then(|| store::read_cell(&path)).flatten() {
            if kept.commit != provenance.commit {
                println!("  {}: kept, measured at {}", cell.id(), kept.commit);
            }
            results.push(kept);
            continue;
        }
        match measure(bench, &mut context, &cell) {
            Ok(runs) => {
                let result = CellResult::new(cell, runs, &provenance.commit);
                store::write(&path, &result)?;
                println!("  {}: {}", result.cell, table::values(&result.median));
                results.push(result);
            }
            Err(error) => {
                failures += 1;
                eprintln!("  {}: FAILED: {error:#}", cell.id());
            }
        }
    }
    println!("\n{}", table::text(&results));
    let report = Report::new(bench.id, bench.title, provenance, results);
    store::write(&args.out.join(format!("{}.json", bench.id)), &report)?;
    if args.publish {
        if failures > 0 {
            bail!("{}: not published, for {failures} cells failed", bench.id);
        }
        publish::section(&root.join("docs/benchmarks.md"), bench.method, &report)?;
    }
    Ok(failures)
}

fn measure(bench: &Bench, context: &mut Ctx, cell: &Cell) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for round in 1..=context.runs() {
        context.set_round(round);
        rows.push((bench.run)(context, cell)?);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_fit_for_files() {
        let context = Ctx::new(&root::workspace(), 1);
        let mut benches = BTreeSet::new();
        for bench in BENCHES {
            assert!(benches.insert(bench.id), "{}", bench.id);
            let mut cells = BTreeSet::new();
            for cell in (bench.cells)(&context) {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                assert!(cell.id().chars().all(is_plain), "{}", cell.id());
                assert!(cells.insert(cell.id().to_owned()), "{}", cell.id());
            }
        }
    }

    #[test]
    fn an_unknown_id_is_refused() {
        let error = chosen(BENCHES, &["nothing".to_owned()]).err().unwrap();
        assert!(error.to_string().contains("no bench is called nothing"));
        assert_eq!(chosen(BENCHES, &["all".to_owned()]).unwrap().len(), BENCHES.len());
    }

    #[test]
    fn each_round_is_measured() {
        let bench = Bench {
            id: "rounds",
            title: "",
            method: "",
            cells: |_| vec![Cell::new("one")],
            run: |context, _| Ok(Row::new().with("round", f64::from(context.round()), "")),
        };
        let mut context = Ctx::new(&root::workspace(), 3);
        let rows = measure(&bench, &mut context, &Cell::new("one")).unwrap();
        assert_eq!(Row::median(&rows), Row::new().with("round", 2.0, ""));
    }
}
