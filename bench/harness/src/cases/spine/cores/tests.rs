//! Ratios within a round.

use super::*;

#[test]
fn connections_are_compared_with_as_many_programs_of_the_same_round() {
    let result = |n: u32, who: &str, goodput: [f64; 3], processor: f64| {
        let runs = goodput.map(|value| {
            Row::new().with("goodput", value, "Gbit/s").with("processor", processor, "s/GB")
        });
        CellResult::new(&Cell::new(id(1500, n, who)), runs.to_vec(), "x")
    };
    let mut results = vec![
        result(1, CONNECTIONS, [10.0, 20.0, 10.0], 0.5),
        result(8, CONNECTIONS, [40.0, 50.0, 60.0], 1.0),
        result(8, PROGRAMS, [80.0, 50.0, 60.0], 0.5),
    ];
    compare(&mut results);
    let median = &results[1].median;
    assert_eq!(median.value("of programs"), Some(1.0));
    assert_eq!(median.value("of one"), Some(4.0));
    assert_eq!(median.value("time of one"), Some(2.0));
    let bars = median.measures.iter().filter_map(|one| one.verdict()).collect::<Vec<_>>();
    assert!(bars.contains(&false), "twice the processor time is too much");
    assert_eq!(results[0].median.value("of programs"), None, "it was not measured");
}
