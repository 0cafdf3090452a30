//! A receiver that never reports on some packets, neither as received nor as missing.

use super::liar::{Liar, Lie};
use hikyaku_proto::{Holdings, StreamKind};
use hikyaku_sim::{Load, Scenario, plain_link};
use hikyaku_units::Rate;
use hikyaku_wire::{Ack, Block};
use std::time::Duration;

const RUN_SECONDS: u64 = 16;

/// Omits these packet numbers from all acknowledgements.
fn silent_about(is_left_out: impl Fn(u64) -> bool + 'static) -> Lie {
    Box::new(move |_, _, mut ack: Ack| {
        let blocks = core::mem::take(&mut ack.blocks);
        for block in blocks {
            let mut first = block.first;
            while first < block.end() {
                if is_left_out(first) {
                    first += 1;
                    continue;
                }
                let end =
                    (first..block.end()).find(|pn| is_left_out(*pn)).unwrap_or_else(|| block.end());
                ack.blocks.push(part(&block, first, end));
                first = end;
            }
        }
        // At most eight blocks. The next acknowledgement repeats the others.
        let extra = ack.blocks.len().saturating_sub(8);
        ack.blocks.drain(..extra);
        Some(ack)
    })
}

/// The part of `block` from packet number `first` to `end`.
fn part(block: &Block, first: u64, end: u64) -> Block {
    let arrived: Vec<_> = block.arrived().collect();
    let has = |pn: u64| arrived.iter().any(|&(from, to)| (from..to).contains(&pn));
    let (mut runs, mut state, mut run) = (Vec::new(), true, 0);
    for pn in first..end {
        if has(pn) != state {
            runs.push(run);
            (state, run) = (!state, 0);
        }
        run += 1;
    }
    runs.push(run);
    Block { first, runs }
}

/// The number of the sender's records over time, and of packets sent by then.
fn records(is_left_out: impl Fn(u64) -> bool + 'static) -> Vec<(Holdings, u64)> {
    let (liar, _) = Liar::new(silent_about(is_left_out));
    let path = plain_link(Rate::from_bits_per_sec(50_000_000), Duration::from_millis(20), 0.0);
    let load = Load::For(Duration::from_secs(RUN_SECONDS), StreamKind::Object);
    let mut scenario = Scenario::over(path, load, 7);
    scenario.meddler = Some(liar);
    let outcome = scenario.run().expect("to say nothing is no lie");
    outcome.samples.iter().map(|(_, stats)| (stats.holdings, stats.sent.packets)).collect()
}

// spec: loss-6
#[test]
fn who_never_speaks_of_a_packet_makes_nobody_hold_what_came_after_it() {
    let honest = records(|_| false);
    let most = |all: &[(Holdings, u64)]| all.iter().map(|(holdings, _)| holdings.records).max();
    let looks = |all: &[(Holdings, u64)]| {
        let last = all.last().expect("some samples");
        last.0.looks as f64 / last.1 as f64
    };
    let (held, usual) = (most(&honest).expect("some samples"), looks(&honest));
    println!("honest: {held} records, looked at {usual:.2} times a packet");
    type Named = (&'static str, fn(u64) -> bool);
    let silences: [Named; 3] = [
        ("one", |pn| pn == 1000),
        ("one in ten thousand", |pn| pn % 10_000 == 1000),
        ("some in a row", |pn| (1000..1010).contains(&pn)),
    ];
    for (name, is_left_out) in silences {
        let all = records(is_left_out);
        let (most, times) = (most(&all).expect("some samples"), looks(&all));
        println!("{name}: {most} records, looked at {times:.2} times a packet");
        // The sender sends about 4,200 packets a second, with two in a record. Unreported packets
        // are detected after one second, and the first probe follows half a second later.
        let packets = all.last().expect("some samples").1;
        assert!(packets > 30_000, "{name}: it goes on: {packets}");
        assert!(most < 4_000, "{name}: {most} records, {held} usually");
        assert!(times < usual * 3.0, "{name}: {times:.2} looks a packet, {usual:.2} usually");
    }
}
