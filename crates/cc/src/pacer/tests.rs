//! The pacer keeps the average exact and the bursts small.

use super::*;

#[test]
fn the_average_is_the_rate_even_with_late_wake_ups() {
    let mut pacer = Pacer::new(Some(Rate::from_bits_per_sec(80_000_000)));
    let mut now = Instant::from_millis(1000);
    pacer.on_idle(now);
    let mut sent = 0;
    while now < Instant::from_millis(2000) {
        while pacer.is_due(now) {
            pacer.on_sent(now, 1000);
            sent += 1000;
        }
        now += Duration::from_micros(1300);
    }
    assert!((9_980_000..10_030_000).contains(&sent), "{sent}");
}

#[test]
fn a_long_sleep_is_not_made_good() {
    let mut pacer = Pacer::new(Some(Rate::from_bits_per_sec(8_000_000)));
    let now = Instant::from_millis(60_000);
    let mut burst = 0;
    while pacer.is_due(now) {
        pacer.on_sent(now, 100);
        burst += 100;
    }
    assert!(burst <= 4100, "{burst}");
}

#[test]
fn connections_of_one_thread_share_the_number_of_batches() {
    let mut pacer = Pacer::new(Some(Rate::from_bits_per_sec(1_500_000_000)));
    pacer.set_rtt(Duration::from_micros(200));
    let alone = pacer.batch();
    pacer.set_sharers(NonZeroU32::new(4).unwrap());
    assert_eq!(pacer.batch(), 4 * alone);
    pacer.set_sharers(NonZeroU32::new(1000).unwrap());
    let in_time = |time| Rate::from_bits_per_sec(1_500_000_000).in_time(time).bytes();
    assert_eq!(pacer.batch(), in_time(Duration::from_millis(10)));
    // A long path has long batches for other reasons.
    pacer.set_rtt(Duration::from_millis(100));
    pacer.set_sharers(NonZeroU32::MIN);
    assert_eq!(pacer.batch(), in_time(Duration::from_micros(500)));
}
