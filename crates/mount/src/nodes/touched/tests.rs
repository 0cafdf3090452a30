//! Times of directories and files that were changed here.

use super::*;
use hikyaku_store::{Identity, Kind, Owner};

fn at(nanos: u32) -> Time {
    Time { secs: 1000, nanos }
}

fn dir(modified: Time) -> Found {
    Found {
        kind: Kind::Dir,
        size: 0,
        allocated: 0,
        mode: 0o755,
        owner: Owner::default(),
        modified,
        identity: Identity { device: 1, number: 1 },
        version: None,
    }
}

#[test]
fn a_clock_that_is_behind_does_not_put_a_directory_back() {
    let mut touched = Touched::default();
    let given = touched.give(at(0), at(50_000_000));
    assert_eq!(given, at(50_000_000));
    for told in [at(46_000_000), at(49_999_999), at(46_000_000)] {
        assert_eq!(touched.corrected(dir(told)).modified, given);
    }
    // A change at the server, whose clock has gone on by a step that is still behind, gives a later time.
    let next = touched.give_again(given, at(50_000_000));
    assert!(next > given);
    assert_eq!(touched.corrected(dir(at(49_999_999))).modified, next);
    // Its clock has come beyond it.
    assert_eq!(touched.corrected(dir(at(60_000_000))).modified, at(60_000_000));
    assert_eq!(touched.corrected(dir(at(59_000_000))).modified, at(59_000_000));
    assert_eq!(touched.give_again(at(59_000_000), at(70_000_000)), at(59_000_000));
}

#[test]
fn a_file_that_was_written_here_keeps_the_time_that_programs_have_seen() {
    let mut touched = Touched::default();
    touched.confirmed(at(300_000_000), at(5));
    assert_eq!(touched.shown(at(300_000_000)), at(5));
    // Another client has written to the file.
    assert_eq!(touched.shown(at(400_000_000)), at(400_000_000));
    touched.clear();
    assert_eq!(touched.shown(at(300_000_000)), at(300_000_000));
}

#[test]
fn a_time_that_somebody_has_set_is_seen() {
    let mut touched = Touched::default();
    let past = Time { secs: 5, nanos: 0 };
    touched.give(at(0), at(50_000_000));
    assert_eq!(touched.corrected(dir(past)).modified, past);
    // By a program here.
    touched.give(past, at(50_000_000));
    touched.clear();
    assert_eq!(touched.corrected(dir(at(49_000_000))).modified, at(49_000_000));
    // One of the future ends with the next change.
    let future = Time { secs: 5000, nanos: 0 };
    assert_eq!(touched.give(future, at(7)), at(7));
    assert_eq!(touched.give(at(999_999_999), at(999_999_990)), Time { secs: 1001, nanos: 0 });
}
