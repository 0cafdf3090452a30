//! Two builds of the product beside each other: each cell of a bench is measured with both in turn, so that a
//! machine that drifts hits both alike.
//!
//! Each round makes a pair. The ratio of a pair is free of what both builds met in that round, so the table shows the
//! median of these ratios, and the interval in which their true median lies with a confidence of 95 %.

use crate::bench::{Bench, BenchArgs, Series};
use crate::record::provenance;
use crate::record::row::{Cell, CellResult, Report, Row, median};
use crate::record::store;
use crate::record::table;
use crate::rig::context::Ctx;
use anyhow::{Result, ensure};
use std::path::Path;
use xtask::workspace;

/// Measures the cells of `bench` that run the product with this tree's build, or that of `--program`, and with `program`.
/// Returns the number of cells that failed.
pub(crate) fn run(bench: &Bench, args: &BenchArgs, program: &Path) -> Result<usize> {
    ensure!(program.is_file(), "{}: no program", program.display());
    let root = workspace();
    let folder = BenchArgs { out: args.out.join("beside"), ..args.clone() };
    let of = |program: &Path| -> Result<Ctx> {
        Ok(Ctx::new(&root, &folder).with_hikyaku(program.canonicalize()?))
    };
    let this = match &args.program {
        Some(this) => of(this)?,
        None => Ctx::new(&root, &folder),
    };
    let mut contexts = [this, of(program)?];
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

/// The probability with which the interval has the true median.
const CONFIDENCE: f64 = 0.95;
const BUILDS: [&str; 2] = ["this", "other"];

/// Whether a cell measures the product, and not a program of others.
fn is_product(cell: &Cell) -> bool {
    let who = cell.setting("who");
    who.is_empty() || who.starts_with("hikyaku")
}

/// A line for each number that both builds have: its two medians, and the ratio of the builds over all pairs.
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
        let row = Row::new().with("this", measure.value, "").with("other", before, "");
        let ratios = ratios(&this.runs, &other.runs, &measure.name);
        let row = row.with("this / other", median(ratios.clone()), "");
        let row = match interval(ratios) {
            Some((low, high)) => row.with("at least", low, "").with("at most", high, ""),
            None => row,
        };
        let mut line = CellResult::new(&cell, vec![row], &this.commit);
        line.median.notes = [&this.median.notes[..], &other.median.notes[..]].concat();
        Some(line)
    };
    this.median.measures.iter().filter_map(line).collect()
}

/// The ratio of a number in each round that is a figure for both builds.
fn ratios(this: &[Row], other: &[Row], name: &str) -> Vec<f64> {
    let pairs = this.iter().zip(other).filter(|(this, other)| this.is_valid() && other.is_valid());
    pairs.filter_map(|(this, other)| Some(this.value(name)? / other.value(name)?)).collect()
}

/// The interval of the median at 95 %, by the signs of the differences from it: no shape of the distribution is assumed.
/// `None` for fewer than six values, which cannot give that confidence.
fn interval(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let all = 2_f64.powi(i32::try_from(count).ok()?);
    // The share of cases in which at most `index` values lie on one given side of the median.
    let (mut ways, mut tail, mut chosen) = (1.0, 0.0, None);
    for index in 0..count / 2 {
        tail += ways / all;
        if 2.0 * tail > 1.0 - CONFIDENCE {
            break;
        }
        chosen = Some(index);
        ways *= (count - index) as f64 / (index + 1) as f64;
    }
    chosen.map(|index| (values[index], values[count - 1 - index]))
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

    #[test]
    fn a_round_that_is_no_figure_for_one_build_makes_no_pair() {
        let row = |value: f64| Row::new().with("time", value, "s");
        let late = row(9.0).note("INVALID: the rig was late");
        assert_eq!(ratios(&[row(3.0), row(4.0)], &[late, row(2.0)], "time"), [2.0]);
    }

    #[test]
    fn the_interval_is_that_of_the_sign_test() {
        let values = |count: u32| (1..=count).rev().map(f64::from).collect();
        assert_eq!(interval(values(5)), None);
        assert_eq!(interval(values(6)), Some((1.0, 6.0)));
        assert_eq!(interval(values(9)), Some((2.0, 8.0)));
        assert_eq!(interval(values(12)), Some((3.0, 10.0)));
    }
}
