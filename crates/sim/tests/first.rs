//! The first transfers: a clean path and a lossy one.

use hikyaku_link::{LinkSpec, LossModel};
use hikyaku_proto::StreamKind;
use hikyaku_sim::{Load, Scenario};
use hikyaku_units::{DataSize, Probability, Rate};
use std::time::Duration;

#[test]
fn first() {
    let want = |n: &str| std::env::var(n).ok().and_then(|v| v.parse::<f64>().ok());
    for rtt in [20, 200, 500] {
        if want("RTT").is_some_and(|r| r as u64 != rtt) {
            continue;
        }
        for loss in [0.0, 0.01, 0.1] {
            if want("LOSS").is_some_and(|r| r != loss) {
                continue;
            }
            let rate = 1_000_000_000;
            let link = LinkSpec {
                rate: Some(Rate::from_bits_per_sec(rate)),
                delay: Duration::from_millis(rtt / 2),
                queue: Some(DataSize::from_bytes((rate * rtt / 32000).min(5_000_000))),
                loss: LossModel::Bernoulli(Probability::new(loss)),
                ..LinkSpec::default()
            };
            let t = std::time::Instant::now();
            let n = if rtt == 500 { 60 } else { 30 };
            let scenario =
                Scenario::over(link, Load::For(Duration::from_secs(n), StreamKind::Ordered), 1);
            let o = match scenario.run() {
                Ok(o) => o,
                Err(e) => panic!("{e}"),
            };
            if want("TRACE").is_some() {
                for (at, s) in &o.samples {
                    println!(
                        "  {at:?} {:?} w {} d {} q {:?} pa {:.3} inflight {} sent {} lost {} held {} rtt {:?}/{:?} out {} pace {}",
                        s.path.phase,
                        s.path.window / 1000,
                        s.path.delivery_rate,
                        s.path.queue,
                        s.path.ambient_loss.get(),
                        s.in_flight,
                        s.sent.packets,
                        s.lost_packets,
                        s.held,
                        s.path.base_rtt,
                        s.path.srtt,
                        s.outages,
                        s.path.pacing_rate
                    );
                }
            }
            let eff = 928.5e6 * (1.0 - loss);
            let half = o.goodput_between(Duration::from_secs(n / 2), Duration::from_secs(n));
            println!(
                "RTT {rtt} loss {loss}: whole {:.3} half {:.3} meanq {:?} max {:?} over {} + {} real {:?}",
                o.goodput().bits_per_sec() as f64 / eff,
                half.bits_per_sec() as f64 / eff,
                o.up.mean_wait_since(&o.up_at_half),
                o.up.largest_wait,
                o.up_at_half.overflowed,
                o.up.overflowed - o.up_at_half.overflowed,
                t.elapsed()
            );
            for s in 0..12 {
                print!(
                    " {}",
                    o.goodput_between(Duration::from_secs(s), Duration::from_secs(s + 1))
                        .bits_per_sec()
                        / 1000000
                );
            }
            println!();
            println!(
                "   {:?} {:?} {:?} {:?} held {} lost {} spurious {} resent {} sent {}",
                o.client.path.phase,
                o.client.path.delivery_rate,
                o.client.path.queue,
                o.client.path.ambient_loss,
                o.most_held,
                o.client.lost_packets,
                o.client.spurious_losses,
                o.client.resent,
                o.client.sent.bytes
            );
        }
    }
}
