//! Trains through a fluid bottleneck find its rate, and starving says nothing.

use super::*;
use crate::sample::Settled;

const RTT: Duration = Duration::from_millis(200);

/// Sends the present train through a bottleneck of `capacity` bytes a second.
fn run_train(startup: &mut Startup, capacity: f64, from_pn: u64, now: Instant) -> Finding {
    let mut pn = from_pn;
    let (mut clock, mut free, mut delivered) = (now, now, 0);
    let mut finding = Finding::Waiting;
    while startup.allowance() > 0 && finding == Finding::Waiting {
        let gap = Duration::from_secs_f64(1500.0 / startup.rate());
        startup.on_sent(clock, pn, 1500);
        delivered += 1500;
        free = free.max(clock) + Duration::from_secs_f64(1500.0 / capacity);
        let arrival = Arrival {
            packet_number: pn,
            sent: clock,
            received_micros: (free + RTT / 2).as_micros(),
            delivered,
            offered: delivered,
        };
        finding = startup.on_ack(&AckEvent {
            now: clock,
            arrivals: &[arrival],
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
            Finding::Proven(rate) => assert!(rate < 125e6 * 1.05),
            Finding::Waiting => panic!("a complete train was not judged"),
        }
    }
    panic!("not found");
}

#[test]
fn a_starved_train_proves_nothing() {
    let mut startup = Startup::new(96_000.0, RTT);
    startup.on_sent(Instant::ZERO, 0, 1500);
    startup.on_starved();
    assert_eq!(startup.allowance(), 0);
    assert_eq!(startup.judge(), Finding::Waiting);
    assert_eq!(startup.allowance(), 96_000);
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
