//! A receiver that sends more messages than any honest one. The memory of the sender and the lines for the user are bounded.

use super::*;
use hikyaku_transfer::{EntryId, Failure, FailureKind, FromReceiver, Pass, SegmentIndex};

/// Runs a sender of one file against a receiver that sends these messages only.
fn against(
    name: &str,
    options: &Options,
    flood: impl FnOnce(&Out) + Send,
) -> (Option<String>, Meter) {
    let scratch = Scratch::new(name);
    fs::write(scratch.at("a"), b"a").unwrap();
    let (near, allowed) = (Meter::default(), Allowed::anything());
    let ((), error) = pair(
        |half| {
            let Half { connection, incoming: _incoming, outgoing, .. } = half;
            flood(&outgoing);
            drop(outgoing);
            block_on(connection.closed());
        },
        |half| {
            let roots = Roots::new(&[scratch.at("a")], &[], Descriptors::Users);
            let connection = half.connection.clone();
            let error = work(half, options, &allowed, &near, |ends| send(ends, &roots));
            connection.close(hikyaku_net::code::DONE, "");
            error
        },
    );
    (error, near)
}

fn failure(text: &str) -> Failure {
    Failure { place: b"x".repeat(4096), kind: FailureKind::Other, text: text.to_owned() }
}

// spec: copy-tell-1
#[test]
fn a_thousand_messages_are_told_and_the_others_counted() {
    let long = "no ".repeat(10_000);
    let (_, meter) = against("flood-failures", &Options::default(), |out| {
        for _ in 0..1500 {
            let _ = out.say(&FromReceiver::Incomplete { failure: failure(&long) });
            let failure = Some(failure(&long));
            let _ = out.say(&FromReceiver::Failed { path: b"a".to_vec(), failure });
            let _ = out.say(&FromReceiver::Remark { text: long.clone() });
        }
    });
    let failures = lines(&meter);
    assert_eq!(failures.len() as u64 + meter.more_failures(), 3000);
    let remarks = meter.take_remarks();
    for told in [failures, remarks] {
        assert!(told.len() <= 1000, "{}", told.len());
        assert!(told.iter().all(|text| text.len() <= 2 * 4096 + 10));
    }
}

#[test]
fn a_receiver_has_no_word_on_what_it_was_not_told_of() {
    for pass in [Pass::Copy, Pass::DryRun] {
        let options = Options { rules: Rules { pass, ..Rules::default() }, ..Options::default() };
        let (error, meter) = against("flood-notes", &options, |out| {
            for _ in 0..10_000 {
                let _ = out.say(&FromReceiver::Would { path: b"\nrm -rf".to_vec() });
            }
        });
        assert!(error.unwrap_or_default().contains("speaks of more"));
        assert!(meter.take_notes().len() <= 1);
    }
}

#[test]
fn a_receiver_that_wants_everything_again_and_again_is_refused() {
    let (error, _) = against("flood-again", &Options::default(), |out| {
        for _ in 0..40 {
            let segments = vec![SegmentIndex(0); 1_000_000];
            let _ = out.say(&FromReceiver::Again { id: EntryId(0), segments });
        }
    });
    assert!(error.unwrap_or_default().contains("too much again"));
}
