//! A share of the states of `cargo xtask crash`.

use hikyaku_bench_faults::{Effort, Rig, SCENES, Scratch, sweep};
use std::path::Path;

#[test]
fn what_was_promised_has_lasted_wherever_the_power_fails() {
    let (stage, program) = (Path::new(env!("CARGO_BIN_EXE_faults")), xtask::program().unwrap());
    let scratch = Scratch::make("crash-test").unwrap();
    let rig = Rig { stage, program: &program, scratch: scratch.path() };
    let effort = Effort { states: 300, again: 6, seed: 7 };
    let mut wrong = Vec::new();
    for scene in SCENES {
        let swept = sweep(&rig, scene, effort).unwrap();
        println!("{swept}");
        assert!(swept.states >= 300 && swept.again >= 6, "{swept}");
        wrong.extend(swept.wrong.iter().map(|words| format!("{}: {words}", scene.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
