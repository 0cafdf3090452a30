//! The model against arithmetic: what it promises is exact, or within statistics where it is chance.

use super::*;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Probability, Rate};

const GIGABIT: Rate = Rate::from_bits_per_sec(1_000_000_000);

fn gigabit(queue: Option<u64>) -> LinkSpec {
    LinkSpec { rate: Some(GIGABIT), queue: queue.map(DataSize::from_bytes), ..Default::default() }
}

fn delivery(verdict: Verdict) -> Delivery {
    match verdict {
        Verdict::Deliver(delivery) => delivery,
        Verdict::Dropped(cause) => panic!("dropped: {cause:?}"),
    }
}

#[test]
fn a_perfect_link_does_nothing() {
    let mut link = Link::new(LinkSpec::default(), 1);
    let now = Instant::from_micros(7);
    let delivery = delivery(link.offer(now, 1500));
    assert_eq!((delivery.at, delivery.duplicate_at, delivery.corrupt), (now, None, None));
}

#[test]
fn serialisation_takes_the_frame_at_the_rate() {
    let delay = Duration::from_millis(100);
    let mut link = Link::new(LinkSpec { delay, ..gigabit(None) }, 1);
    // (1462 + 38) bytes at 1 Gbit/s are 12 us.
    for n in 1..=10 {
        let at = delivery(link.offer(Instant::ZERO, 1462)).at;
        assert_eq!(at, Instant::from_micros(12 * n) + delay);
    }
    let later = Instant::from_millis(5);
    assert_eq!(delivery(link.offer(later, 1462)).departs, later + Duration::from_micros(12));
}

#[test]
fn rounding_does_not_add_up() {
    let rate = Rate::from_bits_per_sec(99_999_999_999);
    let mut link = Link::new(LinkSpec { rate: Some(rate), ..Default::default() }, 1);
    let mut last = Instant::ZERO;
    for _ in 0..1_000_000 {
        last = delivery(link.offer(Instant::ZERO, 1462)).departs;
    }
    let exact = rate.time_for(DataSize::from_bytes(1_500_000_000));
    assert!((last - Instant::ZERO).abs_diff(exact) <= Duration::from_nanos(1), "{last:?}");
}

#[test]
fn the_queue_holds_its_limit_and_no_more() {
    let mut link = Link::new(gigabit(Some(10_000)), 1);
    let verdicts: Vec<_> = (0..12).map(|_| link.offer(Instant::ZERO, 1000)).collect();
    assert!(verdicts[..10].iter().all(|v| matches!(v, Verdict::Deliver(_))));
    assert!(verdicts[10..].iter().all(|v| *v == Verdict::Dropped(DropCause::Overflow)));
    assert_eq!(link.queue(Instant::ZERO), DataSize::from_bytes(10_000));
    // One frame of 1038 bytes leaves after 8.304 us, and makes room for one more.
    assert_eq!(link.queue(Instant::from_nanos(8_303)), DataSize::from_bytes(10_000));
    let now = Instant::from_nanos(8_304);
    assert!(matches!(link.offer(now, 1000), Verdict::Deliver(_)));
    assert_eq!(link.offer(now, 1), Verdict::Dropped(DropCause::Overflow));
    assert_eq!(link.counters().overflowed, 3);
    assert_eq!(link.counters().largest_queue, DataSize::from_bytes(10_000));
}

#[test]
fn an_empty_queue_takes_anything() {
    let mut link = Link::new(gigabit(Some(0)), 1);
    assert!(matches!(link.offer(Instant::ZERO, 9000), Verdict::Deliver(_)));
    assert_eq!(link.offer(Instant::ZERO, 40), Verdict::Dropped(DropCause::Overflow));
}

#[test]
fn the_mean_queue_is_exact() {
    let mut link = Link::new(gigabit(None), 1);
    link.offer(Instant::ZERO, 1462);
    link.offer(Instant::ZERO, 1462);
    let before = Counters::default();
    // 2924 bytes for 12 us, 1462 for 12 us, none for 24 us.
    let counters = *link.counters_at(Instant::from_micros(48));
    assert_eq!(counters.queue_integral, (2924 + 1462) * 12_000);
    assert_eq!(counters.mean_queue_since(&before), DataSize::from_bytes(1096));
    // The wait falls from 24 us to nothing in 24 us.
    assert_eq!(counters.mean_wait_since(&before), Duration::from_micros(6));
    assert_eq!(counters.largest_wait, Duration::from_micros(24));
}

fn losses(loss: LossModel, segments: usize) -> Vec<bool> {
    let mut link = Link::new(LinkSpec { loss, ..Default::default() }, 42);
    (0..segments).map(|_| matches!(link.offer(Instant::ZERO, 100), Verdict::Dropped(_))).collect()
}

fn share(hits: &[bool]) -> f64 {
    hits.iter().filter(|hit| **hit).count() as f64 / hits.len() as f64
}

#[test]
fn independent_losses_have_their_rate() {
    let lost = losses(LossModel::Bernoulli(Probability::new(0.01)), 1_000_000);
    // The standard deviation is 0.0001; four of them.
    assert!((share(&lost) - 0.01).abs() < 0.0004, "{}", share(&lost));
    let after: Vec<bool> = lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
    assert!((share(&after) - 0.01).abs() < 0.004, "{}", share(&after));
}

#[test]
fn bursts_have_their_rate_and_length() {
    let model = LossModel::Bursts { loss: Probability::new(0.02), mean_burst: 8.0 };
    let lost = losses(model, 4_000_000);
    assert!((share(&lost) - 0.02).abs() < 0.0012, "{}", share(&lost));
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    let mean = lost.iter().filter(|hit| **hit).count() as f64 / bursts as f64;
    assert!((mean - 8.0).abs() < 0.4, "{mean}");
}

#[test]
fn periodic_loss_hits_every_nth() {
    let lost = losses(LossModel::Periodic(4), 8);
    assert_eq!(lost, [false, false, false, true, false, false, false, true]);
}

fn harmful() -> LinkSpec {
    LinkSpec {
        delay: Duration::from_millis(10),
        loss: LossModel::Bernoulli(Probability::new(0.1)),
        jitter: Duration::from_millis(2),
        reorder: Reorder { probability: Probability::new(0.05), extra: Duration::from_millis(3) },
        duplicate: Probability::new(0.05),
        corrupt: Probability::new(0.05),
        ..gigabit(Some(100_000))
    }
}

fn run(spec: LinkSpec, seed: u64) -> Vec<Verdict> {
    let mut link = Link::new(spec, seed);
    (0..20_000).map(|n| link.offer(Instant::from_micros(11 * n), 1462)).collect()
}

#[test]
fn a_seed_decides_everything() {
    assert_eq!(run(harmful(), 7), run(harmful(), 7));
    assert_ne!(run(harmful(), 7), run(harmful(), 8));
}

#[test]
fn one_harm_does_not_move_another() {
    let lost = |spec| {
        let dropped = |verdict: &Verdict| *verdict == Verdict::Dropped(DropCause::Loss);
        run(spec, 7).iter().map(dropped).collect::<Vec<_>>()
    };
    let calm = LinkSpec { duplicate: Probability::ZERO, jitter: Duration::ZERO, ..harmful() };
    assert_eq!(lost(harmful()), lost(calm));
}

#[test]
fn jitter_keeps_order_and_uses_its_range() {
    let jitter = Duration::from_millis(2);
    let mut link = Link::new(LinkSpec { jitter, ..Default::default() }, 3);
    let mut extras = Vec::new();
    let mut last = Instant::ZERO;
    for n in 0..200_000u64 {
        let now = Instant::from_micros(10 * n);
        let at = delivery(link.offer(now, 1000)).at;
        assert!(at >= last);
        last = at;
        extras.push(at - now);
    }
    let (least, most) = (extras.iter().min().unwrap(), extras.iter().max().unwrap());
    assert!(*most <= jitter && *most > jitter * 9 / 10, "{most:?}");
    assert!(*least < jitter / 10, "{least:?}");
}

#[test]
fn held_back_segments_are_overtaken() {
    let reorder = Reorder { probability: Probability::new(0.1), extra: Duration::from_millis(1) };
    let mut link = Link::new(LinkSpec { reorder, ..Default::default() }, 3);
    for n in 0..1000u64 {
        let now = Instant::from_micros(n);
        let delivery = delivery(link.offer(now, 1000));
        match delivery.order {
            Order::Kept => assert_eq!(delivery.at, now),
            Order::HeldBack => assert_eq!(delivery.at, now + reorder.extra),
        }
    }
    assert!((50..200).contains(&link.counters().reordered));
}

#[test]
fn a_new_rate_moves_the_backlog() {
    let mut link = Link::new(gigabit(None), 1);
    let old: Vec<_> = (0..4).map(|_| delivery(link.offer(Instant::ZERO, 1462))).collect();
    // After 18 us one and a half frames have left; the rest takes ten times as long.
    let slow = LinkSpec { rate: Some(Rate::from_bits_per_sec(100_000_000)), ..gigabit(None) };
    let retiming = link.set_spec(Instant::from_micros(18), slow);
    let new: Vec<_> = old.iter().map(|d| retiming.delivery(d.departs, d.at).as_micros()).collect();
    assert_eq!(new, [12, 78, 198, 318]);
    let next = delivery(link.offer(Instant::from_micros(18), 1462));
    assert_eq!(next.departs, Instant::from_micros(438));
    assert_eq!(link.queue(Instant::from_micros(198)), DataSize::from_bytes(2 * 1462));
}

#[test]
fn a_shorter_delay_does_not_reorder() {
    let delay = Duration::from_millis(100);
    let mut link = Link::new(LinkSpec { delay, ..Default::default() }, 1);
    let first = delivery(link.offer(Instant::ZERO, 100)).at;
    let retiming = link.set_spec(Instant::from_millis(1), LinkSpec::default());
    assert!(retiming.is_identity());
    assert_eq!(delivery(link.offer(Instant::from_millis(1), 100)).at, first);
    let later = Instant::from_millis(101);
    assert_eq!(delivery(link.offer(later, 100)).at, later);
}

#[test]
fn mtu_and_outages_drop() {
    let outage = Outage { from: Instant::from_millis(10), lasts: Duration::from_millis(5) };
    let spec = LinkSpec { mtu: Some(1500), outages: [outage].into(), ..Default::default() };
    let mut link = Link::new(spec, 1);
    assert_eq!(link.offer(Instant::ZERO, 1501), Verdict::Dropped(DropCause::TooBig));
    assert!(matches!(link.offer(Instant::from_micros(9_999), 1500), Verdict::Deliver(_)));
    let cut = link.offer(Instant::from_millis(10), 1500);
    assert_eq!(cut, Verdict::Dropped(DropCause::Outage));
    assert!(matches!(link.offer(Instant::from_millis(15), 1500), Verdict::Deliver(_)));
    assert_eq!((link.counters().too_big, link.counters().cut), (1, 1));
}

#[test]
fn a_long_queue_is_marked() {
    let spec = LinkSpec { ecn: Some(DataSize::from_bytes(3000)), ..gigabit(None) };
    let mut link = Link::new(spec, 1);
    let marks: Vec<_> =
        (0..4).map(|_| delivery(link.offer(Instant::ZERO, 1500)).marked_ce).collect();
    assert_eq!(marks, [false, false, true, true]);
}

#[test]
fn a_schedule_is_read_and_applied() {
    let text = "# a handover\nat 20s rtt 50ms loss 0.1% # calm\nat 10s rate-up 300mbit\n\n\
                at 30s outage 5s";
    let schedule: Schedule = text.parse().unwrap();
    let times: Vec<_> = schedule.steps().iter().map(|step| step.at.as_micros() / 1000).collect();
    assert_eq!(times, [10_000, 20_000, 20_000, 30_000]);
    let mut path = PathSpec::default();
    for step in schedule.steps() {
        step.setting.apply(&mut path, step.at);
    }
    assert_eq!(path.up.rate, Some(Rate::from_bits_per_sec(300_000_000)));
    assert_eq!(path.down.rate, None);
    assert_eq!(path.down.delay, Duration::from_millis(25));
    assert_eq!(path.up.loss, LossModel::Bernoulli(Probability::new(0.001)));
    assert_eq!(path.up.outages[0].from, Instant::from_millis(30_000));
    let error = "at 1s\nat 1s rate".parse::<Schedule>().unwrap_err();
    assert_eq!(
        alloc::string::ToString::to_string(&error),
        "schedule line 1: 'at 1s' is not like 'at 10s rate 300mbit'"
    );
    for bad in ["rate 1mbit", "at x rate 1mbit", "at 1s speed 1mbit", "at 1s rate"] {
        assert!(bad.parse::<Schedule>().is_err(), "{bad}");
    }
}

#[test]
fn bursts_and_loss_combine_in_any_order() {
    let expected = LossModel::Bursts { loss: Probability::new(0.01), mean_burst: 5.0 };
    for lines in [["loss 1%", "burst 5"], ["burst 5", "loss 1%"]] {
        let mut path = PathSpec::default();
        for line in lines {
            line.parse::<Setting>().unwrap().apply(&mut path, Instant::ZERO);
        }
        assert_eq!(path.up.loss, expected);
    }
}

#[test]
fn queues_follow_the_path() {
    let mut path = PathSpec::default();
    for line in ["rate 1gbit", "rtt 200ms", "queue-down 0.5bdp"] {
        line.parse::<Setting>().unwrap().apply(&mut path, Instant::ZERO);
    }
    assert_eq!(path.link(Direction::Up).queue, Some(DataSize::from_bytes(5_000_000)));
    assert_eq!(path.link(Direction::Down).queue, Some(DataSize::from_bytes(12_500_000)));
    path.up.rate = Some(Rate::from_bits_per_sec(100_000_000));
    assert_eq!(path.link(Direction::Up).queue, Some(DataSize::from_bytes(625_000)));
}

#[test]
fn a_policer_drops_before_the_queue() {
    let police = Some(PoliceSpec { rate: GIGABIT, burst: DataSize::from_bytes(3000) });
    let mut link = Link::new(LinkSpec { police, ..gigabit(Some(2000)) }, 1);
    let verdicts: Vec<_> = (0..3).map(|_| link.offer(Instant::ZERO, 1462)).collect();
    assert!(matches!(verdicts[0], Verdict::Deliver(_)));
    // What the queue turns away has taken its tokens.
    assert_eq!(verdicts[1], Verdict::Dropped(DropCause::Overflow));
    assert_eq!(verdicts[2], Verdict::Dropped(DropCause::Policer));
    let counters = link.counters();
    assert_eq!((counters.policed, counters.overflowed, counters.segments), (1, 1, 3));
}

#[test]
fn managed_queues_and_policers_are_settings() {
    let mut path = PathSpec::default();
    for line in ["aqm-up codel:2ms:50ms", "aqm-down codel-ecn", "police-up 500mbit:1MB"] {
        line.parse::<Setting>().unwrap().apply(&mut path, Instant::ZERO);
    }
    let (target, interval) = (Duration::from_millis(2), Duration::from_millis(50));
    assert_eq!(path.up.aqm, Some(CodelSpec { target, interval, signal: Signal::Drop }));
    assert_eq!(path.down.aqm, Some(CodelSpec::usual(Signal::Mark)));
    let rate = Rate::from_bits_per_sec(500_000_000);
    let burst = DataSize::from_bytes(1_000_000);
    assert_eq!(path.up.police, Some(PoliceSpec { rate, burst }));
    assert_eq!(path.down.police, None);
    "aqm none".parse::<Setting>().unwrap().apply(&mut path, Instant::ZERO);
    assert_eq!((path.up.aqm, path.down.aqm), (None, None));
    for line in ["aqm red", "aqm codel:x", "aqm codel:1ms:2ms:3ms", "police 5mbit", "police :1MB"] {
        assert!(line.parse::<Setting>().is_err(), "{line}");
    }
}
