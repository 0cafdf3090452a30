//! Prints what the sender knew over time: `trace SEED` on one random path, `trace MBIT MS LOSS` on a
//! clean one for ten seconds.

use hikyaku_link::{LinkSpec, LossModel};
use hikyaku_proto::StreamKind;
use hikyaku_sim::{Load, RandomPath, Scenario};
use hikyaku_units::{DataSize, Probability, Rate};
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
            let queue = (mbit * 1e6 / 8.0 * ms / 1e3 / 4.0).min(5e6);
            let link = LinkSpec {
                rate: Some(Rate::from_bits_per_sec((mbit * 1e6) as u64)),
                delay: Duration::from_secs_f64(ms / 2e3),
                queue: Some(DataSize::from_bytes(queue as u64)),
                loss: LossModel::Bernoulli(Probability::new(loss)),
                ..LinkSpec::default()
            };
            (Scenario::over(link, Load::For(bound, StreamKind::Ordered), 1), bound)
        }
        _ => return Err("usage: trace SEED | trace MBIT MS LOSS".into()),
    };
    let outcome = scenario.run()?;
    for (at, stats) in &outcome.samples {
        println!(
            "{:>9.4} {:?} window {} pace {} delivery {} queue {:?} loss {} in flight {} sent {} lost {} spurious {} resent {} rtt {:?}/{:?} mtu {}",
            at.as_secs_f64(),
            stats.path.phase,
            stats.path.window,
            stats.path.pacing_rate,
            stats.path.delivery_rate,
            stats.path.queue,
            stats.path.ambient_loss,
            stats.in_flight,
            stats.sent.packets,
            stats.lost_packets,
            stats.spurious_losses,
            stats.resent,
            stats.path.base_rtt,
            stats.path.srtt,
            stats.datagram,
        );
    }
    println!(
        "took {:?} = {:.3} of the bound; {:?}",
        outcome.took,
        outcome.took.as_secs_f64() / bound.as_secs_f64(),
        outcome.up
    );
    Ok(())
}
