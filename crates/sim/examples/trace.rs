//! Prints the sender's state over time: `trace SEED` on one random path, `trace MBIT MS LOSS` for
//! ten seconds on a path without other impairments.

use hikyaku_proto::StreamKind;
use hikyaku_sim::{Load, RandomPath, Scenario, plain_link};
use hikyaku_units::Rate;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<f64> = std::env::args().skip(1).map_while(|arg| arg.parse().ok()).collect();
    let (scenario, bound) = match numbers[..] {
        [seed] => {
            let path = RandomPath::new(seed as u64);
            println!("{path}; bound {:?}", path.bound());
            (path.scenario(), path.bound())
        }
        [mbit, ms, loss] => {
            let bound = Duration::from_secs(10);
            let rate = Rate::from_bits_per_sec((mbit * 1e6) as u64);
            let link = plain_link(rate, Duration::from_secs_f64(ms / 1e3), loss);
            (Scenario::over(link, Load::For(bound, StreamKind::Ordered), 1), bound)
        }
        _ => return Err("usage: trace SEED | trace MBIT MS LOSS".into()),
    };
    let outcome = scenario.run()?;
    print!("{}", outcome.trace());
    println!(
        "took {:?} = {:.3} of the bound; {:?}",
        outcome.took,
        outcome.took.as_secs_f64() / bound.as_secs_f64(),
        outcome.up
    );
    Ok(())
}
