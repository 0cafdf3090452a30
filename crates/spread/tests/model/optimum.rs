//! The least time that any schedule needs: by the maximum flow from servers to groups, which is the least cut over
//! all sets of servers. It knows all rates beforehand, and neither round trips nor requests cost anything.

use crate::cases::Case;
use crate::fluid::{STEP, ServerSpec};
use std::time::Duration;

/// Seconds.
pub(crate) fn optimum(case: &Case) -> f64 {
    let only = bytes_only_in(case);
    let mut sums: Vec<f64> = vec![0.0; case.servers.len()];
    let (mut now, mut link) = (Duration::ZERO, 0.0);
    let step = STEP.as_secs_f64();
    loop {
        let rates: Vec<f64> = case.servers.iter().map(|server| server.rate_at(now)).collect();
        let total = rates.iter().sum::<f64>().min(case.link);
        let after: Vec<f64> =
            sums.iter().zip(&rates).map(|(sum, rate)| sum + rate * step).collect();
        if is_enough(&only, &after, link + total * step) {
            // Within the step everything is linear.
            let (mut low, mut high) = (0.0, step);
            for _ in 0..40 {
                let middle = (low + high) / 2.0;
                let at: Vec<f64> =
                    sums.iter().zip(&rates).map(|(sum, rate)| sum + rate * middle).collect();
                if is_enough(&only, &at, link + total * middle) {
                    high = middle
                } else {
                    low = middle
                }
            }
            return now.as_secs_f64() + high;
        }
        (sums, link) = (after, link + total * step);
        now += STEP;
        assert!(now < Duration::from_secs(1_000), "no schedule ends");
    }
}

/// The optimum if no rate changed.
pub(crate) fn optimum_at_start(case: &Case) -> f64 {
    let servers = case.servers.iter().map(ServerSpec::as_at_start).collect();
    optimum(&Case { servers, ..case.clone() })
}

/// For each set of servers, the bytes that only they have.
fn bytes_only_in(case: &Case) -> Vec<f64> {
    let mut only = vec![0.0; 1 << case.servers.len()];
    for (size, replicas) in &case.files {
        let mask = replicas.iter().fold(0usize, |mask, &server| mask | 1 << server);
        only[mask] += *size as f64;
    }
    // Sums over all subsets.
    for server in 0..case.servers.len() {
        for mask in 0..only.len() {
            if mask >> server & 1 == 1 {
                only[mask] += only[mask & !(1 << server)];
            }
        }
    }
    only
}

fn is_enough(only: &[f64], sums: &[f64], link: f64) -> bool {
    let can = |mask: usize| -> f64 {
        sums.iter()
            .enumerate()
            .filter(|(server, _)| mask >> server & 1 == 1)
            .map(|(_, sum)| sum)
            .sum()
    };
    let all = only[only.len() - 1];
    // The whole set first: it decides in most steps.
    link >= all && can(only.len() - 1) >= all && (0..only.len()).all(|mask| can(mask) >= only[mask])
}
