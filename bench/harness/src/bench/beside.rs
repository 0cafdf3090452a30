//! Two builds of the product beside each other: each cell of a bench is measured with both in turn, so that a
//! machine that drifts hits both alike.

use crate::bench::{Bench, BenchArgs, Series};
use crate::record::provenance;
use crate::record::row::{Cell, CellResult, Report, Row};
use crate::record::store;
use crate::record::table;
use crate::rig::context::Ctx;
use anyhow::{Result, ensure};
use std::path::Path;
use xtask::workspace;

/// Measures the cells of `bench` that run the product with this tree's build and with `program`. Gives how many
/// cells failed.
pub(crate) fn run(bench: &Bench, args: &BenchArgs, program: &Path) -> Result<usize> {
    ensure!(program.is_file(), "{}: no program", program.display());
    let root = workspace();
    let folder = BenchArgs { out: args.out.join("beside"), ..args.clone() };
    let mut contexts =
        [Ctx::new(&root, &folder), Ctx::new(&root, &folder).with_hikyaku(program.canonicalize()?)];
    let provenance = provenance::Provenance::collect(&root)?;
    println!("{}: {}\n  beside {}", bench.id, bench.title, program.display());
    let cells = (bench.cells)(&contexts[0]);
    let mut pairs: Vec<[Series; 2]> = cells
        .into_iter()
        .filter(|cell| is_product(cell) && args.chooses(cell))
        .map(|cell| {
            BUILDS.map(|build| {
                let cell = cell.clone().renamed(format!("{}-{build}", cell.id()));
                Series::start(cell, bench, &contexts[0], args.resume, &provenance.commit)
            })
        })
        .collect();
    for round in 1..=args.runs {
        for pair in &mut pairs {
            // Neither of them always goes first.
            let order = if round % 2 == 1 { [0, 1] } else { [1, 0] };
            for build in order {
                let (series, context) = (&mut pair[build], &mut contexts[build]);
                if series.lacks(round) && round <= series.want {
                    context.set_round(round);
                    series.measure(bench, context, &provenance.commit)?;
                }
            }
        }
    }
    let failures = pairs.iter().flatten().filter(|series| series.has_failed).count();
    let lines: Vec<CellResult> = pairs.iter().flat_map(compared).collect();
    println!("\n{}", table::text(&lines));
    let report = Report::new(bench.id, bench.title, provenance, lines);
    store::write(&folder.out.join(format!("{}.json", bench.id)), &report)?;
    Ok(failures)
}

const BUILDS: [&str; 2] = ["this", "other"];

/// Whether a cell measures the product, and not a program of others.
fn is_product(cell: &Cell) -> bool {
    let who = cell.setting("who");
    who.is_empty() || who.starts_with("hikyaku")
}

/// A line for each number that both builds have: its two medians and their ratio.
fn compared(pair: &[Series; 2]) -> Vec<CellResult> {
    let [Some(this), Some(other)] = pair.each_ref().map(|series| series.result.as_ref()) else {
        return Vec::new();
    };
    let line = |measure: &crate::record::row::Measure| {
        let before = other.median.value(&measure.name)?;
        let cell = Cell::new(this.cell.trim_end_matches("-this"))
            .with("cell", this.cell.trim_end_matches("-this"))
            .with("number", &measure.name)
            .with("unit", &measure.unit);
        let row = Row::new().with("this", measure.value, "").with("other", before, "").with(
            "this / other",
            measure.value / before,
            "",
        );
        let mut line = CellResult::new(&cell, vec![row], &this.commit);
        line.median.notes = [&this.median.notes[..], &other.median.notes[..]].concat();
        Some(line)
    };
    this.median.measures.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_others_are_not_measured_twice() {
        assert!(is_product(&Cell::new("a")) && is_product(&Cell::new("a").with("who", "hikyaku")));
        assert!(!is_product(&Cell::new("a").with("who", "scp")));
    }

    #[test]
    fn a_line_has_both_builds_and_their_ratio() {
        let series = |build: &str, seconds: &[f64]| {
            let cell = Cell::new(format!("put-{build}"));
            let rows = seconds.iter().map(|&value| Row::new().with("command", value, "s"));
            let result = CellResult::new(&cell, rows.collect(), "abc");
            let path = std::path::PathBuf::new();
            Series { cell, want: 3, path, result: Some(result), may_mend: false, has_failed: false }
        };
        let lines =
            compared(&[series("this", &[3.0, 9.0, 2.0]), series("other", &[2.0, 2.0, 2.0])]);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].cell, "put");
        assert_eq!(lines[0].median.value("this / other"), Some(1.5));
    }
}
