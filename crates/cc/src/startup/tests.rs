//! Trains through a fluid bottleneck find its rate, and starving says nothing.

use super::*;
use crate::sample::{Arrival, Volume};

const RTT: Duration = Duration::from_millis(200);

/// Sends the present train through a bottleneck of `capacity` bytes a second.
fn run_train(startup: &mut Startup, capacity: f64, from_pn: u64, now: Instant) -> Finding {
    run_lossy_train(startup, (capacity, 1.0), from_pn, now)
}

/// The same where only a share of the packets arrives.
fn run_lossy_train(
    startup: &mut Startup,
    (capacity, share): (f64, f64),
    from_pn: u64,
    now: Instant,
) -> Finding {
    let mut pn = from_pn;
    let (mut clock, mut free, mut delivered, mut offered) = (now, now, 0, 0);
    let mut finding = Finding::Waiting;
    let end = from_pn + startup.allowance().div_ceil(1500);
    // A train may be over before its end.
    let is_sending = |startup: &Startup, pn| startup.train.sent == (pn - from_pn) * 1500;
    while pn < end && finding == Finding::Waiting && is_sending(startup, pn) {
        let gap = Duration::from_secs_f64(1500.0 / startup.rate());
        startup.on_sent(clock, pn, 1500);
        offered += 1500;
        let until = |count: u64| (count as f64 * share) as u64;
        let arrives = until(offered / 1500) > until(offered / 1500 - 1);
        if arrives {
            delivered += 1500;
            free = free.max(clock) + Duration::from_secs_f64(1500.0 / capacity);
        }
        let arrival = Arrival {
            packet_number: pn,
            sent: clock,
            received_micros: (free + RTT / 2).as_micros(),
            delivered,
            offered,
        };
        finding = startup.on_ack(&AckEvent {
            now: clock,
            arrivals: if arrives { core::slice::from_ref(&arrival) } else { &[] },
            rtt: None,
            acked: Volume { packets: 1, bytes: 1500 },
            lost: Volume::default(),
            settled: Settled::default(),
            marked: 0,
            largest: pn,
            next_packet_number: pn + 1,
            in_flight: 0,
            limit: Limit::Controller,
        });
        clock += gap;
        pn += 1;
    }
    finding
}

// spec: rate-1
#[test]
fn five_trains_find_a_gigabit_at_200_ms() {
    let mut startup = Startup::new((FIRST_PACKETS * 1500) as f64, RTT);
    for round in 0..5 {
        let now = Instant::from_millis(1000 * (round + 1));
        match run_train(&mut startup, 125e6, round * 100_000, now) {
            Finding::Capacity(rate) => {
                assert!((rate / 125e6 - 1.0).abs() < 0.02, "{rate}");
                assert!(round <= 3);
                return;
            }
            Finding::Proven(rate) => {
                assert!(rate < 125e6 * 1.05);
                let train = startup.rate() / rate;
                assert!((3.9..=4.0001).contains(&train), "{train} times what was proven");
            }
            Finding::Waiting => panic!("a complete train was not judged"),
        }
    }
    panic!("not found");
}

#[test]
fn a_starved_train_proves_nothing() {
    let mut startup = Startup::new(96_000.0, RTT);
    startup.on_sent(Instant::ZERO, 0, 30_000);
    startup.on_starved();
    assert_eq!(startup.allowance(), 0);
    assert_eq!(startup.judge(), Finding::Waiting);
    assert_eq!(startup.allowance(), 96_000);
}

#[test]
fn an_applications_first_words_are_no_train() {
    let mut startup = Startup::new(96_000.0, RTT);
    for pn in 0..16 {
        assert_eq!(startup.allowance(), 96_000);
        startup.on_sent(Instant::ZERO, pn, 1500);
        startup.on_starved();
    }
    // But so many of them are, or nothing would bound what is under way.
    startup.on_sent(Instant::ZERO, 16, 1500);
    startup.on_starved();
    assert_eq!(startup.allowance(), 0);
}

#[test]
fn a_slow_sender_ends_start_up() {
    let mut startup = Startup::new(1e9, RTT);
    let event = |now| AckEvent {
        now,
        arrivals: &[],
        rtt: None,
        acked: Volume::default(),
        lost: Volume::default(),
        settled: Settled::default(),
        marked: 0,
        largest: 0,
        next_packet_number: 1,
        in_flight: 0,
        limit: Limit::Controller,
    };
    startup.on_sent(Instant::ZERO, 0, 1_000_000);
    assert_eq!(startup.on_ack(&event(Instant::from_millis(200))), Finding::Waiting);
    match startup.on_ack(&event(Instant::from_millis(250))) {
        Finding::Capacity(rate) => assert!((rate - 4e6).abs() < 1.0, "{rate}"),
        other => panic!("{other:?}"),
    }
}

// spec: rate-1
#[test]
fn a_first_train_that_met_a_crowd_proves_no_more_than_what_arrives() {
    let mut startup = Startup::new((FIRST_PACKETS * 1500) as f64, RTT);
    let crowded = (125e6, 0.1);
    let first = startup.rate();
    let at = |round: u64| Instant::from_millis(1000 * (round + 1));
    assert_eq!(run_lossy_train(&mut startup, crowded, 0, at(0)), Finding::Waiting);
    let quarter = startup.rate();
    assert!((quarter / first - 0.25).abs() < 0.001, "{quarter} after {first}");
    // Slower, the queue does not overflow as much. That may pass, so it is tried once more.
    let found = run_lossy_train(&mut startup, (125e6, 0.5), 100, at(1));
    assert_eq!(found, Finding::Waiting);
    assert_eq!(startup.rate(), quarter);
    let found = run_lossy_train(&mut startup, (125e6, 0.5), 200, at(2));
    let Finding::Capacity(rate) = found else { panic!("{found:?}") };
    assert!((rate / quarter - 0.5).abs() < 0.05, "{rate} of {quarter}");
    assert!(startup.path_loss().is_none());
}

#[test]
fn trains_go_on_after_a_crowd_that_was_there_for_a_moment() {
    for lost in [1, 2] {
        let mut startup = Startup::new((FIRST_PACKETS * 1500) as f64, RTT);
        let at = |round: u64| Instant::from_millis(1000 * (round + 1));
        for round in 0..lost {
            let share = if round == 0 { 0.1 } else { 0.5 };
            let found = run_lossy_train(&mut startup, (125e6, share), 100 * round, at(round));
            assert_eq!(found, Finding::Waiting);
        }
        let quarter = startup.rate();
        let found = run_lossy_train(&mut startup, (125e6, 1.0), 100 * lost, at(lost));
        assert_eq!(found, Finding::Proven(quarter));
        assert!(startup.rate() > 3.9 * quarter, "{} after {quarter}", startup.rate());
    }
}

#[test]
fn a_path_that_loses_half_at_any_rate_is_gone_on_with() {
    let mut startup = Startup::new((FIRST_PACKETS * 1500) as f64, RTT);
    let at = |round: u64| Instant::from_millis(1000 * (round + 1));
    let first = startup.rate();
    run_lossy_train(&mut startup, (125e6, 0.4), 0, at(0));
    let found = run_lossy_train(&mut startup, (125e6, 0.4), 100, at(1));
    assert!(matches!(found, Finding::Proven(_)), "{found:?}");
    assert!(startup.rate() >= first * 0.99);
    assert!(startup.path_loss().is_some());
}

#[test]
fn what_a_first_train_lost_to_others_does_not_make_its_receiver_a_liar() {
    let mut startup = Startup::new((FIRST_PACKETS * 1500) as f64, RTT);
    let at = |round: u64| Instant::from_millis(1000 * (round + 1));
    let first = startup.rate();
    // A third is lost, and what arrives is held up by a queue, but not clearly.
    let held = (0.46 * first, 0.65);
    let found = run_lossy_train(&mut startup, held, 0, at(0));
    assert!(matches!(found, Finding::Proven(_)), "{found:?}");
    // By the end of the next train, which meets nothing, little more than the first one has settled.
    startup.settled = Settled { arrived: 84, lost: 22, below: 0 };
    let second = startup.rate();
    let found = run_lossy_train(&mut startup, (125e6, 1.0), 100, at(1));
    assert_eq!(found, Finding::Proven(second));
}

#[test]
fn a_receiver_that_counts_what_it_never_acknowledged_ends_start_up() {
    let mut startup = Startup::new((FIRST_PACKETS * 1500) as f64, RTT);
    let at = |round: u64| Instant::from_millis(1000 * (round + 1));
    run_train(&mut startup, 125e6, 0, at(0));
    startup.settled = Settled { arrived: 48, lost: 16, below: 0 };
    let found = run_train(&mut startup, 125e6, 100, at(1));
    assert!(matches!(found, Finding::Capacity(_)), "{found:?}");
}
