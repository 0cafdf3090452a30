//! An attacker on the path flips bits and replays captured packets.

use hikyaku_link::{LinkSpec, Reorder};
use hikyaku_proto::{Side, Stats, StreamKind};
use hikyaku_sim::{Load, Meddler, Outcome, Scenario, plain_link};
use hikyaku_units::{Instant, Probability, Rate};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// Passes all datagrams, and adds before each some copies that differ from it by one bit.
struct Flipper {
    rng: fastrand::Rng,
    each: usize,
    flips: Rc<Cell<usize>>,
}

impl Meddler for Flipper {
    fn on_arrival(&mut self, _: Instant, _: Side, bytes: Vec<u8>) -> Vec<(Duration, Vec<u8>)> {
        let mut arriving = Vec::with_capacity(self.each + 1);
        for _ in 0..self.each {
            let bit = self.rng.usize(0..bytes.len() * 8);
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            arriving.push((Duration::ZERO, flipped));
        }
        self.flips.set(self.flips.get() + self.each);
        arriving.push((Duration::ZERO, bytes));
        arriving
    }
}

pub(crate) fn link(mbit: u64, rtt_ms: u64) -> LinkSpec {
    let rate = Rate::from_bits_per_sec(mbit * 1_000_000);
    plain_link(rate, Duration::from_millis(rtt_ms), 0.0)
}

/// The whole outcome of a run except the counters of packets that failed authentication and of
/// duplicates.
pub(crate) fn history(outcome: &Outcome) -> String {
    let plain = |stats: &Stats| Stats { undecryptable: 0, duplicates: 0, ..*stats };
    let samples: Vec<_> = outcome.samples.iter().map(|(at, stats)| (at, plain(stats))).collect();
    let ends = [plain(&outcome.client), plain(&outcome.server)];
    format!("{:?} {:?} {ends:?} {samples:?}", outcome.took, outcome.progress)
}

fn with_flips(each: usize, flips: &Rc<Cell<usize>>) -> Outcome {
    let mut path = link(50, 20);
    path.loss = hikyaku_link::LossModel::Bernoulli(Probability::new(0.01));
    let mut scenario = Scenario::over(path, Load::Bytes(2_000_000, StreamKind::Ordered), 3);
    let rng = fastrand::Rng::with_seed(3);
    scenario.meddler = Some(Box::new(Flipper { rng, each, flips: flips.clone() }));
    scenario.run().expect("right bytes and no closed connection")
}

#[test]
fn flipped_bits_change_nothing_but_a_counter() {
    let flips = Rc::new(Cell::new(0));
    let (plain, flipped) = (with_flips(0, &flips), with_flips(750, &flips));
    let counted = flipped.server.undecryptable + flipped.client.undecryptable;
    println!("{} flips, {counted} packets that did not open", flips.get());
    assert!(flips.get() > 1_000_000 && counted > 750_000, "{counted} of {}", flips.get());
    assert_eq!(history(&plain), history(&flipped));
}

/// Passes all datagrams, and delivers each again several times later.
struct Replayer {
    rng: fastrand::Rng,
    times: u32,
    within: Duration,
}

impl Meddler for Replayer {
    fn on_arrival(&mut self, _: Instant, _: Side, bytes: Vec<u8>) -> Vec<(Duration, Vec<u8>)> {
        let mut arriving = vec![(Duration::ZERO, bytes.clone())];
        for _ in 0..self.times {
            let later = self.rng.u64(..self.within.as_nanos() as u64);
            arriving.push((Duration::from_nanos(later), bytes.clone()));
        }
        arriving
    }
}

fn with_replays(mut scenario: Scenario, times: u32, within: Duration) -> Outcome {
    let rng = fastrand::Rng::with_seed(5);
    scenario.meddler = Some(Box::new(Replayer { rng, times, within }));
    scenario.run().expect("right bytes, each once, and no closed connection")
}

#[test]
fn a_capture_that_is_played_again_ten_times_delivers_nothing_twice() {
    let scenario = || {
        let mut path = link(50, 20);
        path.reorder =
            Reorder { probability: Probability::new(0.05), extra: Duration::from_millis(5) };
        Scenario::over(path, Load::Bytes(4_000_000, StreamKind::Object), 3)
    };
    let plain = scenario().run().expect("a transfer without faults");
    let replayed = with_replays(scenario(), 10, Duration::from_millis(500));
    let (client, server) = (&replayed.client, &replayed.server);
    println!(
        "{} duplicates at the receiver, {} at the sender",
        server.duplicates, client.duplicates
    );
    assert_eq!(replayed.delivered, 4_000_000);
    assert!(server.duplicates > 5 * server.received.packets);
    // No packet counts twice, neither at the receiver nor in the sender's accounting.
    assert!(server.received.packets <= client.sent.packets);
    assert!(client.received.packets <= server.sent.packets);
    assert!(
        replayed.took < plain.took * 11 / 10,
        "{:?} in place of {:?}",
        replayed.took,
        plain.took
    );
    assert!(client.sent.packets < plain.client.sent.packets * 11 / 10);
}

#[test]
fn a_capture_that_is_played_again_a_hundred_thousand_packets_late_delivers_nothing_twice() {
    let load = Load::For(Duration::from_secs(4), StreamKind::Object);
    let scenario = Scenario::over(link(1000, 10), load, 3);
    let replayed = with_replays(scenario, 1, Duration::from_millis(2500));
    let (client, server) = (&replayed.client, &replayed.server);
    println!("{} packets, {} of them again", server.received.packets, server.duplicates);
    // A window of 2^17 packet numbers covers 1.6 s here.
    assert!(server.received.packets > 2 * (1 << 17) && server.duplicates > 1 << 17);
    assert!(server.received.packets <= client.sent.packets);
    assert!(replayed.delivered <= client.sent_payload.bytes());
}
