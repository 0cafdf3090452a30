//! Random paths: exact bytes within the time that the path allows.
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
    let late = std::sync::Mutex::new(Vec::new());
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
                            (share > 1.0).then(|| format!("{path}: {share:.3} of the bound"))
                        }
                        Err(error) => Some(format!("{path}: {error}")),
                    };
                    if let (Some(text), Ok(mut late)) = (verdict, late.lock()) {
                        late.push(text);
                    }
                }
            });
        }
    });
    let late = late.into_inner().unwrap();
    assert!(late.is_empty(), "{} late or wrong:\n{}", late.len(), late.join("\n"));
}
