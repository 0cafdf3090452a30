//! Common drains.

use super::*;

const ROUND_TRIP: Duration = Duration::from_millis(40);

/// Runs one slot in steps of a millisecond, in which the queue is what `queue` says of the milliseconds
/// since its begin; gives what was seen and what share of the rate was sent in all of a second.
fn slot(calendar: u64, queue: impl Fn(u64) -> f64) -> (Option<Sight>, f64) {
    let mut commons = Commons::new();
    commons.set_calendar(calendar);
    let begin = EVERY.as_nanos() as u64 - calendar % EVERY.as_nanos() as u64;
    let (mut sight, mut sent) = (None, 0.0);
    for milli in 0..1000 {
        let now = Instant::from_nanos(begin) + Duration::from_millis(milli);
        let seen = commons.on_time(now, ROUND_TRIP, (queue(0), queue(milli)));
        sight = sight.or(seen);
        sent += commons.share() / 1000.0;
    }
    assert!(!commons.is_active());
    (sight, sent)
}

/// Microseconds of the queue before, of the least of it and of its mean while it was to be empty.
fn stayed(sight: Option<Sight>) -> [u64; 3] {
    let Some(Sight::Stayed { before, lowest, mean, .. }) = sight else { panic!("{sight:?}") };
    [before, lowest, mean].map(|seconds| (seconds * 1e6 + 0.5) as u64)
}

// spec: rate-3
#[test]
fn slots_begin_by_the_calendar_whatever_the_clock_says() {
    for calendar in [0, 1, 7_654_321_987, u64::MAX / 2] {
        let (sight, sent) = slot(calendar, |_| 0.005);
        assert_eq!(stayed(sight), [5000, 5000, 5000], "{calendar}");
        assert!((0.988..0.992).contains(&sent), "6 % less for a quarter of it, 2 % more: {sent}");
    }
}

#[test]
fn who_knows_no_calendar_drains_nothing() {
    let mut commons = Commons::new();
    for milli in 0..20_000 {
        let now = Instant::from_millis(milli);
        assert_eq!(commons.on_time(now, ROUND_TRIP, (0.005, 0.005)), None);
        assert!(!commons.is_active());
    }
}

#[test]
fn a_queue_that_goes_is_ours_and_one_that_stays_is_not() {
    let (sight, _) = slot(0, |milli| if milli < 100 { 0.004 } else { 0.0001 });
    assert_eq!(stayed(sight), [4000, 100, 100]);
    let (sight, _) = slot(0, |_| 0.0001);
    assert_eq!(sight, Some(Sight::Nothing));
}

#[test]
fn a_queue_that_others_empty_and_fill_again_is_told_by_its_mean() {
    // In turns of 60 ms; the trough is heard of from 165 to 290 ms.
    let (sight, _) = slot(0, |milli| if milli / 60 % 2 == 0 { 0.020 } else { 0.0 });
    let [before, lowest, mean] = stayed(sight);
    assert_eq!((before, lowest), (20_000, 0));
    assert!((6_000..14_000).contains(&mean), "{mean}");
}

// spec: rate-3
#[test]
fn a_longer_queue_is_drained_with_less_in_the_same_time() {
    let (_, sent) = slot(0, |_| 0.040);
    assert!((0.95..0.97).contains(&sent), "{sent}");
}

#[test]
fn half_a_slot_is_left_out() {
    let mut commons = Commons::new();
    commons.set_calendar(0);
    let late = Instant::ZERO + EVERY + LENGTH / 2;
    assert_eq!(commons.on_time(late, ROUND_TRIP, (0.005, 0.005)), None);
    assert!(!commons.is_active());
}

#[test]
fn a_queue_that_was_just_emptied_is_not_held_by_others() {
    // Many flows looked at their path just before: the queue comes back while it is drained.
    let (sight, _) = slot(0, |milli| 0.006 + 0.0001 * milli.min(120) as f64);
    let Some(Sight::Stayed { before, lowest, .. }) = sight else { panic!("{sight:?}") };
    assert!((0.0175..0.0185).contains(&before) && lowest < 0.0065, "{before} {lowest}");
}

// spec: rate-4
#[test]
fn who_drains_alone_is_told_by_how_slowly_the_queue_goes() {
    for queue in [0.010, 0.060, 0.100] {
        for share in [0.3, 0.6, 1.0] {
            let depth = (SPARE * queue / LENGTH.as_secs_f64()).clamp(LEAST, MOST);
            // What a packet meets that is sent then, and how long it takes until that is heard of.
            let met = |sent: u64| fmax(queue - share * depth * sent.min(250) as f64 / 1e3, 0.0);
            let heard = |sent: u64| sent + 40 + (1e3 * met(sent)) as u64;
            let (sight, _) = slot(0, |milli| {
                (0..milli).rev().find(|&sent| heard(sent) <= milli).map_or(queue, met)
            });
            let Some(Sight::Stayed { kept, .. }) = sight else { panic!("{sight:?}") };
            assert!((kept - (1.0 - share)).abs() < 0.15, "{queue} {share}: {kept}");
        }
    }
}
