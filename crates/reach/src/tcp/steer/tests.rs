//! What the looks say of a path.

use super::*;
use hikyaku_net::Memory;
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn pauses_are_counted_for_each_pipe_once_they_are_longer_than_a_round_trip() {
    let begin = Instant::now();
    let mut idle = Idle::new(begin, TICK * 2);
    let mut moved = 0;
    for (tick, bytes) in [500, 500, 0, 0, 0, 0, 500, 500, 0].into_iter().enumerate() {
        moved += bytes;
        idle.look(begin + TICK * (tick as u32 + 1), moved, 4);
    }
    assert_eq!(idle.lasted, 4 * 2 * TICK);
}

#[test]
fn each_pipe_is_seen_with_its_bytes_in_both_directions() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pair = || {
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    };
    let (first, second) = (pair(), pair());
    let mut seen = Seen::new(first.0.try_clone().unwrap(), Memory::Off);
    seen.add(vec![(1, second.0.try_clone().unwrap())]);
    (&first.1).write_all(&[1; 1000]).unwrap();
    (&first.0).read_exact(&mut [0; 1000]).unwrap();
    (&second.0).write_all(&[1; 500]).unwrap();
    (&second.1).read_exact(&mut [0; 500]).unwrap();
    // The acknowledgement of the bytes that were sent may be under way. Linux counts that of the handshake as a byte.
    let until = Instant::now() + Duration::from_secs(10);
    let bytes = |seen: &mut Seen| -> Vec<u64> {
        seen.look(9).iter().map(|one| one.bytes.bytes()).collect()
    };
    while bytes(&mut seen).iter().sum::<u64>() < 1500 && Instant::now() < until {
        thread::sleep(TICK / 10);
    }
    let counted = bytes(&mut seen);
    let is_near = |at: usize, bytes: u64| (bytes..bytes + 3).contains(&counted[at]);
    assert!(counted.len() == 2 && is_near(0, 1000) && is_near(1, 500), "{counted:?}");
    assert_eq!(seen.look(1).len(), 1);
    // The second one has nothing to send most of the time.
    while seen.unsent().is_zero() && Instant::now() < until {
        (&second.0).write_all(&[1]).unwrap();
        (&second.1).read_exact(&mut [0]).unwrap();
        thread::sleep(TICK / 10);
        seen.look(9);
    }
    assert!(!seen.unsent().is_zero());
    assert!(!seen.round_trip().is_zero());
    first.0.shutdown(std::net::Shutdown::Both).unwrap();
    drop(first);
    while bytes(&mut seen).len() > 1 && Instant::now() < until {
        thread::sleep(TICK / 10);
    }
    assert_eq!(bytes(&mut seen).len(), 1);
}
