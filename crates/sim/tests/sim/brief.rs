//! Two thousand short dialogues over impaired paths: all bytes arrive unchanged and in time.
//!
//! `SEED=17 cargo test -p hikyaku-sim --test sim brief -- --nocapture` runs one, `SEEDS=100000` runs
//! more, and `TRACE=1` prints every packet.

use hikyaku_sim::{Brief, everywhere};

const SEEDS: u64 = 2000;
/// The accepted fraction of late dialogues. This test prints the fraction. A dialogue is late if
/// one burst of losses drops all its first packets or probes, because the interval between them
/// doubles each time.
const LATE_FRACTION_MAX: f64 = 0.0015;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

// spec: flow-1, pn-1
#[test]
fn short_conversations_are_done_in_time() {
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(SEEDS),
    };
    let briefs: Vec<_> = seeds.map(Brief::random).collect();
    let (mut shares, mut late, mut faults) = (Vec::new(), 0, Vec::new());
    for (brief, run) in briefs.iter().zip(everywhere(&briefs, Brief::run)) {
        match run {
            Ok(took) => {
                let share = took.as_secs_f64() / brief.bound().as_secs_f64();
                shares.push(share);
                if share > 1.0 {
                    println!("{brief}{took:?}, {share:.2} of the bound");
                    late += 1;
                }
            }
            Err(error) => faults.push(format!("{brief}{error}")),
        }
    }
    shares.sort_by(f64::total_cmp);
    let at = |part: f64| shares.get((shares.len() as f64 * part) as usize).copied().unwrap_or(0.0);
    println!(
        "{} runs: half took {:.2} of the bound, all but one in a hundred {:.2}, the slowest {:.2}",
        shares.len(),
        at(0.5),
        at(0.99),
        shares.last().copied().unwrap_or(0.0)
    );
    let most = (LATE_FRACTION_MAX * briefs.len() as f64) as usize;
    assert!(late <= most || briefs.len() == 1, "{late} of {} late", briefs.len());
    assert!(
        faults.is_empty(),
        "{} of {} failed\n{}\none again: SEED=... cargo test -p hikyaku-sim --test sim brief",
        faults.len(),
        briefs.len(),
        faults.join("\n")
    );
}
