//! The order of rounds, and what is kept of them.

use super::*;
use std::collections::BTreeSet;

#[test]
fn ids_are_unique_and_fit_for_files() {
    let context = Ctx::for_tests(1, &PathBuf::new());
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
fn old_names_lead_to_benches() {
    for (old, name) in OLD_NAMES {
        assert_eq!(chosen(BENCHES, &[(*old).to_owned()]).unwrap()[0].id, *name, "{old}");
        assert!(BENCHES.iter().all(|bench| bench.id != *old), "{old}");
    }
}

#[test]
fn documents_name_benches_of_today() {
    let root = workspace();
    let pages = xtask::own_files(&root).unwrap().into_iter().filter(|path| path.ends_with(".md"));
    let mut count = 0;
    for page in pages {
        let text = std::fs::read_to_string(root.join(&page)).unwrap();
        for rest in text.split("xtask bench ").skip(1) {
            let command = rest.split(['`', '\n', '(', ',', '.']).next().unwrap_or_default();
            let names = command.split_whitespace().take_while(|word| !word.starts_with('-'));
            let is_name = |name: &&str| {
                *name != "all"
                    && name.chars().all(|c| c.is_ascii_lowercase() || "-0123456789".contains(c))
            };
            for name in names.filter(is_name) {
                assert!(BENCHES.iter().any(|bench| bench.id == name), "{page}: {name}");
                count += 1;
            }
        }
    }
    assert!(count >= 20, "{count}");
}

fn series(have: u32, want: u32) -> Series {
    let cell = Cell::new("c");
    let runs = vec![Row::new(); have as usize];
    let result = (have > 0).then(|| CellResult::new(&cell, runs, "x"));
    Series { cell, want, path: PathBuf::new(), result, may_mend: true, has_failed: false }
}

#[test]
fn what_is_there_is_not_measured_again() {
    let all = [series(0, 2), series(2, 2), series(1, 3)];
    assert_eq!(steps(Order::ByCell, &all), [(0, 1), (0, 2), (2, 2), (2, 3)]);
    assert_eq!(steps(Order::ByRound, &all), [(0, 1), (0, 2), (2, 2), (2, 3)]);
    let fresh = [series(0, 2), series(0, 2), series(0, 1)];
    assert_eq!(steps(Order::ByRound, &fresh), [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2)]);
}

#[test]
fn a_round_that_is_no_figure_is_measured_again() {
    let mut one = series(2, 3);
    let runs = &mut one.result.as_mut().unwrap().runs;
    runs[0].notes.push("INVALID: late".to_owned());
    runs[1].notes.push("slow".to_owned());
    assert_eq!(steps(Order::ByCell, std::slice::from_ref(&one)), [(0, 1), (0, 3)]);
    // Not with what another product did.
    one.may_mend = false;
    assert_eq!(steps(Order::ByCell, &[one]), [(0, 3)]);
}

#[test]
fn each_round_is_measured_and_kept() {
    let bench = Bench {
        id: "rounds",
        title: "",
        method: "",
        cells: |_| vec![Cell::new("one")],
        run: |context, _| Ok(Row::new().with("round", f64::from(context.round()), "")),
        order: Order::ByCell,
        compare: ALONE,
    };
    let out = std::env::temp_dir().join(format!("bench-rounds-{}", std::process::id()));
    let mut context = Ctx::for_tests(3, &out);
    for resumed in [false, true] {
        let cell = Cell::new("one");
        let mut one = Series::start(cell, &bench, &context, resumed, "commit");
        let steps = steps(bench.order, std::slice::from_ref(&one));
        assert_eq!(steps.len(), if resumed { 0 } else { 3 });
        for (_, round) in steps {
            context.set_round(round);
            one.measure(&bench, &context, "commit").unwrap();
        }
        let median = one.result.unwrap().median;
        assert_eq!(median, Row::new().with("round", 2.0, ""));
    }
    std::fs::remove_dir_all(&out).unwrap();
}
