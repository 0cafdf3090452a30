//! A receiver that lies about what it has received.

use super::liar::{Liar, Lie, Seen};
use hikyaku_proto::StreamKind;
use hikyaku_sim::{Load, Outcome, Scenario, SimError, plain_link};
use hikyaku_units::{Instant, Rate};
use hikyaku_wire::{Ack, Block, Sample};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// The path of a lying receiver.
#[derive(Clone, Copy, Debug)]
struct Place {
    mbit: u64,
    rtt_ms: u64,
}

const PLACES: [Place; 3] = [
    Place { mbit: 10, rtt_ms: 100 },
    Place { mbit: 100, rtt_ms: 40 },
    Place { mbit: 300, rtt_ms: 200 },
];
const RUN_TIME: Duration = Duration::from_secs(12);

impl Place {
    fn rate(self) -> Rate {
        Rate::from_bits_per_sec(self.mbit * 1_000_000)
    }

    fn rtt(self) -> Duration {
        Duration::from_millis(self.rtt_ms)
    }

    fn run_with_lie(self, lie: Lie, load: Load) -> (Result<Outcome, SimError>, Rc<RefCell<Seen>>) {
        let (liar, seen) = Liar::new(lie);
        let mut scenario = Scenario::over(plain_link(self.rate(), self.rtt(), 0.0), load, 7);
        scenario.meddler = Some(liar);
        scenario.limit = Duration::from_secs(120);
        (scenario.run(), seen)
    }
}

/// Acknowledges all packets from `first` to `last`.
fn whole(first: u64, last: u64) -> Vec<Block> {
    let starts = (first..=last).step_by(60_000);
    starts.map(|at| Block { first: at, runs: vec![(last + 1 - at).min(60_000) as u32] }).collect()
}

/// Claims that packets arrived at the rate at which they were sent, and that none was lost.
fn undelayed(seen: &Seen, ack: &mut Ack) {
    for sample in &mut ack.samples {
        if let Some((at, bytes)) = seen.of(sample.packet_number) {
            (sample.micros, sample.bytes) = (at.as_micros(), bytes);
        }
    }
}

/// Claims that all sent packets have arrived, at once.
fn everything(seen: &Seen, ack: &mut Ack) {
    let first = ack.blocks.iter().map(|block| block.first).min().unwrap_or(0);
    (ack.largest, ack.delay_micros) = (seen.largest_sent, 0);
    ack.blocks = whole(first, ack.largest);
    let last = seen.sent.iter().rev().filter(|packet| packet.number.is_some());
    let numbers: Vec<_> = last.take(16).filter_map(|packet| packet.number).collect();
    let sample = |&packet_number: &u64| Sample { packet_number, micros: 0, bytes: 0 };
    ack.samples = numbers.iter().rev().map(sample).collect();
    undelayed(seen, ack);
}

/// Claims that no packet was lost.
fn no_gaps(seen: &Seen, ack: &mut Ack) {
    for block in &mut ack.blocks {
        block.runs = vec![(block.end() - block.first) as u32];
    }
    undelayed(seen, ack);
}

/// Claims the same, but leaves out gaps of a single number, because the sender may skip those on
/// purpose.
fn no_wide_gaps(seen: &Seen, ack: &mut Ack) {
    for block in &mut ack.blocks {
        let mut runs = Vec::new();
        for (index, &run) in block.runs.iter().enumerate() {
            let fills = index % 2 == 1 && run > 1;
            match runs.last_mut() {
                Some(last) if fills => *last += run,
                Some(last) if index % 2 == 0 && is_run_filled(index, &block.runs) => *last += run,
                _ => runs.push(run),
            }
        }
        block.runs = runs;
    }
    undelayed(seen, ack);
}

fn is_run_filled(index: usize, runs: &[u32]) -> bool {
    index > 0 && runs[index - 1] > 1
}

fn lies_from(lie: impl Fn(&Seen, &mut Ack) + 'static, from: Duration) -> Lie {
    let start = Instant::from_millis(1000) + from;
    Box::new(move |now, seen, mut ack| {
        if now >= start {
            lie(seen, &mut ack);
        }
        Some(ack)
    })
}

/// Claims that this fraction of the received packets was lost, for good.
fn claims_loss(share: f64) -> impl Fn(&Seen, &mut Ack) {
    move |_, ack| {
        for block in &mut ack.blocks {
            let arrived: Vec<(u64, u64)> = block.arrived().collect();
            let is_told = |pn: u64| {
                let hash = pn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
                let is_lost = (hash as f64) < share * (1u64 << 53) as f64;
                !is_lost && arrived.iter().any(|&(from, end)| (from..end).contains(&pn))
            };
            let mut runs = Vec::new();
            let mut state = true;
            let mut run = 0;
            for pn in block.first..block.end() {
                if is_told(pn) != state {
                    runs.push(run);
                    (state, run) = (!state, 0);
                }
                run += 1;
            }
            runs.push(run);
            block.runs = runs;
        }
        for sample in &mut ack.samples {
            sample.bytes = (sample.bytes as f64 * (1.0 - share)) as u64;
        }
    }
}

/// Claims that all packets are lost, and in the next acknowledgement that they have arrived.
fn contradictory() -> Lie {
    let mut is_odd = false;
    Box::new(move |_, _, mut ack| {
        is_odd = !is_odd;
        if is_odd {
            for block in &mut ack.blocks {
                block.runs = vec![0, (block.end() - block.first) as u32];
            }
        }
        Some(ack)
    })
}

/// When the lies begin: at the start, or once the sender has measured the path.
const LIES_FROM: [Duration; 2] = [Duration::ZERO, Duration::from_secs(2)];

#[test]
fn who_acknowledges_what_has_not_come_is_caught() {
    type Named = (&'static str, fn(&Seen, &mut Ack), u32);
    // The round trips within which each lie is detected. A more careful receiver is detected later.
    let lies: [Named; 3] =
        [("all", everything, 6), ("no holes", no_gaps, 6), ("no wide holes", no_wide_gaps, 20)];
    for place in PLACES {
        for (name, lie, rounds) in lies {
            for from in LIES_FROM {
                let case = format!("{place:?}, {name}, from {from:?}");
                let load = Load::For(RUN_TIME, StreamKind::Object);
                let (outcome, seen) = place.run_with_lie(lies_from(lie, from), load);
                let error = outcome.expect_err(&case);
                assert!(error.what.contains("that was never sent"), "{case}: {error}");
                let most = seen.borrow().most(place.rate(), 3 * place.rtt());
                let took = error.at - (Instant::from_millis(1000) + from);
                println!("{case}: caught after {took:?}, {most:.2} of the bottleneck");
                assert!(took < place.rtt() * rounds, "{case}: {took:?}");
                assert!(most < 1.2, "{case}: {most:.2} of the bottleneck in three round trips");
            }
        }
    }
}

/// The receiver acknowledges only what has arrived, but claims that it arrived at the rate at which
/// it was sent.
// spec: rate-5
#[test]
fn false_arrival_times_and_counts_do_not_raise_the_rate() {
    let tenfold = |seen: &Seen, ack: &mut Ack| {
        undelayed(seen, ack);
        ack.samples.iter_mut().for_each(|sample| sample.bytes *= 10);
    };
    let no_queue = |seen: &Seen, ack: &mut Ack| {
        undelayed(seen, ack);
        ack.delay_micros = 1_000_000;
    };
    type Named = (&'static str, fn(&Seen, &mut Ack));
    let lies: [Named; 3] =
        [("undelayed", undelayed), ("ten times", tenfold), ("no queue", no_queue)];
    for place in PLACES {
        for (name, lie) in lies {
            for from in LIES_FROM {
                let case = format!("{place:?}, {name}, from {from:?}");
                let load = Load::For(RUN_TIME, StreamKind::Object);
                let (outcome, seen) = place.run_with_lie(lies_from(lie, from), load);
                assert!(outcome.is_ok(), "{case}: {:?}", outcome.err());
                let most = |rounds| seen.borrow().most(place.rate(), rounds * place.rtt());
                let (few, many) = (most(4), most(20));
                println!("{case}: {few:.2} of the bottleneck, {many:.2} in the long run");
                // Up to 45 % loss may be attributed to the path itself.
                assert!(few < 5.0 && many < 3.0, "{case}: {few:.2}, {many:.2}");
            }
        }
    }
}

#[test]
fn false_losses_do_not_cause_a_flood() {
    for place in PLACES {
        for share in [0.1, 0.3, 0.9] {
            for from in LIES_FROM {
                let case = format!("{place:?}, {share} lost from {from:?}");
                let load = Load::For(RUN_TIME, StreamKind::Object);
                let (outcome, seen) = place.run_with_lie(lies_from(claims_loss(share), from), load);
                let seen = seen.borrow();
                let most = seen.most(place.rate(), 16 * place.rtt());
                let delivered = outcome.expect(&case).delivered;
                let times = seen.bytes as f64 / delivered as f64;
                println!("{case}: {most:.2} of the bottleneck, {times:.2} times the data");
                // The rate may be one step of growth and the compensation for the claimed loss
                // above the bottleneck until the queue is full.
                assert!(most < 1.35, "{case}: {most:.2} of the bottleneck");
                // Loss of the path itself, up to what the transport is designed for.
                assert!(share > 0.3 || times < 2.0, "{case}: {times:.2} times the data");
            }
        }
        let (outcome, seen) =
            place.run_with_lie(contradictory(), Load::Bytes(5_000_000, StreamKind::Object));
        let times = seen.borrow().bytes as f64 / outcome.expect("a transfer").delivered as f64;
        println!("{place:?}, contradictory: {times:.2} times the data");
        assert!(times < 2.0, "{place:?}, contradictory: {times:.2} times the data");
    }
}
