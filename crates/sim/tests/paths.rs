//! Random paths: exact bytes always, and within the time that the path allows on most of them.
//!
//! `SEEDS=300 cargo test --release -p hikyaku-sim --test paths -- --nocapture` runs them all, and
//! `SEED=17,40` some of them.

use hikyaku_sim::RandomPath;
use std::sync::atomic::{AtomicUsize, Ordering};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_paths_are_done_in_time() {
    let seeds: Vec<u64> = match std::env::var("SEED") {
        Ok(list) => list.split(',').filter_map(|seed| seed.parse().ok()).collect(),
        Err(_) => (0..number("SEEDS").unwrap_or(40)).collect(),
    };
    let next = AtomicUsize::new(0);
    let faults = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return;
                    };
                    let path = RandomPath::new(seed);
                    let verdict = match path.scenario().run() {
                        Ok(outcome) => {
                            let share = outcome.took.as_secs_f64() / path.bound().as_secs_f64();
                            println!("{path}: {:.3} of the bound", share);
                            let late = share > 1.0;
                            late.then(|| Fault::Late(format!("{path}: {share:.3} of the bound")))
                        }
                        Err(error) => Some(Fault::Wrong(format!("{path}: {error}"))),
                    };
                    if let (Some(fault), Ok(mut faults)) = (verdict, faults.lock()) {
                        faults.push(fault);
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    let count = seeds.len();
    let late = faults.iter().filter(|fault| matches!(fault, Fault::Late(_))).count();
    for fault in &faults {
        println!("{fault:?}");
    }
    println!("{late} of {count} late");
    assert!(late == faults.len(), "wrong bytes, or none");
    assert!(late as f64 <= LATE_SHARE * count as f64 || count == 1, "{late} of {count} late");
}

/// What is wrong with a run.
#[derive(Debug)]
#[allow(dead_code, reason = "the text is for who reads the failure")]
enum Fault {
    Late(String),
    Wrong(String),
}

/// The share of paths that may be late today: of a millisecond or two, or with nearly a third lost.
/// `docs/NEXT.md` counts them; the goal is none.
const LATE_SHARE: f64 = 0.05;
