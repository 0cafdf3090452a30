//! Keys: key updates again and again under loss and reordering, and a connection that ends
//! after too many packets that fail authentication.

use hikyaku_link::{LossModel, Reorder};
use hikyaku_proto::{Side, StreamKind};
use hikyaku_sim::{Load, Meddler, Outcome, Scenario, SimError, plain_link};
use hikyaku_units::{Instant, Probability, Rate};
use std::time::Duration;

const TRANSFER_BYTES: u64 = 190_000_000;
const KEY_UPDATES: u64 = 1000;

#[test]
fn a_thousand_key_updates_under_loss_and_reordering() {
    let rate = Rate::from_bits_per_sec(100_000_000);
    let mut path = plain_link(rate, Duration::from_millis(4), 0.0);
    path.loss = LossModel::Bernoulli(Probability::new(0.05));
    path.reorder = Reorder { probability: Probability::new(0.05), extra: Duration::from_millis(2) };
    let mut scenario = Scenario::over(path, Load::Bytes(TRANSFER_BYTES, StreamKind::Ordered), 11);
    scenario.client.key_packets = 128;
    scenario.server.key_packets = 128;
    let outcome = scenario.run().expect("right bytes and no closed connection");
    let (client, server) = (&outcome.client, &outcome.server);
    println!(
        "{} updates, {} and {} packets that did not open, {} sent",
        client.key_updates, client.undecryptable, server.undecryptable, client.sent.packets
    );
    assert!(client.key_updates >= KEY_UPDATES, "{} updates", client.key_updates);
    assert_eq!(outcome.delivered, TRANSFER_BYTES);
    // Packets delayed by more than a key phase cannot be decrypted. Those are the only ones.
    assert!(client.undecryptable + server.undecryptable < client.sent.packets / 1000);
    assert!(client.key_updates.abs_diff(server.key_updates) <= 1);
}

/// Adds a random datagram in the form of a data packet beside every datagram.
struct Noise(fastrand::Rng);

impl Meddler for Noise {
    fn on_arrival(&mut self, _: Instant, _: Side, bytes: Vec<u8>) -> Vec<(Duration, Vec<u8>)> {
        let mut noise = bytes.clone();
        noise.iter_mut().skip(16).for_each(|byte| *byte = self.0.u8(..));
        [noise, bytes].map(|bytes| (Duration::ZERO, bytes)).into()
    }
}

fn beside_noise(forgeries: u64) -> Result<Outcome, SimError> {
    let rate = Rate::from_bits_per_sec(100_000_000);
    let path = plain_link(rate, Duration::from_millis(10), 0.0);
    let mut scenario = Scenario::over(path, Load::Bytes(1_000_000, StreamKind::Ordered), 11);
    scenario.server.key_forgeries = forgeries;
    scenario.meddler = Some(Box::new(Noise(fastrand::Rng::with_seed(1))));
    scenario.run()
}

#[test]
fn more_forgeries_than_a_key_bears_end_the_connection() {
    let outcome = beside_noise(10_000).expect("not so many");
    assert!((500..10_000).contains(&outcome.server.undecryptable));
    let error = beside_noise(500).expect_err("too many");
    assert!(error.what.contains("host 1 closed") && error.what.contains("do not open"), "{error}");
}
