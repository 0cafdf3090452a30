//! Ratios within a round.

use super::*;

fn result(who: &str, goodput: &[f64]) -> CellResult {
    let cell = Cell::new(id(1500, "plain", who));
    let runs = goodput.iter().map(|&value| Row::new().with("goodput", value, "Gbit/s"));
    CellResult::new(&cell, runs.collect(), "x")
}

#[test]
fn ours_is_compared_with_the_same_round() {
    let mut results = vec![
        result("raw-aegis128l-inplace", &[10.0, 20.0, 10.0]),
        result("raw-aegis128l-outofplace", &[8.0, 10.0, 20.0]),
        result("hikyaku-aegis128l-ordered", &[9.0, 15.0, 15.0]),
        result("quinn", &[3.0, 5.0, 6.0]),
    ];
    compare(&mut results);
    let median = &results[2].median;
    assert_eq!(median.value("of raw"), Some(0.75));
    assert_eq!(median.value("to quinn"), Some(3.0));
    assert_eq!(median.value("to noq"), None, "it was not measured");
    let verdicts: Vec<_> = median.measures.iter().filter_map(|one| one.verdict()).collect();
    assert_eq!(verdicts, [false, true]);
    assert_eq!(results[3].median.measures.len(), 1);
}

#[test]
fn every_cell_names_somebody() {
    let ciphers: Vec<String> = CIPHERS.into_iter().flat_map(who_with).collect();
    assert_eq!(ciphers.len(), 12);
    for who in ciphers {
        assert_eq!(who.split('-').count(), 3, "{who}");
    }
}
