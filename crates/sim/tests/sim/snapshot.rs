//! The duration of each point of the grid, exact to the microsecond. It reveals an unintended
//! change of the transport.
//!
//! `UPDATE=1 cargo test --release -p hikyaku-sim --test sim snapshot` rewrites the table.

use hikyaku_sim::RandomPath;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

#[test]
fn the_durations_of_the_grid_match_the_snapshot() {
    let mut table = String::from("RTT [ms]  loss [%]       took [s]  of the bound  overflowed\n");
    for rtt in [20, 200, 500] {
        for loss in [0.0, 0.001, 0.01, 0.05, 0.1] {
            let path = RandomPath::gigabit(Duration::from_millis(rtt), loss);
            let outcome = path.scenario().run().expect("right bytes");
            let took = outcome.took.as_secs_f64();
            let share = took / path.bound().as_secs_f64();
            let percent = loss * 100.0;
            let overflowed = outcome.up.overflowed;
            writeln!(
                table,
                "{rtt:>8}  {percent:>8.1}  {took:>13.6}  {share:>12.3}  {overflowed:>10}"
            )
            .unwrap();
            assert!(share <= 1.0, "{rtt} ms, {percent} %: {share} of the bound");
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sim/snapshot.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &table).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(table == kept, "the table is now\n{table}\nif that is meant: UPDATE=1");
}
