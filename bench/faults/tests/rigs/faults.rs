//! A share of the runs of `cargo xtask faults`: another one for each seed.

use hikyaku_bench_faults::{Rig, SCENES, Scratch, Summary, plan, sample};
use std::path::Path;
use std::sync::Mutex;

/// Runs of a share, and what they are drawn by.
const SHARE: usize = 210;
const SEED: u64 = 4;

#[test]
fn no_fault_of_the_system_makes_a_copy_lie() {
    let (stage, program) = (Path::new(env!("CARGO_BIN_EXE_faults")), xtask::program().unwrap());
    let scratch = Scratch::make("faults-test").unwrap();
    let rig = Rig { stage, program: &program, scratch: scratch.path() };
    let runs = plan(&rig, &SCENES.iter().collect::<Vec<_>>()).unwrap();
    assert!(runs.len() >= 2000, "{} runs in all", runs.len());
    let runs = sample(runs, SEED, SHARE);
    let told = Mutex::new((Summary::default(), Vec::new()));
    rig.run_all(runs, &|outcome| {
        let mut told = told.lock().unwrap();
        told.0.add(outcome);
        told.1.extend(outcome.wrong.iter().map(|wrong| format!("{}: {wrong}", outcome.name)));
    })
    .unwrap();
    let (summary, wrong) = told.into_inner().unwrap();
    println!("{summary}");
    assert!(summary.struck() > SHARE as u32 * 3 / 4, "faults that nothing meets prove nothing");
    assert!(
        wrong.is_empty(),
        "{}\nreplay one: cargo xtask faults --only 'NAME'\n{summary}",
        wrong.join("\n")
    );
}
