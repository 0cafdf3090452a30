//! Who is the best.

use super::*;

fn result(who: &str, loss: f64, goodput: f64) -> CellResult {
    let cell = Cell::new(format!("rtt200-loss{loss}.{who}"));
    let cell = cell.with("RTT ms", 200.0).with("loss %", loss).with("who", who);
    CellResult::new(&cell, vec![Row::new().with("goodput", goodput, "Mbit/s")], "x")
}

#[test]
fn ours_is_held_to_the_best_of_its_link() {
    let mut results = vec![
        result(OURS, 0.0, 900.0),
        result("udt4", 0.0, 910.0),
        result("s2n-bbr", 0.0, 500.0),
        result(OURS, 1.0, 890.0),
        result("s2n-bbr", 1.0, 895.0),
    ];
    compare(&mut results);
    let verdict = |index: usize| {
        let measure = results[index].median.measures.last().unwrap();
        (measure.name.clone(), measure.verdict())
    };
    assert_eq!(verdict(0), ("of best peer".to_owned(), Some(true)), "0.97 will do without loss");
    assert_eq!(
        verdict(3),
        ("of best peer".to_owned(), Some(false)),
        "with loss ours must be first"
    );
    assert_eq!(verdict(1), ("goodput".to_owned(), None));
    assert_eq!(results[0].median.notes, ["best peer: udt4"]);
}

#[test]
fn without_peers_nothing_is_compared() {
    let mut results = vec![result(OURS, 0.0, 900.0)];
    compare(&mut results);
    assert_eq!(results[0].median.measures.len(), 1);
}
