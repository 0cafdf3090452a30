//! The table: what each rule needs, as a multiple of the optimum.
//!
//! `UPDATE=1 cargo test -p hikyaku-spread --test model` rewrites it.

use crate::cases::{Case, ROWS, Row};
use crate::drive;
use crate::optimum::{optimum, optimum_at_start};
use crate::rivals::{self, Rule};
use hikyaku_spread::Settings;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
Finish time as a multiple of the optimum by maximum flow; client at 1 Gbit/s, servers at 150 ms.
The optimum knows all rates beforehand; `at start` compares with the optimum of the rates at the start.
`twice` is what arrived more than once with the plan, in percent of all bytes.

transfer                                              seed  optimum [s]  round robin  file at a time  scarce first   plan  at start  twice
";

struct Figures {
    optimum: f64,
    /// Round robin, a file at a time, scarce first, plan.
    ratios: [Option<f64>; 4],
    at_start: f64,
    twice: f64,
}

fn figures(case: &Case) -> Figures {
    let optimum = optimum(case);
    let scarce = Settings { planned_groups_max: 0, ..Settings::default() };
    let plan = drive::run(case, Settings::default());
    let took = [
        rivals::run(case, Rule::RoundRobin),
        rivals::run(case, Rule::FileAtATime),
        drive::run(case, scarce).took,
        plan.took,
    ];
    let at_start = plan.took.unwrap_or(f64::INFINITY) / optimum_at_start(case);
    Figures {
        optimum,
        ratios: took.map(|took| took.map(|took| took / optimum)),
        at_start,
        twice: plan.twice,
    }
}

fn judge(row: &Row, all: &[Figures]) -> Vec<String> {
    let mut ratios: Vec<f64> = all.iter().map(|figures| figures.at_start).collect();
    ratios.sort_by(f64::total_cmp);
    let (median, worst) = (ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
    let Some(bar) = &row.bar else { return Vec::new() };
    let is_met = median <= bar.median && worst <= bar.worst;
    let text = format!("{}: median {median:.3}, worst {worst:.3}", row.name);
    if is_met { Vec::new() } else { vec![text] }
}

#[test]
fn the_table_matches_the_snapshot_and_the_bars() {
    let mut table = String::from(HEAD);
    let mut missed = Vec::new();
    for row in ROWS {
        let all: Vec<Figures> = (1..=row.seeds)
            .map(|seed| figures(&(row.make)(&mut fastrand::Rng::with_seed(seed))))
            .collect();
        for (seed, figures) in (1..).zip(&all) {
            let text = |ratio: Option<f64>| {
                ratio.map_or_else(|| "never".to_owned(), |ratio| format!("{ratio:.2}"))
            };
            let [robin, file, scarce, plan] = figures.ratios.map(text);
            let (optimum, at_start, twice) =
                (figures.optimum, figures.at_start, figures.twice * 100.0);
            let name = row.name;
            writeln!(
                table,
                "{name:<53} {seed:>4}  {optimum:>11.2}  {robin:>11}  {file:>14}  {scarce:>12}  {plan:>5}  \
                 {at_start:>8.2}  {twice:>4.1}%"
            )
            .unwrap();
        }
        missed.extend(judge(row, &all));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model/table.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &table).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(table == kept, "the table is now\n{table}\nif that is meant: UPDATE=1");
    assert!(missed.is_empty(), "above the bar: {missed:#?}");
}
