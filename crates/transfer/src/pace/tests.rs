//! Slots, and threads that wait for them.

use super::*;

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

#[test]
fn what_has_no_limit_is_not_waited_for() {
    let limit = Limit::new(None);
    let begin = Instant::now();
    limit.wait(u64::MAX, || false);
    assert!(limit.is_open());
    let limit = Limit::new(Some(Rate::from_bits_per_sec(8_000_000)));
    assert!(limit.is_open());
    // A caller that reserves a slot and does not wait for it leaves the limit closed to other callers.
    limit.wait(1_000_000, || true);
    assert!(!limit.is_open());
    limit.wait(1, || begin.elapsed() > Duration::from_secs(30));
    assert!(begin.elapsed() >= Duration::from_millis(900));
}

#[test]
fn pieces_are_small_where_the_rate_is() {
    let piece =
        |rate: Option<u64>| Limit::new(rate.map(Rate::from_bits_per_sec)).piece_bytes(1 << 18);
    assert_eq!(piece(None), 1 << 18);
    assert_eq!(piece(Some(8_000_000_000)), 1 << 18);
    assert_eq!(piece(Some(8_000_000)), 100_000);
    assert_eq!(piece(Some(1000)), PIECE_BYTES_MIN);
}
