//! A grid of rate, round-trip time, loss, queue and jitter: 1,350 cells, each a transfer with a
//! maximum duration.
//!
//! `cargo test -p hikyaku-sim --test sim cells -- --ignored --nocapture` prints the late cells; `CELL=17`
//! runs one.

use hikyaku_sim::{RandomPath, shares_of_bound};
use hikyaku_units::{DataSize, Rate};
use std::time::Duration;

const RATES_BITS_PER_SECOND: [f64; 5] = [10e6, 50e6, 200e6, 1e9, 4e9];
const ROUND_TRIPS_SECONDS: [f64; 6] = [0.002, 0.010, 0.040, 0.100, 0.250, 0.500];
const LOSSES: [f64; 5] = [0.0, 0.001, 0.01, 0.05, 0.15];
/// In bandwidth-delay products, but at least 32 packets.
const QUEUES: [f64; 3] = [0.25, 1.0, 4.0];
/// In round trips.
const JITTERS: [f64; 3] = [0.0, 0.02, 0.1];
const CELLS: usize = RATES_BITS_PER_SECOND.len()
    * ROUND_TRIPS_SECONDS.len()
    * LOSSES.len()
    * QUEUES.len()
    * JITTERS.len();
/// Every seventh cell has each pair of values: seven has no divisor in common with the numbers of values.
const SHARE_STEP: usize = 7;
/// Packets of the longest transfer.
const TRANSFER_PACKETS_MAX: f64 = 20_000.0;
/// The accepted fraction of late cells, which this test prints. The goal is none.
const LATE_FRACTION_MAX: f64 = 0.035;

fn cell(number: usize) -> RandomPath {
    let mut rest = number;
    let mut choose = |values: &[f64]| {
        let value = values[rest % values.len()];
        rest /= values.len();
        value
    };
    let (rtt, loss, rate) =
        (choose(&ROUND_TRIPS_SECONDS), choose(&LOSSES), choose(&RATES_BITS_PER_SECOND));
    let (queue, jitter) = (choose(&QUEUES), choose(&JITTERS));
    let product = rate / 8.0 * rtt;
    RandomPath {
        seed: number as u64,
        rate: Rate::from_bits_per_sec(rate as u64),
        rtt: Duration::from_secs_f64(rtt),
        loss,
        jitter: Duration::from_secs_f64(rtt * jitter),
        reorder: (0.0, Duration::ZERO),
        duplicate: 0.0,
        queue: DataSize::from_bytes((product * queue).max(32.0 * 1500.0) as u64),
        size: (20.0 * product).clamp(3e5, TRANSFER_PACKETS_MAX * 1428.0) as u64,
    }
}

#[test]
fn cells_are_done_in_time() {
    done_in_time((0..CELLS).step_by(SHARE_STEP).collect());
}

#[test]
#[ignore = "takes minutes: cargo xtask nightly"]
fn all_cells_are_done_in_time() {
    let one = std::env::var("CELL").ok().and_then(|text| text.parse().ok());
    done_in_time(one.map_or_else(|| (0..CELLS).collect(), |one| vec![one]));
}

fn done_in_time(cells: Vec<usize>) {
    let one = cells.len() == 1;
    let paths: Vec<_> = cells.iter().map(|&number| cell(number)).collect();
    let (mut late, mut wrong) = (0, 0);
    for (path, share) in paths.iter().zip(shares_of_bound(&paths)) {
        let queue = path.queue;
        match share {
            Ok(share) if share <= 1.0 && !one => {}
            Ok(share) => {
                late += usize::from(share > 1.0);
                println!("{path}, queue {queue}: {share:.3} of the bound");
            }
            Err(error) => {
                wrong += 1;
                println!("{path}, queue {queue}: {error}");
            }
        }
    }
    println!("{late} of {} late, {wrong} wrong; one again: CELL=...", cells.len());
    assert!(wrong == 0, "wrong bytes, or none");
    assert!(late as f64 <= LATE_FRACTION_MAX * cells.len() as f64 || one, "{late} late");
}
