//! Random paths with a wide range of properties, each generated from one seed.

use crate::everywhere::everywhere;
use crate::scenario::{Load, Scenario};
use crate::world::SimError;
use hikyaku_link::{LinkSpec, LossModel, Reorder};
use hikyaku_proto::StreamKind;
use hikyaku_units::{DataSize, Probability, Rate};
use std::fmt;
use std::time::Duration;

/// A path and a transfer over it.
#[derive(Clone, Copy, Debug)]
pub struct RandomPath {
    /// The seed that generated it and with which it runs.
    pub seed: u64,
    /// The bottleneck rate of both directions.
    pub rate: Rate,
    /// The round-trip time without queues.
    pub rtt: Duration,
    /// The loss rate of both directions.
    pub loss: f64,
    /// The varying additional delay.
    pub jitter: Duration,
    /// The fraction of packets delayed out of order, and their additional delay.
    pub reorder: (f64, Duration),
    /// The fraction of duplicated packets.
    pub duplicate: f64,
    /// The size of the drop-tail queue.
    pub queue: DataSize,
    /// Bytes to transfer.
    pub size: u64,
}

/// The fraction of the link rate that is payload at an MTU of 1500: 1428 of 1538 bytes.
pub const EFFICIENCY_1500: f64 = 0.9285;
const PACKET_PAYLOAD_BYTES: f64 = 1428.0;
const PACKETS_MAX: f64 = 300_000.0;

/// A link with only delay and loss, the same in both directions.
pub fn plain_link(rate: Rate, rtt: Duration, loss: f64) -> LinkSpec {
    LinkSpec {
        rate: Some(rate),
        delay: rtt / 2,
        queue: Some(usual_queue(rate, rtt)),
        loss: LossModel::Bernoulli(Probability::new(loss)),
        ..LinkSpec::default()
    }
}

/// The queue of the benches: a quarter of the bandwidth-delay product, at most 5 MB.
fn usual_queue(rate: Rate, rtt: Duration) -> DataSize {
    let product = rate.bytes_per_sec() * rtt.as_secs_f64();
    DataSize::from_bytes((product / 4.0).min(5e6) as u64)
}

/// Runs these paths on all processors. Returns for each the duration as a fraction of its bound, in
/// order.
pub fn shares_of_bound(paths: &[RandomPath]) -> Vec<Result<f64, SimError>> {
    everywhere(paths, |path| {
        let run = path.scenario().run()?;
        Ok(run.took.as_secs_f64() / path.bound().as_secs_f64())
    })
}

impl RandomPath {
    /// The path of `seed`. The rate is 10 Mbit/s - 100 Gbit/s and the round-trip time 1 - 1000 ms,
    /// both uniform on a logarithmic scale. The loss is 0 - 30 % (a third of the paths have none),
    /// and a third each have jitter, reordering and duplication. The transfer is 20 bandwidth-delay
    /// products, at least 1 MB and at most 300,000 packets. The queue is a quarter of the product,
    /// at most 5 MB but at least 32 packets, because no sender can fill a link with a smaller one.
    pub fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x7061_7468);
        let rate = 1e7 * 10f64.powf(4.0 * rng.f64());
        let rtt = 1e-3 * 10f64.powf(3.0 * rng.f64());
        let mut one_in_three = |value: f64| if rng.u8(0..3) == 0 { value } else { 0.0 };
        let clean = one_in_three(1.0) == 1.0;
        let jitter = one_in_three(rtt * 0.05);
        let reorder = one_in_three(0.02);
        let duplicate = one_in_three(0.02);
        let loss = if clean { 0.0 } else { 0.3 * rng.f64().powi(2) };
        let product = rate / 8.0 * rtt;
        Self {
            seed,
            rate: Rate::from_bits_per_sec(rate as u64),
            rtt: Duration::from_secs_f64(rtt),
            loss,
            jitter: Duration::from_secs_f64(jitter),
            reorder: (reorder, Duration::from_secs_f64(rtt / 10.0)),
            duplicate,
            queue: DataSize::from_bytes((product / 4.0).clamp(32.0 * 1500.0, 5e6) as u64),
            size: (20.0 * product).clamp(1e6, PACKETS_MAX * PACKET_PAYLOAD_BYTES) as u64,
        }
    }

    /// A path of 1 Gbit/s with only delay and loss: a point of the grid that the benches measure in
    /// real time.
    pub fn gigabit(rtt: Duration, loss: f64) -> Self {
        let rate = Rate::from_bits_per_sec(1_000_000_000);
        let product = rate.bytes_per_sec() * rtt.as_secs_f64();
        Self {
            seed: 1,
            rate,
            rtt,
            loss,
            jitter: Duration::ZERO,
            reorder: (0.0, Duration::ZERO),
            duplicate: 0.0,
            queue: usual_queue(rate, rtt),
            size: (20.0 * product).clamp(1e6, PACKETS_MAX * PACKET_PAYLOAD_BYTES) as u64,
        }
    }

    /// The maximum duration of the transfer: `size / (C (1 - p)) x 1.08 + (8 + log2(BDP / 64
    /// packets)) RTT`, where C is the payload rate of the link. The factor is 1.25 above 10 % loss.
    pub fn bound(&self) -> Duration {
        let capacity = self.rate.bytes_per_sec() * EFFICIENCY_1500 * (1.0 - self.loss);
        let factor = if self.loss <= 0.1 { 1.08 } else { 1.25 };
        let product = self.rate.bytes_per_sec() * self.rtt.as_secs_f64();
        let rounds = 8.0 + (product / (64.0 * 1500.0)).log2().max(0.0);
        let rtt = (self.rtt + self.jitter * 2).as_secs_f64();
        Duration::from_secs_f64(self.size as f64 / capacity * factor + rounds * rtt)
    }

    /// The transfer as a scenario.
    pub fn scenario(&self) -> Scenario {
        let link = LinkSpec {
            queue: Some(self.queue),
            jitter: self.jitter,
            reorder: Reorder {
                probability: Probability::new(self.reorder.0),
                extra: self.reorder.1,
            },
            duplicate: Probability::new(self.duplicate),
            ..plain_link(self.rate, self.rtt, self.loss)
        };
        let mut scenario =
            Scenario::over(link, Load::Bytes(self.size, StreamKind::Ordered), self.seed);
        scenario.limit = self.bound() * 10 + Duration::from_secs(30);
        // These paths hold up to 12 GB in flight. The windows are not what is tested.
        for config in [&mut scenario.client, &mut scenario.server] {
            config.receive_window = DataSize::from_bytes(1 << 34);
            config.initial_window = DataSize::from_bytes(1 << 33);
        }
        // The first answer may take long on such a path.
        scenario.client.connect_timeout = Duration::from_secs(60);
        scenario
    }
}

impl fmt::Display for RandomPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {:>4}: {:>11} x {:>7.1} ms, loss {:>4.1} %, jitter {:>5.1} ms, reorder {}, dup {}, {}",
            self.seed,
            self.rate.to_string(),
            self.rtt.as_secs_f64() * 1e3,
            self.loss * 100.0,
            self.jitter.as_secs_f64() * 1e3,
            if self.reorder.0 > 0.0 { "yes" } else { "no " },
            if self.duplicate > 0.0 { "yes" } else { "no " },
            DataSize::from_bytes(self.size),
        )
    }
}
