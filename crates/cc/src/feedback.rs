//! How often a receiver reports: what the sender's window must allow for.

use core::num::NonZeroU32;
use core::time::Duration;

/// The receiver's wait before it acknowledges, with nothing urgent, on a path of this round-trip
/// time: a 32nd of it costs the control loop nothing, 10 ms is the most that a tail should wait, and
/// a millisecond is as often as packets of a full link are worth reporting. On a path as short as
/// that, an eighth: were it longer, a window would drain while its acknowledgement waits. A quarter
/// of a millisecond is what timers can keep.
// spec: ack-3
pub fn ack_interval(rtt: Duration) -> Duration {
    (rtt / 32).clamp((rtt / 8).clamp(SHORTEST, SHORT), LONGEST)
}

/// The wait that a sender wants where this number of connections send by its thread: 250 us for each of them, which are 4,000
/// reports a second in all, and 10 ms at most. A report costs the sender as much as three packets, so that those of many
/// connections would take all of its time.
pub fn ack_interval_beside(rtt: Duration, sharers: NonZeroU32) -> Duration {
    let alone = ack_interval(rtt);
    match sharers {
        NonZeroU32::MIN => alone,
        _ => alone.max(SHORTEST.saturating_mul(sharers.get()).min(LONGEST)),
    }
}

/// The round-trip time that such a sender announces. The receiver derives its wait from it, so that reports come at the wanted
/// interval.
pub fn told_rtt(rtt: Duration, sharers: NonZeroU32) -> Duration {
    let interval = ack_interval_beside(rtt, sharers);
    match sharers {
        NonZeroU32::MIN => rtt,
        _ if interval > SHORT => rtt.max(interval * 32),
        _ => rtt.max(interval * 8),
    }
}

const SHORTEST: Duration = Duration::from_micros(250);
const SHORT: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    // spec: ack-3
    #[test]
    fn reports_come_several_times_a_round_trip_but_not_without_end() {
        let cases = [
            (100, 250),
            (1_200, 250),
            (4_000, 500),
            (20_000, 1_000),
            (200_000, 6_250),
            (500_000, 10_000),
        ];
        for (rtt, interval) in cases {
            assert_eq!(ack_interval(Duration::from_micros(rtt)), Duration::from_micros(interval));
        }
    }

    // spec: ack-3
    #[test]
    fn reports_of_many_connections_come_less_often() {
        for (rtt, sharers, interval) in [
            (100, 1, 250),
            (100, 3, 750),
            (100, 8, 2_000),
            (4_000, 8, 2_000),
            (20_000, 100, 10_000),
            (200_000, 8, 6_250),
        ] {
            let sharers = NonZeroU32::new(sharers).unwrap();
            let (rtt, interval) = (Duration::from_micros(rtt), Duration::from_micros(interval));
            assert_eq!(ack_interval_beside(rtt, sharers), interval);
            assert_eq!(ack_interval(told_rtt(rtt, sharers)), interval, "the receiver waits by it");
        }
    }
}
