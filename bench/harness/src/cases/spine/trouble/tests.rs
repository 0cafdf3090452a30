//! Schedules that the lab understands.

use super::*;
use hikyaku_link::Schedule;

#[test]
fn every_trouble_is_one_that_the_lab_knows() {
    for trouble in TROUBLES {
        let text = schedule(trouble.schedule, 15.0, 30.0);
        let schedule: Schedule = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(!schedule.steps().is_empty());
        assert!(!trouble.ends.is_empty());
    }
    assert_eq!(schedule("at Ts rtt 1ms\nat Us rtt 2ms", 15.0, 30.5).lines().count(), 2);
}
