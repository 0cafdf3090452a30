//! Several flows at one bottleneck: the goodput of each, and the queueing delay.
//!
//! `cargo test --release -p hikyaku-sim --test sim crowd -- --nocapture` prints the tables. `RATE=1000`
//! sets the link rate in Mbit/s (default: a tenth of that, for speed), `SECONDS=60` the measured
//! interval.

use hikyaku_cc::Policy;
use hikyaku_link::{LinkSpec, LossModel};
use hikyaku_sim::{Congestion, Crowd, EFFICIENCY_1500, Member, Shares, Who};
use hikyaku_units::{Probability, Rate};
use std::time::Duration;

const THIS_TRANSPORT: Who = Who::Ours(Policy::Fair);

fn number(name: &str, usual: f64) -> f64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// A link with a queue of this many milliseconds.
fn link(queue: f64, loss: f64) -> LinkSpec {
    link_of(number("RATE", 100.0), queue, loss)
}

fn link_of(mbit: f64, queue: f64, loss: f64) -> LinkSpec {
    let rate = Rate::from_bits_per_sec((mbit * 1e6) as u64);
    LinkSpec {
        rate: Some(rate),
        queue: Some(rate.in_time(seconds(queue / 1e3))),
        loss: LossModel::Bernoulli(Probability::new(loss)),
        ..LinkSpec::default()
    }
}

fn member(who: Who, begins: f64, rtt: f64) -> Member {
    Member { who, begins: seconds(begins), rtt: seconds(rtt / 1e3) }
}

/// Runs the members. The measured interval starts 20 s after the last flow.
fn run(link: LinkSpec, members: Vec<Member>) -> Shares {
    run_seeded(number("SEED", 1.0) as u64, link, members)
}

fn run_seeded(seed: u64, link: LinkSpec, members: Vec<Member>) -> Shares {
    let last = members.iter().map(|member| member.begins).max().unwrap_or_default();
    let from = last + seconds(20.0);
    let crowd = Crowd::new(link, seed).with(members);
    crowd.run(from, from + seconds(number("SECONDS", 20.0))).expect("a run without faults")
}

fn show(name: &str, shares: &Shares, loss: f64) {
    let most = number("RATE", 100.0) * 1e6 * EFFICIENCY_1500 * (1.0 - loss);
    let each: Vec<_> = shares.goodput.iter().map(|rate| rate.bits_per_sec() / 1_000_000).collect();
    println!(
        "{name}: {each:?} Mbit/s, Jain {:.3}, {:.3} of what is possible, queue {:.2} ms, overflow \
         {:.3} %",
        shares.jain(),
        shares.sum().bits_per_sec() as f64 / most,
        shares.queue.as_secs_f64() * 1e3,
        shares.overflow * 100.0,
    );
}

// spec: rate-2
#[test]
fn flows_of_this_transport_share_equally_without_overflow() {
    // Each round-trip time with each loss and each gap, and each number of flows at least twice.
    flows_share_equally(|at| at / 3 % 3 == at % 3);
}

// spec: rate-2
#[test]
#[ignore = "takes a minute: cargo xtask nightly"]
fn flows_of_this_transport_share_equally_in_all_combinations() {
    flows_share_equally(|_| true);
}

/// Round-trip times, losses, gaps and numbers of flows: the combinations whose number is `chosen`.
fn flows_share_equally(chosen: impl Fn(usize) -> bool) {
    let mut all = Vec::new();
    for rtt in [40.0, 200.0] {
        for loss in [0.0, 0.01] {
            for gap in [0.0, 5.0] {
                all.extend([2, 4, 8].map(|count| (rtt, loss, gap, count)));
            }
        }
    }
    for (at, (rtt, loss, gap, count)) in all.into_iter().enumerate() {
        if !chosen(at) {
            continue;
        }
        // Convergence takes longer with long round-trip times, so that the shares are not yet
        // equal after twenty seconds.
        let least = if rtt > 100.0 { 0.8 } else { 0.97 };
        let members = (0..count).map(|at| member(THIS_TRANSPORT, f64::from(at) * gap, rtt));
        let shares = run(link(50.0, loss), members.collect());
        let name = format!("{count} flows, {rtt} ms, loss {} %, {gap} s apart", loss * 100.0);
        show(&name, &shares, loss);
        // No flow attributes the losses caused by all flows together to the path.
        assert!(shares.overflow < 0.005, "{name}: {}", shares.overflow);
        assert!(shares.jain() > least, "{name}");
    }
}

#[test]
fn flows_with_different_round_trip_times_share_fairly() {
    let members = [20.0, 80.0, 200.0].map(|rtt| member(THIS_TRANSPORT, 0.0, rtt)).to_vec();
    let shares = run(link(50.0, 0.0), members);
    show("20, 80, 200 ms", &shares, 0.0);
    assert!(shares.jain() > 0.8);
}

/// Returns two fractions. The first compares the rate of `count` TCP flows beside one flow of this
/// project with their rate beside one more TCP flow. The second is the share of this project's
/// flow, compared with an equal share.
fn kept(congestion: Congestion, count: usize, queue_ms: f64, rtt: f64) -> (f64, f64) {
    let beside = |who: Who| {
        let mut all = vec![member(Who::Tcp(congestion), 0.0, rtt); count];
        all.push(member(who, 5.0, rtt));
        run(link(queue_ms, 0.0), all)
    };
    let name = format!("{count} {congestion:?}, queue {queue_ms} ms, {rtt} ms");
    let (own, ours) = (beside(Who::Tcp(congestion)), beside(THIS_TRANSPORT));
    show(&format!("{name}, one more"), &own, 0.0);
    show(&format!("{name}, ours   "), &ours, 0.0);
    let sum = |shares: &Shares| -> f64 {
        shares.goodput[..count].iter().map(|rate| rate.bytes_per_sec()).sum()
    };
    // The flows that started first keep more for a long time, even among flows of one kind, so the
    // comparison is limited to the equal share.
    let fair = count as f64 / (count + 1) as f64 * own.sum().bytes_per_sec();
    let equal = ours.sum().bytes_per_sec() / (count + 1) as f64;
    let share = ours.goodput[count].bytes_per_sec() / equal;
    let kept = sum(&ours) / sum(&own).min(fair);
    println!("{name}: kept {kept:.3}, {share:.3} of an equal share");
    (kept, share)
}

// spec: rate-4
#[test]
fn tcp_beside_this_transport_keeps_its_share() {
    // Each kind of TCP with each number of flows and with each queue.
    tcp_keeps_its_share([
        (Congestion::Cubic, 1, 20.0),
        (Congestion::Cubic, 4, 80.0),
        (Congestion::Bbr, 1, 80.0),
        (Congestion::Bbr, 4, 20.0),
    ]);
}

// spec: rate-4
#[test]
#[ignore = "takes a minute: cargo xtask nightly"]
fn tcp_beside_this_transport_keeps_its_share_in_the_other_combinations() {
    tcp_keeps_its_share([
        (Congestion::Cubic, 1, 80.0),
        (Congestion::Cubic, 4, 20.0),
        (Congestion::Bbr, 1, 20.0),
        (Congestion::Bbr, 4, 80.0),
    ]);
}

fn tcp_keeps_its_share(combinations: [(Congestion, usize, f64); 4]) {
    for (congestion, count, queue) in combinations {
        // Which flow loses the first packet of a full queue is random, so the median of
        // three similar runs is used.
        let mut runs = [38.0, 40.0, 42.0].map(|rtt| kept(congestion, count, queue, rtt));
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (kept, _) = runs[1];
        assert!(kept >= 0.8, "{count} {congestion:?}, queue {queue} ms: {kept}");
        // The flow must not give way to TCP completely. It takes ten seconds to detect TCP,
        // and longer to reach its share.
        if congestion == Congestion::Cubic {
            assert!(runs.iter().all(|(_, share)| *share >= 0.15), "{runs:?}");
        }
    }
}

// spec: rate-4
#[test]
fn tcp_is_seen_though_its_cuts_fall_into_common_drains() {
    // With these starting times, the window reductions of the four CUBIC flows coincide with the
    // common drains, so that every other drain ends with an empty queue.
    for seed in [6, 11, 25, 39] {
        let nth = seed as f64;
        let rtt = 40.0 + 0.13 * nth;
        let mut all = vec![member(Who::Tcp(Congestion::Cubic), 0.0, rtt); 4];
        all.push(member(THIS_TRANSPORT, 5.0 + 0.37 * nth, rtt));
        let shares = run_seeded(seed, link(80.0, 0.0), all);
        show(&format!("4 Cubic in step, {seed}"), &shares, 0.0);
        let share = shares.goodput[4].bytes_per_sec() / shares.sum().bytes_per_sec();
        assert!(share >= 0.08, "{share} of the link, seed {seed}");
    }
}

// spec: rate-4
#[test]
fn returning_tcp_flows_are_not_displaced() {
    // This project's flow has most of the path when the four others are detected. With two fifths
    // of the path, draining its own packets empties the queue.
    let mut all = vec![member(Who::Tcp(Congestion::Cubic), 0.0, 40.0); 4];
    all.push(member(THIS_TRANSPORT, 0.0, 40.0));
    let crowd = Crowd::new(link_of(1000.0, 80.0, 0.0), 1).with(all);
    let shares = crowd.run(seconds(20.0), seconds(50.0)).expect("a run without faults");
    show("4 Cubic at once", &shares, 0.0);
    let share = shares.goodput[4].bytes_per_sec() / shares.sum().bytes_per_sec();
    // A flow that took the others for gone after each drain would grow until the queue overflows
    // and take more.
    assert!(share < 0.38, "{share} of the link");
}

// spec: rate-4
#[test]
fn one_cubic_flow_in_a_deep_queue_stays_detected() {
    // A drain by this project's flow alone does not empty such a queue. With the first starting
    // time the flow could lose its estimate of the base delay. With the second the queue is full
    // before a second drain has detected TCP.
    for begins in [6.3, 9.1] {
        let all = vec![
            member(Who::Tcp(Congestion::Cubic), 0.0, 40.0),
            member(THIS_TRANSPORT, begins, 40.0),
        ];
        let crowd = Crowd::new(link_of(1000.0, 80.0, 0.0), 1).with(all);
        let shares = crowd.run(seconds(30.0), seconds(90.0)).expect("a run without faults");
        show("1 Cubic, deep", &shares, 0.0);
        let share = shares.goodput[1].bytes_per_sec() / shares.sum().bytes_per_sec();
        // A flow that overlooked CUBIC or took it for gone would have less, or more.
        assert!((0.33..0.53).contains(&share), "{share} of the link");
    }
}

// spec: rate-4
#[test]
fn who_has_half_of_a_deep_queue_beside_bbr_does_not_take_it_for_gone() {
    half_of_a_deep_queue_is_kept([7.5]);
}

// spec: rate-4
#[test]
#[ignore = "takes a minute: cargo xtask nightly"]
fn who_has_half_of_a_deep_queue_beside_bbr_keeps_it_whenever_it_begins() {
    half_of_a_deep_queue_is_kept([5.0, 5.5, 7.5]);
}

/// The median over these starting times.
fn half_of_a_deep_queue_is_kept<const N: usize>(begins: [f64; N]) {
    let mut shares = begins.map(|begins| {
        let all = vec![
            member(Who::Tcp(Congestion::Bbr), 0.0, 40.0),
            member(THIS_TRANSPORT, begins, 40.0),
        ];
        let crowd = Crowd::new(link_of(1000.0, 80.0, 0.0), 1).with(all);
        let shares = crowd.run(seconds(30.0), seconds(90.0)).expect("a run without faults");
        show("1 Bbr, deep", &shares, 0.0);
        shares.goodput[1].bytes_per_sec() / shares.sum().bytes_per_sec()
    });
    shares.sort_by(f64::total_cmp);
    // A flow that gave way whenever it had two fifths, or after a pause of BBR, would have less.
    // Its target is at most a third where the queueing delay exceeds the round-trip time.
    assert!((0.34..0.5).contains(&shares[N / 2]), "{shares:?} of the link");
}

// spec: rate-6
#[test]
fn who_comes_late_to_four_flows_of_bbr_does_not_starve() {
    for seed in [1, 2, 3] {
        let mut all = vec![member(Who::Tcp(Congestion::Bbr), 0.0, 40.0); 4];
        all.push(member(THIS_TRANSPORT, 5.0, 40.0));
        let shares = run_seeded(seed, link(20.0, 0.0), all);
        show(&format!("4 Bbr first, {seed}"), &shares, 0.0);
        // A fifth of the rate that start-up has measured would be almost nothing, if the
        // measurement counted only the capacity that was left.
        let share = shares.goodput[4].bytes_per_sec() / shares.sum().bytes_per_sec();
        assert!(share >= 0.06, "{share} of the link, seed {seed}");
    }
}

// spec: rate-4
#[test]
fn a_scavenger_gives_way_to_tcp() {
    for queue in [0.5, 2.0] {
        let beside = |who: &[Who]| {
            let all = (0u8..).zip(who).map(|(at, &who)| member(who, 5.0 * f64::from(at), 40.0));
            run(link(queue * 40.0, 0.0), all.collect())
        };
        let tcp = Who::Tcp(Congestion::Cubic);
        let (alone, both) = (beside(&[tcp]), beside(&[tcp, Who::Ours(Policy::Scavenger)]));
        let ours = beside(&[Who::Ours(Policy::Scavenger)]);
        show(&format!("cubic alone, queue {queue} BDP"), &alone, 0.0);
        show("cubic and a scavenger", &both, 0.0);
        show("a scavenger alone", &ours, 0.0);
        let kept = both.goodput[0].bytes_per_sec() / alone.goodput[0].bytes_per_sec();
        assert!(kept >= 0.9, "{kept}");
    }
}

#[test]
#[ignore = "for eyes: FLOWS, CUBIC, BBR, RTT, LOSS, GAP, QUEUE (ms), BEGIN, SEED say what is run; ours begin last"]
fn one_crowd() {
    let (rtt, loss, gap) = (number("RTT", 40.0), number("LOSS", 0.0), number("GAP", 0.0));
    let tcp = [("CUBIC", Congestion::Cubic), ("BBR", Congestion::Bbr)];
    let mut members = Vec::new();
    for (name, congestion) in tcp {
        let count = number(name, 0.0) as usize;
        members.extend(std::iter::repeat_n(member(Who::Tcp(congestion), 0.0, rtt), count));
    }
    let first = number("BEGIN", if members.is_empty() { 0.0 } else { 5.0 });
    let count = number("FLOWS", 2.0) as u32;
    members.extend((0..count).map(|at| member(THIS_TRANSPORT, first + f64::from(at) * gap, rtt)));
    show("this", &run(link(number("QUEUE", 50.0), loss / 100.0), members), loss / 100.0);
}
