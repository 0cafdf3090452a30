//! Lies of an end that receives. It is offered `run7` with a small file `a`, a large one `b` of five segments, and
//! a secret beside it.

use super::sender::Tell;
use super::words::{CONTROL, failure};
use super::{Asked, Ends, Lie, floods, lie};
use crate::peer::Peer;
use hikyaku_transfer::{
    EntryId, EntryKind, FailureKind, FileHash, FromReceiver, FromSender, Kept, SegmentHash,
    SegmentIndex, TargetKind, Version,
};
use std::time::Duration;

use Asked::{Archive, Manifest, Rehearsal};
use Ends::{Somehow, Stopped, With};

/// Segments of `b`.
pub const SEGMENTS: u32 = 5;

/// All of them.
pub fn all() -> Vec<Lie<Tell>> {
    [others(), claims_of_all(), no_messages(), floods_of_receiver()].into_iter().flatten().collect()
}

/// The truth, and what was never offered.
fn others() -> Vec<Lie<Tell>> {
    vec![
        lie("truth", Archive, With(0), received),
        // Of what was never offered.
        lie("again-of-others", Archive, With(0), |p| {
            ready(p);
            for id in [u64::MAX, 1 << 32, 7777, 0] {
                p.say(&again(id, &[0, 1, u32::MAX]));
            }
            received(p);
        }),
        lie("again-beyond", Archive, Somehow, |p| {
            ready(p);
            let id = id_of_large(p);
            p.say(&again(id, &[SEGMENTS, SEGMENTS + 1, u32::MAX, u32::MAX - 1]));
            end(p);
        }),
        // spec: copy-again-1
        lie("again-for-ever", Archive, With(2), |p| {
            ready(p);
            let id = id_of_large(p);
            while p.say(&again(id, &[1])) {
                let read = |said: &FromSender| matches!(said, FromSender::Read { .. });
                if p.hear_until(read).is_none() {
                    return;
                }
            }
        }),
        lie("again-a-million", Archive, With(2), |p| {
            ready(p);
            let id = id_of_large(p);
            let segments = vec![SegmentIndex(0); 500_000];
            p.flood(1000, |_| {
                (FromReceiver::Again { id: EntryId(id), segments: segments.clone() }, Vec::new())
            });
        }),
        lie("names-to-read", Manifest, With(0), |p| {
            let renamed = Some(b"../../outside/victim\n\x1b[2J".to_vec());
            p.say(&FromReceiver::Ready { renamed, target: TargetKind::Files });
            end(p);
        }),
        lie("ready-twice", Archive, With(0), |p| {
            ready(p);
            let renamed = Some(vec![0; 100]);
            p.say(&FromReceiver::Ready { renamed, target: TargetKind::Stream });
            received(p);
        }),
    ]
}

/// What it says to have, or to have done.
fn claims_of_all() -> Vec<Lie<Tell>> {
    vec![
        lie("has-all", Archive, With(0), |p| claims(p, |_| Kept::Whole(Some(FileHash([0; 32]))))),
        lie("has-all-unhashed", Archive, With(0), |p| claims(p, |_| Kept::Whole(None))),
        lie("has-segments", Archive, With(0), |p| {
            claims(p, |_| {
                let run = |first, count| (SegmentIndex(first), vec![SegmentHash([9; 32]); count]);
                Kept::Segments(vec![run(0, 5), run(u32::MAX - 2, 1000), run(3, 9000), run(7, 0)])
            });
        }),
        // spec: copy-end-1
        lie("finished-at-once", Archive, With(2), |p| {
            ready(p);
            p.say(&FromReceiver::Finished);
            p.wait(PATIENCE);
        }),
        lie("finished-unready", Archive, With(2), |p| {
            p.say(&FromReceiver::Finished);
            p.wait(PATIENCE);
        }),
        lie("figures", Archive, With(0), |p| {
            ready(p);
            for number in [u64::MAX, u64::MAX, 1, u64::MAX >> 1, 3] {
                p.say(&FromReceiver::Progress { bytes: number, files: number });
                p.say(&FromReceiver::Left { bytes: number });
            }
            received(p);
        }),
        lie("stream", Archive, With(0), |p| {
            p.say(&FromReceiver::Ready { renamed: None, target: TargetKind::Stream });
            end(p);
        }),
        lie("would-unasked", Archive, With(2), |p| {
            ready(p);
            p.say(&FromReceiver::Would { path: CONTROL.as_bytes().to_vec() });
            p.wait(PATIENCE);
        }),
        lie("would-more", Rehearsal, With(2), |p| {
            ready(p);
            p.flood(100_000, |_| {
                (FromReceiver::Would { path: CONTROL.as_bytes().to_vec() }, Vec::new())
            });
        }),
        lie("failed-others", Archive, With(2), |p| {
            ready(p);
            let path = b"../../secret".to_vec();
            p.say(&FromReceiver::Failed { path, failure: Some(failure(CONTROL)) });
            received(p);
        }),
        lie("words", Archive, With(2), |p| {
            ready(p);
            p.say(&FromReceiver::Remark { text: CONTROL.repeat(1000) });
            p.say(&FromReceiver::Incomplete { failure: failure(&CONTROL.repeat(1000)) });
            received(p);
        }),
    ]
}

/// What is no message, or none at all.
fn no_messages() -> Vec<Lie<Tell>> {
    vec![
        lie("garbage", Archive, With(2), |p| {
            p.raw([&64_u32.to_le_bytes()[..], &[0xff; 64]].concat());
            p.wait(PATIENCE);
        }),
        lie("endless-frame", Archive, With(2), |p| {
            p.raw(vec![0xff; 1 << 20]);
            p.wait(PATIENCE);
        }),
        lie("nothing-in-frames", Archive, With(2), |p| {
            p.raw(vec![0; 1 << 20]);
            p.wait(PATIENCE);
        }),
        lie("stops", Archive, With(2), |p| {
            ready(p);
            p.finish();
            p.wait(PATIENCE);
        }),
        lie("leaves", Archive, With(2), |p| {
            p.connection.close(
                hikyaku_net::AppCode::new(u64::MAX >> 2),
                &format!("{CONTROL}: try: rm -rf {CONTROL}"),
            );
        }),
        lie("leaves-with-a-kind", Archive, With(6), |p| {
            let code = hikyaku_net::code::APPLICATION + 0x100 + FailureKind::NoSpace.number();
            p.connection.close(hikyaku_net::AppCode::new(code), &CONTROL.repeat(10_000));
        }),
        lie("silent", Archive, Stopped, |_| {}),
        lie("never-finished", Archive, Stopped, |p| {
            ready(p);
            hear_all(p);
        }),
        lie("objects", Archive, Stopped, |p| {
            ready(p);
            let mut all: Vec<_> = (0..16).map_while(|_| p.object()).collect();
            while all.iter_mut().all(|object| crate::peer::write(object, vec![7; 1 << 20])) {}
        }),
    ]
}

/// What is told without end.
fn floods_of_receiver() -> Vec<Lie<Tell>> {
    vec![
        lie("flood-of-failures", Archive, With(2), |p| {
            ready(p);
            let long = CONTROL.repeat(2000);
            p.flood(6000, |n| match n % 3 {
                0 => (FromReceiver::Incomplete { failure: failure(&long) }, Vec::new()),
                1 => {
                    let failure = Some(failure(&long));
                    (FromReceiver::Failed { path: b"run7/a".to_vec(), failure }, Vec::new())
                }
                _ => (FromReceiver::Remark { text: long.clone() }, Vec::new()),
            });
            end(p);
        }),
        lie("flood-of-claims", Archive, Stopped, |p| {
            p.flood(50_000, |n| (floods::has(n, 100), Vec::new()));
        }),
        lie("flood-of-long-claims", Archive, Stopped, |p| {
            p.flood(1000, |n| (floods::has(n, 30_000), Vec::new()));
        }),
        lie("flood-of-progress", Archive, With(0), |p| {
            ready(p);
            p.flood(2_000_000, |_| (FromReceiver::Progress { bytes: 1, files: 1 }, Vec::new()));
            end(p);
        }),
    ]
}

const PATIENCE: Duration = Duration::from_secs(25);

fn ready(peer: &mut Peer) {
    peer.say(&FromReceiver::Ready { renamed: None, target: TargetKind::Files });
}

fn again(id: u64, segments: &[u32]) -> FromReceiver {
    let segments = segments.iter().copied().map(SegmentIndex).collect();
    FromReceiver::Again { id: EntryId(id), segments }
}

/// Which number the large file has.
fn id_of_large(peer: &mut Peer) -> u64 {
    let is_large = |said: &FromSender| {
        matches!(said, FromSender::Entry(entry)
            if matches!(entry.kind, EntryKind::File { size } if size > 1 << 20))
    };
    match peer.hear_until(is_large) {
        Some(FromSender::Entry(entry)) => entry.id.0,
        _ => 0,
    }
}

/// Hears the sender out. Nothing is written: who says that all of it is there may say so.
fn hear_all(peer: &mut Peer) {
    let connection = peer.connection.clone();
    std::thread::spawn(move || {
        use hikyaku_net::blocking::block_on;
        while let Ok(mut object) = block_on(connection.accept_object()) {
            std::thread::spawn(move || while let Ok(Some(_)) = block_on(object.next()) {});
        }
    });
    peer.hear_until(|said| *said == FromSender::End);
}

/// Hears the sender out, and says that all is there.
fn end(peer: &mut Peer) {
    hear_all(peer);
    peer.say(&FromReceiver::Finished);
    peer.wait(PATIENCE);
}

fn received(peer: &mut Peer) {
    ready(peer);
    end(peer);
}

/// Claims to have whatever is offered before it has said that it is ready.
fn claims(peer: &mut Peer, kept: impl Fn(&[u8]) -> Kept) {
    let mut left = 3;
    peer.hear_until(|_| true);
    let mut all = Vec::new();
    peer.hear_until(|said| {
        if let FromSender::Entry(entry) | FromSender::Small { entry, .. } = said {
            left -= i32::from(matches!(entry.kind, EntryKind::File { .. }));
            all.push((entry.path.clone(), entry.version));
        }
        left == 1
    });
    all.push((b"../secret".to_vec(), Version([0; 32])));
    for (path, version) in all {
        let kept = kept(&path);
        peer.say(&FromReceiver::Has { path, version, kept });
    }
    ready(peer);
    end(peer);
}
