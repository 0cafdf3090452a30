//! Flows that come and go, and who looks at them.

use super::*;
use std::thread;

/// The turn of a test that looks for files among the open ones of this process: those of another test would be found.
pub(super) fn open_files() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn asking(target: &str) -> Asking {
    Asking { ends: None, target: target.to_owned() }
}

#[test]
fn a_flow_that_is_over_is_remembered_for_a_while() {
    let now = Instant::now();
    let board = Board::new("far".to_owned(), now);
    let mut place = board.enter(asking("web:80"), now);
    place.meters().incoming.add(7);
    assert_eq!(board.open().len(), 1);
    place.set_end("ended".to_owned());
    drop(place);
    assert!(board.open().is_empty());
    let ended = board.ended();
    let wanted = ("web:80", "ended", 7, 0);
    let last = &ended[0];
    assert_eq!(
        (last.target.as_str(), last.end.as_str(), last.received_bytes, last.sent_bytes),
        wanted
    );
    for _ in 0..2 * ENDED_MAX {
        drop(board.enter(asking(&"x".repeat(10_000)), now));
    }
    let ended = board.ended();
    assert_eq!(ended.len(), ENDED_MAX);
    assert_eq!(ended[0].target.len(), TARGET_CHARS_MAX);
    assert_eq!(ended[0].id, 1 + 2 * ENDED_MAX as u64, "the last one is first");
}

#[test]
fn the_far_gateway_s_words_are_parts_of_the_time_between_two_reports() {
    let now = Instant::now();
    let at = |millis| now + Duration::from_millis(millis);
    let board = Board::new("far".to_owned(), now);
    let place = board.enter(asking("web:80"), now);
    let report = |flow, path| {
        let time = Duration::from_millis;
        Report {
            flows: vec![Waited { flow, server: time(100), path: time(path), reader: time(0) }],
        }
    };
    board.hear(&report(4, 100), at(0));
    place.set_stream(Route::Carried, 4);
    board.hear(&report(4, 100), at(500));
    assert_eq!(board.far_parts(&place.track, at(500)), None, "one report says nothing");
    board.hear(&report(4, 400), at(1000));
    // A stream that nobody has is not remembered.
    board.hear(&report(8, 400), at(1000));
    assert_eq!(board.state().far.len(), 1);
    let parts = board.far_parts(&place.track, at(1000)).unwrap();
    assert!((parts.path - 0.6).abs() < 1e-9 && parts.server == 0.0, "{parts:?}");
    assert_eq!(board.far_parts(&place.track, at(5000)), None, "an old report says nothing");
    board.forget_far();
    assert_eq!(board.far_parts(&place.track, at(1000)), None, "it was another gateway's");
    board.hear(&report(4, 400), at(1000));
    drop(place);
    assert!(board.state().far.is_empty());
}

#[test]
fn a_flow_that_goes_direct_is_no_flow_of_the_far_gateway() {
    let now = Instant::now();
    let board = Board::new("far".to_owned(), now);
    let (carried, direct) = (board.enter(asking("a:80"), now), board.enter(asking("a:80"), now));
    carried.set_stream(Route::Carried, 4);
    direct.set_stream(Route::Direct, 4);
    assert_eq!(board.direct(), 1);
    drop(carried);
    let waited = Waited { flow: 4, ..Waited::default() };
    board.hear(&Report { flows: vec![waited] }, now);
    assert!(board.state().far.is_empty(), "no carried flow has this stream");
    assert_eq!(board.far_parts(&direct.track, now).map(|parts| parts.path), Some(0.0));
}

#[test]
fn samples_are_taken_only_while_somebody_looks() {
    let board = Board::new("far".to_owned(), Instant::now());
    let sampler = {
        let board = board.clone();
        thread::spawn(move || {
            let mut samples = 0;
            while board.wait_for_a_look() {
                samples += 1;
                board.publish(Status { open: samples, ..Status::default() });
            }
            samples
        })
    };
    let first = board.look_anew(Instant::now(), Duration::from_secs(30));
    assert!(first.open >= 1);
    board.state().watched_until = None;
    board.end();
    assert!(sampler.join().unwrap() >= 1);
    // Nobody takes samples any more, and nobody waits for one.
    board.look_anew(Instant::now(), Duration::from_secs(3600));
}
