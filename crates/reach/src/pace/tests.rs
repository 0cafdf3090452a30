//! Slots, and the limits of connections over pipes.

use super::*;
use crate::carrier::Connection;
use hikyaku_net::Side;
use hikyaku_net::blocking::block_on;
use hikyaku_pipes::{Config, Pipe};
use std::os::unix::net::UnixStream;
use std::thread;

#[test]
fn slots_follow_each_other_and_an_idle_time_gives_a_small_burst() {
    let rate = Rate::from_bits_per_sec(8_000_000);
    let begin = Instant::now();
    let mut slots = Slots::default();
    let starts = |slots: &mut Slots, now: Instant, count: u32| -> Vec<u128> {
        let start = |_| slots.reserve(now, rate, 10_000).saturating_duration_since(now);
        (0..count).map(start).map(|time| time.as_millis()).collect()
    };
    assert_eq!(starts(&mut slots, begin, 4), [0, 10, 20, 30]);
    // A second of idle time allows 50 ms of payload at once.
    let later = begin + Duration::from_secs(1);
    assert_eq!(starts(&mut slots, later, 8), [0, 0, 0, 0, 0, 0, 10, 20]);
}

#[test]
fn a_rate_of_zero_lets_nothing_pass_and_does_not_overflow() {
    let (mut slots, now) = (Slots::default(), Instant::now());
    slots.reserve(now, Rate::ZERO, 1);
    assert!(slots.reserve(now, Rate::ZERO, 1) > now + NEVER / 2);
}

#[test]
fn a_thread_waits_for_the_time_of_what_it_moves_or_until_nothing_is_wanted() {
    let pace = Pace::new(Rate::from_bits_per_sec(8_000_000));
    let begin = Instant::now();
    pace.wait(200_000, || false);
    pace.wait(200_000, || false);
    assert!(begin.elapsed() >= Duration::from_millis(400));
    pace.wait(1_000_000_000_000, || true);
    assert!(begin.elapsed() < Duration::from_secs(3600));
}

/// Two ends of a connection over a socket pair.
fn connections() -> [Connection; 2] {
    let (one, other) = UnixStream::pair().unwrap();
    [(one, Side::Client), (other, Side::Server)].map(|(socket, side)| {
        let pipe = Pipe::new(socket.try_clone().unwrap(), socket);
        hikyaku_pipes::Connection::new(vec![pipe], side, Config::default()).unwrap().into()
    })
}

/// The seconds that `bytes` take on each of these connections at once, from the client to the server.
fn seconds(pairs: &[[Connection; 2]], bytes: usize) -> f64 {
    let begin = Instant::now();
    thread::scope(|scope| {
        for [client, server] in pairs {
            scope.spawn(move || {
                let mut object = block_on(client.open_object()).unwrap();
                block_on(object.write_chunk(vec![7; bytes].into())).unwrap();
                object.finish();
            });
            scope.spawn(move || {
                let mut object = block_on(server.accept_object()).unwrap();
                let mut got = 0;
                while let Some((_, run)) = block_on(object.next()).unwrap() {
                    got += run.len();
                }
                assert_eq!(got, bytes);
            });
        }
    });
    begin.elapsed().as_secs_f64()
}

#[test]
fn connections_that_share_a_limit_keep_it_together_in_both_directions() {
    // 600 kB at 8 Mbit/s take 0.6 s, whichever end has the limit.
    let rate = Rate::from_bits_per_sec(8_000_000);
    for is_at_sender in [true, false] {
        let (pairs, pace) = ([connections(), connections()], Arc::new(Pace::new(rate)));
        let other = Arc::new(Pace::new(Rate::from_bits_per_sec(u64::MAX)));
        for [client, server] in &pairs {
            match is_at_sender {
                true => client.limit(&pace, &other),
                false => server.limit(&other, &pace),
            }
        }
        let took = seconds(&pairs, 300_000);
        assert!(took > 0.45, "{is_at_sender}: {took}");
    }
}

#[test]
fn the_limit_of_one_connection_holds_and_can_be_changed() {
    let pair = connections();
    pair[0].set_payload_rate(Some(Rate::from_bits_per_sec(8_000_000)));
    assert!(seconds(std::slice::from_ref(&pair), 400_000) > 0.3);
    pair[0].set_payload_rate(None);
    seconds(std::slice::from_ref(&pair), 4_000_000);
}

#[test]
fn a_piece_that_waits_ends_with_its_connection() {
    let [client, server] = connections();
    client.set_payload_rate(Some(Rate::ZERO));
    let mut object = block_on(client.open_object()).unwrap();
    let writer = thread::spawn(move || block_on(object.write_chunk(vec![7; 1000].into())).is_err());
    server.close(7, "over");
    assert!(writer.join().unwrap());
}

#[test]
fn what_has_no_limit_is_not_waited_for() {
    let limit = Limit::new(None);
    let begin = Instant::now();
    limit.wait(u64::MAX, || false);
    assert!(limit.is_open());
    let limit = Limit::new(Some(Rate::from_bits_per_sec(8_000_000)));
    assert!(limit.is_open());
    // Whoever reserves a slot and does not wait for it leaves the limit closed to others.
    limit.wait(1_000_000, || true);
    assert!(!limit.is_open());
    limit.wait(1, || begin.elapsed() > Duration::from_secs(30));
    assert!(begin.elapsed() >= Duration::from_millis(900));
}
