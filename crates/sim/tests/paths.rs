//! Random paths: exact bytes within the time that the path allows.
//!
//! `SEEDS=300 cargo test --release -p hikyaku-sim --test paths -- --nocapture` runs them all, and
//! `SEED=17` one of them.

use hikyaku_sim::RandomPath;
use std::sync::atomic::{AtomicU64, Ordering};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_paths_are_done_in_time() {
    let (from, count) = match number("SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("SEEDS").unwrap_or(40)),
    };
    let next = AtomicU64::new(from);
    let late = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        return;
                    }
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
