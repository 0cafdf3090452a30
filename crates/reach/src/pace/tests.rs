//! The limits of connections over pipes.

use super::*;
use crate::carrier::Connection;
use hikyaku_net::Side;
use hikyaku_net::blocking::block_on;
use hikyaku_pipes::{Config, Pipe};
use std::os::unix::net::UnixStream;
use std::thread;

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
