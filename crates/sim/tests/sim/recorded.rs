//! Exact records of the rate control in forty runs: the sender's window, pacing rate and phase over
//! time, and the goodput of each flow. They reveal an unintended change of the rate control.
//!
//! `UPDATE=1 cargo test -p hikyaku-sim --test sim recorded` rewrites the records. Each run has a digest
//! of all its samples, and one sample a second for a person to compare.

use hikyaku_link::{CodelSpec, LinkSpec, LossModel, PoliceSpec, Signal};
use hikyaku_proto::{PathHint, Policy, Stats, StreamKind};
use hikyaku_sim::{Congestion, Crowd, Load, Member, Scenario, Who, everywhere, plain_link};
use hikyaku_units::{Instant, Probability, Rate};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

const RUNS: usize = 40;

type Samples = Vec<(Duration, Stats)>;

/// The name of a run, and its content.
struct Run {
    name: String,
    act: Act,
}

enum Act {
    Alone(Box<Scenario>),
    Crowd(Box<Crowd>, Duration),
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn mbit(mbit: f64) -> Rate {
    Rate::from_bits_per_sec((mbit * 1e6) as u64)
}

fn alone(name: String, link: LinkSpec, time: f64, seed: u64) -> Run {
    let load = Load::For(seconds(time), StreamKind::Ordered);
    Run { name, act: Act::Alone(Box::new(Scenario::over(link, load, seed))) }
}

/// Nine combinations of round-trip time and loss.
fn grid() -> Vec<Run> {
    let mut runs = Vec::new();
    for (rtt, time) in [(20.0, 4.0), (200.0, 8.0), (500.0, 15.0)] {
        for loss in [0.0, 0.01, 0.1] {
            let link = plain_link(mbit(300.0), seconds(rtt / 1e3), loss);
            runs.push(alone(format!("grid {rtt} ms {loss}"), link, time, 1));
        }
    }
    runs
}

/// Flows of this project's transport among themselves and beside TCP.
fn crowds() -> Vec<Run> {
    let ours = Who::Ours(Policy::Fair);
    let scavenger = Who::Ours(Policy::Scavenger);
    let (cubic, bbr) = (Who::Tcp(Congestion::Cubic), Who::Tcp(Congestion::Bbr));
    let kinds: [(&str, Vec<Who>); 4] = [
        ("four of ours", vec![ours; 4]),
        ("CUBIC and ours", vec![cubic, ours]),
        ("two of BBR and ours", vec![bbr, bbr, ours]),
        ("CUBIC and a scavenger", vec![cubic, scavenger]),
    ];
    let mut runs = Vec::new();
    for (name, who) in kinds {
        for seed in 1..=3 {
            let rate = mbit(100.0);
            let link = LinkSpec {
                rate: Some(rate),
                queue: Some(rate.in_time(seconds(0.05))),
                loss: LossModel::Bernoulli(Probability::new(0.001)),
                ..LinkSpec::default()
            };
            let members = who.iter().zip(0_u8..).map(|(&who, nth)| {
                let begins = seconds(f64::from(nth) * 2.5);
                Member { who, begins, rtt: seconds(0.04 + f64::from(nth) * 0.001) }
            });
            let crowd = Crowd::new(link, seed).with(members);
            runs.push(Run {
                name: format!("{name} {seed}"),
                act: Act::Crowd(Box::new(crowd), seconds(20.0)),
            });
        }
    }
    runs
}

/// A link with `share` of 200 Mbit/s, and a queue of this many milliseconds at the full rate.
fn queue(share: f64, queue_ms: f64) -> LinkSpec {
    LinkSpec {
        rate: Some(mbit(200.0 * share)),
        delay: seconds(0.025),
        queue: Some(mbit(200.0).in_time(seconds(queue_ms / 1e3))),
        ..LinkSpec::default()
    }
}

fn managed(share: f64, signal: Signal) -> LinkSpec {
    LinkSpec { aqm: Some(CodelSpec::usual(signal)), ..queue(share, 100.0) }
}

fn policed(rate: Rate) -> LinkSpec {
    let burst = mbit(200.0).in_time(seconds(0.005));
    LinkSpec { police: Some(PoliceSpec { rate, burst }), ..queue(1.0, 50.0) }
}

/// A queue of each kind, at a link whose rate is halved and doubled again.
fn queues() -> Vec<Run> {
    type Kind = (&'static str, fn(f64) -> LinkSpec);
    let kinds: [Kind; 6] = [
        ("short queue", |share| queue(share, 2.0)),
        ("long queue", |share| queue(share, 100.0)),
        ("CoDel", |share| managed(share, Signal::Drop)),
        ("CoDel with marks", |share| managed(share, Signal::Mark)),
        ("policer", |share| policed(mbit(100.0 * share))),
        ("slow policer", |share| policed(mbit(20.0 * share))),
    ];
    let mut runs = Vec::new();
    for (name, kind) in kinds {
        for seed in 1..=2 {
            let mut run = alone(format!("{name} {seed}"), kind(1.0), 18.0, seed);
            if let Act::Alone(scenario) = &mut run.act {
                // The simulated clock starts at one second.
                let change = |at: f64, share: f64| {
                    (Instant::from_millis(1000) + seconds(at), kind(share), queue(1.0, 50.0))
                };
                scenario.changes = vec![change(6.0, 0.5), change(12.0, 1.0)];
            }
            runs.push(run);
        }
    }
    runs
}

/// Runs with right and wrong knowledge of the path from an earlier connection.
fn remembered() -> Vec<Run> {
    let mut runs = Vec::new();
    for loss in [0.0, 0.01] {
        for (name, hint) in [("right", 285.0), ("too little", 100.0), ("too much", 600.0)] {
            let link = plain_link(mbit(300.0), seconds(0.2), loss);
            let mut run = alone(format!("remembered {name} {loss}"), link, 5.0, 1);
            if let Act::Alone(scenario) = &mut run.act {
                scenario.client.hint = Some(PathHint { rate: mbit(hint), base_rtt: seconds(0.2) });
            }
            runs.push(run);
        }
    }
    let link = plain_link(mbit(1000.0), seconds(0.001), 0.0);
    runs.push(alone("short path".to_owned(), link, 2.0, 1));
    runs
}

fn runs() -> Vec<Run> {
    [grid(), crowds(), queues(), remembered()].into_iter().flatten().collect()
}

/// FNV-1a, which is enough to detect a difference.
fn digest(samples: &Samples) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (at, stats) in samples {
        let line = format!("{at:?} {}", of(stats));
        for byte in line.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

fn of(stats: &Stats) -> String {
    let path = &stats.path;
    format!("{:?} window {} pace {}", path.phase, path.window, path.pacing_rate.bits_per_sec())
}

/// One sample a second, and the digest of all.
fn lines(samples: &Samples) -> String {
    let mut text = format!("  {} samples, {:016x}\n", samples.len(), digest(samples));
    let mut due = Duration::ZERO;
    for (at, stats) in samples {
        if *at >= due {
            due = *at + Duration::from_secs(1);
            writeln!(text, "  {:>8.3} {}", at.as_secs_f64(), of(stats)).unwrap();
        }
    }
    text
}

fn record(run: Run) -> String {
    let mut text = format!("{}\n", run.name);
    match run.act {
        Act::Alone(scenario) => {
            let outcome = scenario.run().expect("a run without faults");
            let up = &outcome.up;
            writeln!(
                text,
                "  {} delivered, {} lost, {} resent; the link overflowed {}, marked {}, policed {}",
                outcome.delivered,
                outcome.client.lost_packets,
                outcome.client.resent,
                up.overflowed,
                up.marked,
                up.policed
            )
            .unwrap();
            text.push_str(&lines(&outcome.samples));
        }
        Act::Crowd(crowd, time) => {
            let shares = crowd.run(time / 2, time).expect("a run without faults");
            let each: Vec<_> = shares.goodput.iter().map(|rate| rate.bits_per_sec()).collect();
            writeln!(
                text,
                "  {each:?} bit/s, Jain {:.4}, queue {:.3} ms, overflow {:.4} %",
                shares.jain(),
                shares.queue.as_secs_f64() * 1e3,
                shares.overflow * 100.0
            )
            .unwrap();
            for samples in shares.samples.iter().filter(|samples| !samples.is_empty()) {
                text.push_str(&lines(samples));
            }
        }
    }
    text
}

#[test]
fn the_rate_control_matches_its_records() {
    let numbers: Vec<usize> = (0..RUNS).collect();
    // A scenario cannot be sent to another thread, so each thread makes its own.
    let records = everywhere(&numbers, |&number| record(runs().swap_remove(number)));
    assert_eq!(runs().len(), RUNS);
    let table = records.concat();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sim/recorded.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &table).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = table.lines().zip(kept.lines()).find(|(now, then)| now != then);
    assert!(
        table == kept,
        "the first difference, now and as kept: {differs:#?}; if that is meant: UPDATE=1"
    );
}
