//! Samples that count and samples that do not.

use super::*;
use crate::sample::Phase;
use core::time::Duration;
use hikyaku_units::DataSize;

const ASKED: Decision =
    Decision { n: 8, next: Next::Bytes(DataSize::from_bytes(1000)), phase: Phase::Bracket };

fn sample(n: u32, bytes: u64, millis: u64) -> Sample {
    Sample {
        n,
        bytes: DataSize::from_bytes(bytes),
        elapsed: Duration::from_millis(millis),
        limited_by: LimitedBy::Network,
    }
}

fn judge(sample: Sample) -> Verdict {
    Screen::new().judge(&ASKED, &sample)
}

#[test]
fn a_sample_counts_if_it_has_half_of_its_bytes() {
    let full = Verdict::Counts(Point { n: 8.0, goodput: 1000.0 });
    assert_eq!(judge(sample(8, 1000, 1000)), full);
    assert_eq!(judge(sample(9, 1000, 1000)), full, "more connections than asked for");
    assert_eq!(judge(sample(8, 500, 500)), full);
}

#[test]
fn a_sample_is_dropped_if_it_is_short() {
    assert_eq!(judge(sample(8, 499, 1000)), Verdict::Again);
    assert_eq!(judge(sample(8, 1000, 0)), Verdict::Again, "no time has passed");
}

#[test]
fn a_sample_that_a_disk_limited_does_not_count() {
    let sample = Sample { limited_by: LimitedBy::Disk, ..sample(8, 1000, 1000) };
    assert_eq!(judge(sample), Verdict::Again);
}

#[test]
fn connections_that_are_missing_three_times_are_not_granted() {
    let mut screen = Screen::new();
    let few = sample(5, 1000, 1000);
    assert_eq!(screen.judge(&ASKED, &few), Verdict::Again);
    assert_eq!(screen.judge(&ASKED, &few), Verdict::Again);
    let granted = Verdict::Granted(Point { n: 5.0, goodput: 1000.0 });
    assert_eq!(screen.judge(&ASKED, &few), granted);
    assert_eq!(screen.judge(&ASKED, &few), Verdict::Again, "counted anew");
}

#[test]
fn a_path_without_any_connection_caps_nothing() {
    let mut screen = Screen::new();
    for _ in 0..10 {
        assert_eq!(screen.judge(&ASKED, &sample(0, 1000, 1000)), Verdict::Again);
    }
}
