//! The first transfers: a clean path and a lossy one.

use hikyaku_link::{LinkSpec, LossModel};
use hikyaku_proto::StreamKind;
use hikyaku_sim::{Load, Scenario};
use hikyaku_units::{DataSize, Probability, Rate};
use std::time::Duration;

#[test]
fn first() {
    for loss in [0.0, 0.01, 0.1] {
        let link = LinkSpec {
            rate: Some(Rate::from_bits_per_sec(1_000_000_000)),
            delay: Duration::from_millis(100),
            queue: Some(DataSize::from_bytes(5_000_000)),
            loss: LossModel::Bernoulli(Probability::new(loss)),
            ..LinkSpec::default()
        };
        let t = std::time::Instant::now();
        let scenario =
            Scenario::over(link, Load::For(Duration::from_secs(10), StreamKind::Ordered), 1);
        let o = match scenario.run() {
            Ok(o) => o,
            Err(e) => panic!("{e}"),
        };
        println!("loss {loss}: {} whole, real {:?}", o.goodput(), t.elapsed());
        for s in 0..10 {
            print!(" {}", o.goodput_between(Duration::from_secs(s), Duration::from_secs(s + 1)));
        }
        println!();
        println!("{:?}\n{:?}\nheld {}", o.client.path, o.up, o.most_held);
        println!(
            "lost {} spurious {} resent {} sent {}",
            o.client.lost_packets, o.client.spurious_losses, o.client.resent, o.client.sent.bytes
        );
    }
}
