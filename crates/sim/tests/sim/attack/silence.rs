//! Silence: no acknowledgement arrives, or none that reports a received packet.

use super::liar::{Liar, Lie};
use hikyaku_proto::{Policy, StreamKind};
use hikyaku_sim::{Load, Scenario, plain_link};
use hikyaku_units::{Instant, Rate};
use hikyaku_wire::Ack;
use std::time::Duration;

/// What the receiver's acknowledgements report from some time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Silence {
    /// The receiver sends no acknowledgement, but all other frames.
    NoAck,
    /// The receiver repeats its last acknowledgement.
    LastAck,
    /// The receiver claims that nothing arrives.
    AllLost,
}

const RUN_SECONDS: u64 = 10;

fn silent(kind: Silence, from: Instant) -> Lie {
    let mut last: Option<Ack> = None;
    Box::new(move |now, _, mut ack| {
        if now < from {
            last = Some(ack.clone());
            return Some(ack);
        }
        match kind {
            Silence::NoAck => None,
            Silence::LastAck => {
                let first = || Ack { largest: ack.largest, ..Ack::default() };
                Some(Ack { samples: Vec::new(), ..last.get_or_insert_with(first).clone() })
            }
            Silence::AllLost => {
                ack.samples.clear();
                for block in &mut ack.blocks {
                    block.runs = vec![0, (block.end() - block.first) as u32];
                }
                Some(ack)
            }
        }
    })
}

/// The number of datagrams sent in each second.
fn sent(policy: Policy, kind: Silence, from: u64) -> Vec<usize> {
    let begin = Instant::from_millis(1000);
    let second = |at: u64| begin + Duration::from_secs(at);
    let (liar, seen) = Liar::new(silent(kind, second(from)));
    let path = plain_link(Rate::from_bits_per_sec(100_000_000), Duration::from_millis(40), 0.0);
    let load = Load::For(Duration::from_secs(RUN_SECONDS), StreamKind::Object);
    let mut scenario = Scenario::over(path, load, 7);
    scenario.client.policy = policy;
    scenario.meddler = Some(liar);
    scenario.run().expect("silence is no error yet");
    let seen = seen.borrow();
    let since = |at: u64| seen.since(second(at)).0;
    (0..RUN_SECONDS).map(|at| since(at) - since(at + 1)).collect()
}

#[test]
fn who_hears_of_nothing_that_arrives_stops_to_probes() {
    let fixed = Policy::Fixed(Rate::from_bits_per_sec(80_000_000));
    for policy in [Policy::Fair, Policy::Scavenger, fixed] {
        for kind in [Silence::NoAck, Silence::LastAck, Silence::AllLost] {
            for from in [0, 3] {
                let sent = sent(policy, kind, from);
                println!("{policy}, {kind:?} from {from} s: {sent:?} datagrams a second");
                // After a second until the outage is detected, and one for the first probes, at
                // most four probes a second are sent, and the answers to the other end's probes.
                let later = &sent[from as usize + 2..];
                let most = later.iter().max().expect("some seconds are left");
                assert!(*most <= 12, "{policy}, {kind:?} from {from} s: {sent:?}");
                assert!(later.iter().all(|count| *count > 0), "it goes on asking: {sent:?}");
            }
        }
    }
}
