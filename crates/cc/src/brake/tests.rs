//! The brake bites where a path suffers for seconds, and lets go where it does not.

use super::*;

/// What is left after so many seconds, ten rounds each, of loss and queue.
fn after(brake: &mut Brake, from: u64, seconds: u64, loss: f64, queue: f64) -> f64 {
    for round in from * 10..(from + seconds) * 10 {
        brake.on_round(Instant::from_millis(round * 100), loss, queue);
    }
    brake.part()
}

#[test]
fn what_a_path_bears_is_not_slowed() {
    let mut brake = Brake::new();
    assert_eq!(after(&mut brake, 0, 60, 0.29, 0.19), 1.0);
}

// spec: rate-7
#[test]
fn what_it_does_not_bear_is_halved_until_it_does() {
    for (loss, queue) in [(0.31, 0.0), (0.0, 0.21)] {
        let mut brake = Brake::new();
        assert_eq!(after(&mut brake, 0, 3, loss, queue), 1.0);
        assert_eq!(after(&mut brake, 3, 3, loss, queue), 0.5);
        assert_eq!(after(&mut brake, 6, 3, loss, queue), 0.25);
        // More is tried late, and never more than all.
        assert_eq!(after(&mut brake, 9, 10, 0.0, 0.0), 0.25);
        assert_eq!(after(&mut brake, 19, 10, 0.0, 0.0), 0.3125);
        assert_eq!(after(&mut brake, 29, 100, 0.0, 0.0), 1.0);
    }
}

#[test]
fn a_storm_of_two_seconds_passes() {
    let mut brake = Brake::new();
    for at in (0..60).step_by(3) {
        after(&mut brake, at, 2, 0.9, 0.5);
        assert_eq!(after(&mut brake, at + 2, 1, 0.0, 0.0), 1.0);
    }
}
