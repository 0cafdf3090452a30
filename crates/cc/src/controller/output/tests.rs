//! A sender whose window is as large as its pacing needs, on a path that is shorter than the interval of reports.

use super::*;
use crate::pacer::Pacer;
use crate::sample::{AckEvent, Arrival, Limit, Settled, Volume};
use crate::settings::ControllerConfig;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use hikyaku_units::Instant;

const DATAGRAM: u64 = 1452;
const RTT: Duration = Duration::from_micros(20);
/// Time of the thread for one connection.
const TURN: Duration = Duration::from_micros(50);

/// Bytes that a thread sends in 10 ms: those of 12 Gbit/s.
const OF_THREAD: u64 = 15_000_000;
const LONG: Duration = Duration::from_secs(20);

/// The time in which a flow that begins with 10 MB/s comes to its part of what a thread sends, on a path that carries everything,
/// if it does in [`LONG`]. `sharers` connections send by its thread in turn, and its first packets have overflowed a queue of 50 us.
fn time_to_grow(sharers: u32) -> Option<Duration> {
    let sharers = NonZeroU32::new(sharers).unwrap();
    let mut controller = Controller::new(ControllerConfig {
        datagram: DATAGRAM,
        policy: Policy::Fair,
        hint: None,
        target: None,
    });
    controller.set_sharers(sharers);
    let zero = Instant::from_millis(1000);
    controller.on_handshake(RTT, RTT);
    controller.path.on_rtt(zero, RTT);
    controller.known_rtt = RTT.as_secs_f64();
    controller.law.on_overflow(50e-6, 10e6, RTT.as_secs_f64());
    controller.cruise(zero, 10e6, false);
    let mut pacer = Pacer::new(None);
    pacer.set_rtt(RTT);
    pacer.set_sharers(sharers);
    let (mut now, mut sent, mut reported) = (zero, 0, 0);
    let (mut arrivals, mut due, mut before) = (Vec::new(), None, (zero, 0));
    while now < zero + LONG {
        if now >= before.0 + Duration::from_millis(10) {
            if (sent - before.1) * DATAGRAM > OF_THREAD / u64::from(sharers.get()) {
                return Some(now - zero);
            }
            before = (now, sent);
        }
        pacer.set_rate(Some(controller.pacing_rate()));
        while pacer.is_due(now) {
            let allowance = controller.allowance((sent - reported) * DATAGRAM) / DATAGRAM;
            let packets = allowance.min((pacer.batch() / DATAGRAM).max(1));
            if packets == 0 {
                break;
            }
            controller.on_sent(now, sent, packets * DATAGRAM);
            pacer.on_sent(now, packets * DATAGRAM);
            sent += packets;
            arrivals.push(Arrival {
                packet_number: sent - 1,
                sent: now,
                received_micros: (now + RTT / 2).as_micros(),
                delivered: sent * DATAGRAM,
                offered: sent * DATAGRAM,
            });
            due.get_or_insert_with(|| now + RTT + controller.ack_interval());
        }
        if due.is_some_and(|due| due <= now) {
            due = None;
            let new = sent - reported;
            let acked = Volume { packets: new, bytes: new * DATAGRAM };
            reported = sent;
            controller.on_ack(&AckEvent {
                now,
                arrivals: &arrivals,
                rtt: Some(RTT),
                acked,
                lost: Volume::default(),
                settled: Settled::default(),
                marked: 0,
                largest: sent - 1,
                next_packet_number: sent,
                in_flight: 0,
                limit: Limit::Controller,
            });
            arrivals.clear();
        }
        now += TURN * sharers.get();
    }
    None
}

#[test]
fn a_slow_flow_grows_on_a_path_that_is_shorter_than_the_interval_of_reports() {
    for sharers in [1, 4, 8, 16, 32] {
        let took = time_to_grow(sharers);
        assert!(took.is_some_and(|took| took.as_millis() < 500), "{sharers} connections: {took:?}");
    }
}
