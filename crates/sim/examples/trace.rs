//! Prints what the sender knew over time on one random path: `trace SEED`.

use hikyaku_sim::RandomPath;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = std::env::args().nth(1).unwrap_or_default().parse()?;
    let path = RandomPath::new(seed);
    println!("{path}; bound {:?}", path.bound());
    let outcome = path.scenario().run()?;
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
        outcome.took.as_secs_f64() / path.bound().as_secs_f64(),
        outcome.up
    );
    Ok(())
}
