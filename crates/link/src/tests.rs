//! The model against arithmetic: exact where it is deterministic, within statistical bounds where
//! it is random.

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
fn a_default_link_delivers_at_once_and_unchanged() {
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
fn rounding_errors_do_not_accumulate() {
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
    // One frame of 1038 bytes leaves after 8.304 us and makes room for another.
    assert_eq!(link.queue(Instant::from_nanos(8_303)), DataSize::from_bytes(10_000));
    let now = Instant::from_nanos(8_304);
    assert!(matches!(link.offer(now, 1000), Verdict::Deliver(_)));
    assert_eq!(link.offer(now, 1), Verdict::Dropped(DropCause::Overflow));
    assert_eq!(link.counters().overflowed, 3);
    assert_eq!(link.counters().largest_queue, DataSize::from_bytes(10_000));
}

#[test]
fn a_queue_of_packets_counts_them_whatever_their_size() {
    let spec = LinkSpec { queue_packets: Some(3), ..gigabit(None) };
    let mut link = Link::new(spec, 1);
    let taken = [1462, 40, 9000, 40, 1462].map(|bytes| link.offer(Instant::ZERO, bytes));
    let full = Verdict::Dropped(DropCause::Overflow);
    assert_eq!(taken.map(|verdict| verdict == full), [false, false, false, true, true]);
    // The first packet leaves after 12 us and makes room for one.
    let later = Instant::from_micros(12);
    assert_ne!(link.offer(later, 1462), full);
    assert_eq!(link.offer(later, 40), full);
    assert_eq!(link.counters().overflowed, 3);
    // If both limits are given, both apply.
    let mut link = Link::new(LinkSpec { queue_packets: Some(100), ..gigabit(Some(3000)) }, 1);
    let taken = [1462; 3].map(|bytes| link.offer(Instant::ZERO, bytes));
    assert_eq!(taken.map(|verdict| verdict == full), [false, false, true]);
}

#[test]
fn a_setting_seen_from_the_other_end_changes_the_other_way() {
    for (one, other) in [("rate-up 5mbit", "rate-down 5mbit"), ("loss 1%", "loss 1%")] {
        let [one, other] = [one, other].map(|text| text.parse::<Setting>().unwrap());
        assert_eq!(one.mirrored(), other);
        assert_eq!(other.mirrored(), one);
    }
}

#[test]
fn a_reading_of_the_counters_does_not_move_a_packet_that_comes_for_an_earlier_time() {
    let mut link = Link::new(gigabit(None), 1);
    link.counters_at(Instant::from_micros(100));
    let packet = delivery(link.offer(Instant::from_micros(10), 1462));
    assert_eq!(packet.at, Instant::from_micros(22));
    assert_eq!(link.counters_at(Instant::from_micros(200)).delivered, 1);
}

#[test]
fn an_empty_queue_accepts_a_packet_of_any_size() {
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
    // The tolerance is four standard deviations of 0.0001.
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

fn impaired() -> LinkSpec {
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
fn equal_seeds_give_equal_outcomes() {
    assert_eq!(run(impaired(), 7), run(impaired(), 7));
    assert_ne!(run(impaired(), 7), run(impaired(), 8));
}

#[test]
fn impairments_are_independent() {
    let lost = |spec| {
        let dropped = |verdict: &Verdict| *verdict == Verdict::Dropped(DropCause::Loss);
        run(spec, 7).iter().map(dropped).collect::<Vec<_>>()
    };
    let calm = LinkSpec { duplicate: Probability::ZERO, jitter: Duration::ZERO, ..impaired() };
    assert_eq!(lost(impaired()), lost(calm));
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
fn a_new_rate_moves_the_departures_of_queued_packets() {
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
    let bad =
        ["rate 1mbit", "at x rate 1mbit", "at 1s speed 1mbit", "at 1s rate", "at 1 rate 1mbit"];
    for bad in bad {
        assert!(bad.parse::<Schedule>().is_err(), "{bad}");
    }
}

#[test]
fn a_bare_number_is_refused_where_tools_differ() {
    let lines = [
        "rate 100",
        "rtt 200",
        "delay 100",
        "loss 1",
        "loss-up 0.01",
        "dup 1",
        "corrupt 1",
        "jitter 2",
        "reorder 1:20ms",
        "reorder 1%:20",
        "outage 5",
        "outage 10+5s",
        "aqm codel:5",
        "police 5:1MB",
    ];
    for line in lines {
        let error = line.parse::<Setting>().unwrap_err();
        let error = alloc::string::ToString::to_string(&error);
        assert!(error.contains("needs a unit"), "{line}: {error}");
    }
    for line in
        ["loss 0", "rtt 0", "queue 100000", "ecn 5000", "mtu 9000", "burst 4", "loss every:5"]
    {
        assert!(line.parse::<Setting>().is_ok(), "{line}");
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
fn queue_sizes_follow_the_bandwidth_delay_product() {
    let mut path = PathSpec::default();
    for line in ["rate 1gbit", "rtt 200ms", "queue-down 0.5bdp"] {
        line.parse::<Setting>().unwrap().apply(&mut path, Instant::ZERO);
    }
    assert_eq!(path.link(Direction::Up).queue, Some(DataSize::from_bytes(5_000_000)));
    assert_eq!(path.link(Direction::Down).queue, Some(DataSize::from_bytes(12_500_000)));
    "queue-down 500p".parse::<Setting>().unwrap().apply(&mut path, Instant::ZERO);
    let down = path.link(Direction::Down);
    assert_eq!((down.queue, down.queue_packets), (None, Some(500)));
    assert!("queue 5.5p".parse::<Setting>().is_err() && "queue p".parse::<Setting>().is_err());
    path.up.rate = Some(Rate::from_bits_per_sec(100_000_000));
    assert_eq!(path.link(Direction::Up).queue, Some(DataSize::from_bytes(625_000)));
}

#[test]
fn a_policer_drops_before_the_queue() {
    let police = Some(PoliceSpec { rate: GIGABIT, burst: DataSize::from_bytes(3000) });
    let mut link = Link::new(LinkSpec { police, ..gigabit(Some(2000)) }, 1);
    let verdicts: Vec<_> = (0..3).map(|_| link.offer(Instant::ZERO, 1462)).collect();
    assert!(matches!(verdicts[0], Verdict::Deliver(_)));
    // The packet that the queue dropped had already taken its tokens.
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
