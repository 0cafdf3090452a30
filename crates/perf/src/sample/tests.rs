//! Tests of differences and sums of samples.

use super::*;

fn sample(bytes: u64, lost: u64, phase: Phase) -> PathSample {
    PathSample {
        sent_packets: bytes / 100,
        wire_bytes: bytes,
        payload_bytes: bytes / 2,
        resent_bytes: bytes / 4,
        lost_packets: lost,
        rtt_ms: bytes as f64,
        base_rtt_ms: bytes as f64,
        phase,
        ..PathSample::default()
    }
}

#[test]
fn an_interval_is_the_difference_of_two_reports() {
    let streams = vec![sample(1000, 1, Phase::Startup)];
    let before = PathReport { seconds: 1.0, streams };
    let after = PathReport { seconds: 3.0, streams: vec![sample(5000, 5, Phase::Cruise)] };
    let delta = &after.since(&before)[0];
    assert_eq!(delta.wire_bits_per_second(), 16_000.0);
    assert_eq!(delta.lost_percent(), 10.0);
    assert_eq!(delta.resent_percent(), 50.0);
    assert_eq!(delta.sample.phase, Phase::Cruise);
    // The first report of a test, and one whose counters are lower than before.
    assert_eq!(before.since(&PathReport::default())[0].sample.wire_bytes, 1000);
    assert_eq!(before.since(&after)[0].sample.wire_bytes, 0);
}

#[test]
fn counters_are_summed_and_delays_are_averaged() {
    let delta = |sample| PathDelta { seconds: 2.0, sample };
    let both = [delta(sample(1000, 1, Phase::Startup)), delta(sample(3000, 2, Phase::Cruise))];
    let sum = PathDelta::sum(&both).unwrap();
    assert_eq!((sum.sample.wire_bytes, sum.sample.lost_packets), (4000, 3));
    assert_eq!((sum.sample.rtt_ms, sum.sample.base_rtt_ms), (2000.0, 1000.0));
    assert_eq!((sum.seconds, sum.sample.phase), (2.0, Phase::Startup));
    assert_eq!(PathDelta::sum(&[]), None);
    let twice = both[0].and(&both[1]);
    assert_eq!((twice.seconds, twice.sample.wire_bytes, twice.sample.rtt_ms), (4.0, 4000, 3000.0));
}
