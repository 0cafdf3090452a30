//! The window beside others.

use super::*;

const PACKET: f64 = 1448.0;

/// The window after so many seconds in rounds of 40 ms.
fn grown(compete: &mut Compete, from: f64, seconds: f64) -> f64 {
    let rounds = (seconds / 0.04) as u64;
    for round in 0..rounds {
        let now = Instant::from_nanos(((from + round as f64 * 0.04) * 1e9) as u64);
        compete.on_round(now, 0.04, PACKET);
    }
    compete.window() / PACKET
}

// spec: rate-4
#[test]
fn it_is_the_window_of_rfc_9438() {
    let mut compete = Compete::new(1000.0 * PACKET);
    compete.on_overflow(Instant::from_millis(1000));
    assert!((compete.window() / PACKET - 700.0).abs() < 1.0);
    // K = cbrt(1000 * 0.3 / 0.4) = 9.09 s: then it has what it had, and goes on from there.
    let again = grown(&mut compete, 1.0, 9.1);
    assert!((995.0..1005.0).contains(&again), "{again}");
    let later = grown(&mut compete, 10.1, 5.0);
    assert!((1040.0..1060.0).contains(&later), "{later}");
}

#[test]
fn who_loses_ground_makes_room() {
    let mut compete = Compete::new(1000.0 * PACKET);
    compete.on_overflow(Instant::from_millis(1000));
    compete.on_overflow(Instant::from_millis(1100));
    // It was 700 and is 490; what is aimed at is 0.85 of 700.
    let again = grown(&mut compete, 1.1, 9.0);
    assert!((595.0..615.0).contains(&again), "{again}");
}

#[test]
fn before_the_first_overflow_it_grows_by_a_tenth_a_round() {
    let mut compete = Compete::new(100.0 * PACKET);
    let grown = grown(&mut compete, 1.0, 0.4);
    assert!((255.0..265.0).contains(&grown), "{grown}");
}
