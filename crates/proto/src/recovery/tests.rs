//! What is judged lost, and when.

use super::*;
use hikyaku_cc::{ControllerConfig, Policy};
use hikyaku_wire::Block;

/// A sender that knows a path of so many microseconds.
fn recovery(rtt: u64) -> Recovery {
    let config =
        ControllerConfig { policy: Policy::Fair, datagram: 1200, hint: None, target: None };
    let mut recovery = Recovery::new(Controller::new(config), 1);
    let rtt = Duration::from_micros(rtt);
    recovery.controller.on_handshake(rtt, rtt);
    recovery
}

fn send(recovery: &mut Recovery, at: Instant) {
    let pn = recovery.take_packet_number();
    let content = Content::Data {
        stream: StreamId(0),
        offset: pn * 1000,
        len: 1000,
        chunk: 1000,
        generation: 0,
    };
    recovery.on_sent(Sent::new(pn, 1, at, 1044, content), 1044);
}

/// Coverage from packet 0 on: runs of arrived and missing ones in turn.
fn hear(recovery: &mut Recovery, at: Instant, runs: &[u32]) {
    let block = Block { first: 0, runs: runs.to_vec() };
    let largest = block.arrived().map(|(_, end)| end - 1).max().unwrap_or(0);
    let ack = Ack { largest, blocks: alloc::vec![block], ..Ack::default() };
    assert!(!recovery.on_ack(at, &ack, 1000).forged);
}

const fn at(micros: u64) -> Instant {
    Instant::from_micros(1_000_000 + micros)
}

// spec: loss-2
#[test]
fn the_reorder_window_is_a_part_of_the_round_trip_and_doubles() {
    let cases = [(500, 250), (2_000, 500), (5_000, 1_000), (80_000, 10_000), (400_000, 50_000)];
    for (rtt, window) in cases {
        assert_eq!(recovery(rtt).reorder_window(), Duration::from_micros(window), "{rtt} us");
    }
    let mut recovery = recovery(80_000);
    for factor in [2, 4, 8, 8] {
        recovery.on_spurious(1);
        assert_eq!(recovery.reorder_window(), Duration::from_millis(10) * factor);
    }
}

// spec: loss-1, loss-2
#[test]
fn a_missing_packet_is_lost_once_one_sent_a_window_later_has_arrived() {
    let mut recovery = recovery(80_000);
    for sent in [0, 9_000, 10_000] {
        send(&mut recovery, at(sent));
    }
    hear(&mut recovery, at(80_000), &[0, 1, 1]);
    assert_eq!(recovery.totals.lost_packets, 0, "it may have been overtaken");
    hear(&mut recovery, at(80_001), &[0, 1, 2]);
    assert_eq!(recovery.totals.lost_packets, 1);
    // It was not: next time more patience.
    hear(&mut recovery, at(80_002), &[3]);
    assert_eq!((recovery.totals.spurious, recovery.reorder_factor), (1, 2));
}

// spec: loss-1
#[test]
fn what_no_block_covers_is_never_lost() {
    let mut recovery = recovery(80_000);
    (0..10).for_each(|n| send(&mut recovery, at(n)));
    let blocks =
        [Block { first: 0, runs: alloc::vec![2] }, Block { first: 8, runs: alloc::vec![2] }];
    for late in 1..100 {
        let ack = Ack { largest: 9, blocks: blocks.to_vec(), ..Ack::default() };
        recovery.on_ack(at(late * 100_000), &ack, 1000);
        recovery.on_timeout(at(late * 100_000 + 50_000), 1000);
    }
    assert_eq!(recovery.totals.lost_packets, 0);
}

// spec: loss-5
#[test]
fn a_path_that_stays_silent_is_asked_less_and_less() {
    for (rtt, pauses) in [(40_000, alloc::vec![250, 500, 1000]), (600_000, alloc::vec![900, 1000])]
    {
        let mut recovery = recovery(rtt);
        send(&mut recovery, at(0));
        let mut now = at(5_000_000);
        recovery.on_timeout(now, 1000);
        assert!(recovery.outage() != Outage::No);
        recovery.on_asked(now);
        let mut asked = Vec::new();
        for _ in 0..40 {
            let next = recovery.ask_at().unwrap();
            asked.push((next - now).as_millis());
            now = next;
            recovery.on_asked(now);
        }
        asked.dedup();
        assert_eq!(asked, pauses, "a round trip of {rtt} us");
    }
}
