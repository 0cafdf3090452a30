//! Many streams on one connection: stalled readers, small messages beside bulk transfers, and
//! urgent streams.
//!
//! `cargo test -p hikyaku-sim --test sim many -- --nocapture` prints the tables. `SECONDS=60` and
//! `RATE=1000` (Mbit/s) give the sizes of the requirements N1 and N3.

use hikyaku_link::LinkSpec;
use hikyaku_proto::{Config, StalledStreams, StreamKind};
use hikyaku_sim::{Many, ManyOutcome, plain_link};
use hikyaku_units::{DataSize, Rate};
use std::time::Duration;

fn number(name: &str, usual: f64) -> f64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn link(rtt: Duration, loss: f64) -> LinkSpec {
    let rate = Rate::from_bits_per_sec((number("RATE", 200.0) * 1e6) as u64);
    plain_link(rate, rtt, loss)
}

fn many(rtt: Duration, loss: f64, seconds: f64) -> Many {
    Many {
        link: link(rtt, loss),
        config: Config::default(),
        read: 1,
        unread: 0,
        kind: StreamKind::Ordered,
        echo_every: None,
        fresh_every: None,
        urgent_every: None,
        time: Duration::from_secs_f64(number("SECONDS", seconds)),
        seed: 1,
    }
}

fn quantile(times: &[Duration], share: f64) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[((times.len() as f64 * share) as usize).min(times.len() - 1)]
}

fn sum(outcome: &ManyOutcome, streams: usize) -> f64 {
    outcome.delivered[..streams].iter().sum::<u64>() as f64
}

// spec: flow-2
#[test]
fn unread_streams_do_not_block_others() {
    let rtt = Duration::from_millis(200);
    for loss in [0.0, 0.01] {
        let stalled = Many { read: 56, unread: 8, ..many(rtt, loss, 20.0) };
        let all = Many { read: 64, unread: 0, ..stalled.clone() };
        let late = Many { fresh_every: Some(Duration::from_millis(100)), ..stalled.clone() };
        let bound = stalled.config.receive_window.bytes();
        let [stalled, all, late] = [stalled, all, late].map(|plan| plan.run().expect("a run"));
        // Of 64 streams, 56 are read. They must have nearly the rate that they have when all are
        // read, where the other eight take an eighth of the rate.
        let share = sum(&stalled, 56) / sum(&all, 56);
        // The first quarter is omitted, because the path's queue is full during start-up. With
        // loss, one message in fifty is lost in one of the directions and retransmitted.
        let answered = &late.fresh[late.fresh.len() / 4..];
        let slowest = quantile(answered, if loss > 0.0 { 0.95 } else { 1.0 });
        let most = stalled.most_unread;
        println!(
            "loss {loss}: {share:.3} of the run in which all are read; new streams are answered after {slowest:?}; \
             at most {} MB unread",
            most / 1_000_000
        );
        assert!(share >= 0.95, "loss {loss}: {share}");
        assert!(slowest <= rtt + Duration::from_millis(20), "loss {loss}: {slowest:?}");
        assert!(stalled.most_unread <= bound, "{} of {bound}", stalled.most_unread);
        let least = *stalled.delivered[..56].iter().min().expect("streams") as f64;
        assert!(least >= sum(&stalled, 56) / 56.0 * 0.5, "one of them has {least}");
    }
}

/// The maximum of the receive window holds however many streams are unread, and the other streams
/// continue.
// spec: flow-2
#[test]
fn the_stream_unread_for_longest_is_stopped_if_configured() {
    let config = Config {
        receive_window: DataSize::from_bytes(40_000_000),
        initial_window: DataSize::from_bytes(20_000_000),
        stalled: StalledStreams::Stop,
        ..Config::default()
    };
    let plan = Many { read: 4, unread: 60, config, ..many(Duration::from_millis(50), 0.0, 20.0) };
    let outcome = plan.run().expect("a run");
    let whole = number("RATE", 200.0) * 1e6 / 8.0 * plan.time.as_secs_f64();
    let share = sum(&outcome, 4) / whole;
    println!("{share:.3} of the link, {} stopped", outcome.stopped);
    assert!(outcome.stopped > 0);
    assert!(outcome.most_unread <= 40_000_000, "{}", outcome.most_unread);
    assert!(share >= 0.5, "{share}");
}

#[test]
fn a_message_beside_bulk_transfers_waits_only_for_the_path() {
    let rtt = Duration::from_millis(40);
    for bulk in [1, 16, 100] {
        let echo_every = Some(Duration::from_millis(7));
        let outcome = Many { read: bulk, echo_every, ..many(rtt, 0.0, 10.0) }.run().expect("a run");
        // The first quarter is omitted, because the path's queue is full during start-up.
        let late = quantile(&outcome.echoes[outcome.echoes.len() / 4..], 0.99);
        let [mean, most] = outcome.queue;
        println!("{bulk} transfers: p99 {late:?}, queue {mean:?} in the mean, at most {most:?}");
        assert!(late <= rtt + Duration::from_millis(10) + mean, "{bulk}: {late:?}");
    }
}

#[test]
fn an_urgent_object_precedes_a_hundred_others() {
    let rtt = Duration::from_millis(40);
    let urgent_every = Some((Duration::from_millis(300), 128 << 10));
    let plan = Many { read: 100, kind: StreamKind::Object, urgent_every, ..many(rtt, 0.0, 10.0) };
    let outcome = plan.run().expect("a run");
    let late = quantile(&outcome.urgent[outcome.urgent.len() / 4..], 0.99);
    // The time that the object's own bytes take on the link.
    let bytes = Rate::from_bits_per_sec((number("RATE", 200.0) * 1e6) as u64)
        .time_for(DataSize::from_bytes(128 << 10));
    println!("urgent: {late:?} one way, its bytes alone {bytes:?}");
    assert!(late <= rtt / 2 + bytes + Duration::from_millis(15), "{late:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let every = Some(Duration::from_millis(100));
    let urgent_every = every.map(|every| (every, 10_000));
    let plan = many(Duration::from_millis(50), 0.01, 2.0);
    let plan =
        Many { read: 5, unread: 2, echo_every: every, fresh_every: every, urgent_every, ..plan };
    let outcome = plan.run().expect("a run");
    assert!(!outcome.echoes.is_empty() && !outcome.fresh.is_empty() && !outcome.urgent.is_empty());
    assert_eq!(outcome, plan.run().expect("a run"));
    assert_ne!(outcome, Many { seed: 2, ..plan }.run().expect("a run"));
}
