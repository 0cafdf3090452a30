//! Bench `random-paths`: what the transport does in the simulator, on a grid of paths and on random ones.

use crate::bench::{ALONE, Bench, Order};
use crate::cases::spine::filling;
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use anyhow::{Result, anyhow};
use hikyaku_sim::RandomPath;
use std::time::Duration;

pub(crate) const BENCH: Bench = Bench {
    id: "random-paths",
    title: "The grid and 300 random paths in the simulator",
    method: "One ordered stream of max(20 BDP, 1 MB), at most 300,000 packets, in simulated time: \
             deterministic, whatever the machine. The bound is size / (C (1 - p)) x 1.08 (1.25 above \
             10 % loss) + (8 + log2(BDP / 64 packets)) RTT. Random paths have 10 Mbit/s - 100 Gbit/s, \
             1 - 1000 ms, 0 - 30 % loss, a third each jitter, reordering and duplication.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const RANDOM: &str = "random";
const SEEDS: u64 = 300;

fn cells(_: &Ctx) -> Vec<Cell> {
    let grid = filling::RTTS
        .into_iter()
        .flat_map(|rtt| filling::LOSSES.map(|loss| filling::cell(rtt, loss)));
    let random = Cell::new(RANDOM).with("RTT ms", "1 - 1000").with("loss %", "0 - 30");
    grid.chain([random]).map(Cell::once).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    if cell.id() == RANDOM {
        return random(if ctx.is_quick() { SEEDS / 10 } else { SEEDS });
    }
    let rtt: f64 = cell.setting("RTT ms").parse()?;
    let loss: f64 = cell.setting("loss %").parse()?;
    let path = RandomPath::gigabit(Duration::from_secs_f64(rtt / 1e3), loss / 100.0);
    let outcome = path.scenario().run().map_err(|error| anyhow!("{path}: {error}"))?;
    let (took, bound) = (outcome.took.as_secs_f64(), path.bound().as_secs_f64());
    Ok(Row::new().with("took", took, "s").with("bound", bound, "s").held_to(
        "of the bound",
        100.0 * took / bound,
        "%",
        Bar::AtMost(100.0),
    ))
}

/// All random paths; the numbers are of the worst.
fn random(seeds: u64) -> Result<Row> {
    let paths: Vec<_> = (0..seeds).map(RandomPath::new).collect();
    let shares = hikyaku_sim::shares_of_bound(&paths);
    let found: Vec<_> = paths.iter().zip(&shares).collect();
    let worst = found.iter().filter_map(|(_, share)| share.as_ref().ok());
    let worst = 100.0 * worst.fold(0.0, |worst: f64, &share| worst.max(share));
    let wrong = found.iter().filter(|(_, share)| share.is_err()).count();
    let late: Vec<String> = found
        .iter()
        .filter_map(|(path, share)| match share {
            Ok(share) if *share > 1.0 => Some(format!("{path}: {share:.2} of the bound")),
            Ok(_) => None,
            Err(error) => Some(format!("{path}: {error}")),
        })
        .collect();
    let mut row = Row::new()
        .held_to("of the bound", worst, "%", Bar::AtMost(100.0))
        .held_to("late", (late.len() - wrong) as f64, "paths", Bar::AtMost(0.0))
        .held_to("wrong", wrong as f64, "paths", Bar::AtMost(0.0));
    row.notes = late;
    Ok(row)
}
