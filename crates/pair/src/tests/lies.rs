//! Hundreds of random lies, in both roles. Whatever a peer sends, no file outside the target is touched, no thread panics, and
//! this end terminates.

use super::hostile::{Script, against, begin, entry, is_untouched, scene};
use super::*;
use fastrand::Rng;
use hikyaku_fs::Shown;
use hikyaku_transfer::{
    Attribute, Attributes, Depth, EntryId, EntryKind, Failure, FailureKind, FileHash, FromReceiver,
    FromSender, Hole, Kept, Links, Pass, PathFigures, Preserve, Resume, SegmentHash, SegmentIndex,
    Sources, TargetKind, Verify, Version, Write, decode,
};

/// Number of seeds for each role. A failure prints its seed.
const SEEDS: u64 = 500;
const LONGEST: usize = 12;

fn number(rng: &mut Rng) -> u64 {
    match rng.u8(..6) {
        0 => 0,
        1 => 1 << 20,
        2 => u64::MAX,
        3 => rng.u64(..5 << 20),
        4 => 1 << rng.u8(..64),
        _ => rng.u64(..),
    }
}

fn path(rng: &mut Rng) -> Vec<u8> {
    const PARTS: [&[u8]; 14] = [
        b"run7", b"run7", b"run7", b"out", b"..", b".", b"", b"victim", b"a", b"b", b"a\0b",
        b"\x1b[2J", b"outside", b"-rf",
    ];
    let mut parts: Vec<&[u8]> =
        (0..rng.usize(1..5)).map(|_| PARTS[rng.usize(..PARTS.len())]).collect();
    if rng.u8(..3) > 0 {
        parts[0] = b"run7";
    }
    let mut path = parts.join(&b'/');
    if rng.u8(..20) == 0 {
        path.insert(0, b'/');
    }
    path
}

fn kind(rng: &mut Rng) -> EntryKind {
    match rng.u8(..4) {
        0 => EntryKind::Dir,
        1 => EntryKind::Link(path(rng)),
        2 => EntryKind::Link(b"../../outside".to_vec()),
        _ => EntryKind::File { size: number(rng) },
    }
}

fn segment(rng: &mut Rng) -> SegmentIndex {
    SegmentIndex(number(rng) as u32)
}

fn hashes(rng: &mut Rng) -> Vec<SegmentHash> {
    vec![SegmentHash([rng.u8(..); 32]); rng.usize(..70)]
}

fn failure(rng: &mut Rng) -> Failure {
    let text = "\x1b]0;x\x07".to_owned();
    Failure { place: path(rng), kind: FailureKind::Other, text }
}

/// One message of a sender, and bytes behind it.
fn message(rng: &mut Rng) -> (FromSender, Vec<u8>) {
    let id = EntryId(rng.u64(..4));
    let mut made = entry(rng.u64(..4), &path(rng), kind(rng));
    if rng.bool() {
        made.attributes = vec![Attribute { name: b"user.a\0".to_vec(), value: vec![0; 9] }];
    }
    let message = match rng.u8(..17) {
        0..=4 => FromSender::Entry(made),
        5 | 6 => {
            let bytes = vec![7; rng.usize(..20)];
            if rng.u8(..4) > 0 {
                made.kind = EntryKind::File { size: bytes.len() as u64 };
            }
            let hash = FileHash(*blake3::hash(&bytes).as_bytes());
            return (FromSender::Small { entry: made, hash }, bytes);
        }
        7 => FromSender::Data {
            id,
            object: rng.u32(..20),
            ranges: (0..rng.usize(..4)).map(|_| (number(rng), number(rng))).collect(),
        },
        8 => FromSender::Segments { id, first: segment(rng), hashes: hashes(rng) },
        9 => {
            let hole = |rng: &mut Rng| Hole { first: segment(rng), count: number(rng) as u32 };
            FromSender::Holes { id, holes: (0..rng.usize(..4)).map(|_| hole(rng)).collect() }
        }
        10 => FromSender::Read { id },
        14 => FromSender::Stream(made),
        15 => {
            let bytes = vec![7; rng.usize(..20)];
            let hash = FileHash(*blake3::hash(&bytes).as_bytes());
            let length = if rng.u8(..8) == 0 { rng.u32(..) } else { bytes.len() as u32 };
            return (FromSender::Piece { id, length, hash }, bytes);
        }
        16 => FromSender::Last { id, size: number(rng), hash: FileHash([rng.u8(..); 32]) },
        11 => FromSender::Unreadable { id: rng.bool().then_some(id), failure: failure(rng) },
        12 if rng.bool() => FromSender::Same { bytes: number(rng) },
        12 => FromSender::Total { files: number(rng), bytes: number(rng) },
        _ if rng.u8(..8) == 0 => begin(Sources::Several),
        _ => FromSender::Path(PathFigures { packet: 0, rtt: f64::NAN, ..PathFigures::default() }),
    };
    (message, Vec::new())
}

#[test]
fn a_sender_that_says_anything_touches_nothing_else() {
    let scratch = scene("lies-sender");
    for seed in 0..SEEDS {
        let mut rng = Rng::with_seed(seed);
        let script: Script = (0..rng.usize(1..LONGEST)).map(|_| message(&mut rng)).collect();
        let options = Options {
            rules: Rules {
                links: [Links::Followed, Links::Kept][rng.usize(..2)],
                attributes: [Attributes::Dropped, Attributes::Kept][rng.usize(..2)],
                depth: if rng.u8(..4) > 0 { Depth::Tree } else { Depth::File },
                preserve: [Preserve::Nothing, Preserve::All, Preserve::Times][rng.usize(..3)],
                write: [Write::Beside, Write::InPlace][rng.usize(..2)],
                verify: [Verify::Arrived, Verify::ReadBack][rng.usize(..2)],
                pass: if rng.u8(..8) == 0 { Pass::DryRun } else { Pass::Copy },
                resume: Resume::Fresh,
                ..Rules::default()
            },
            ..Options::default()
        };
        let (_, failures) = against(&script, &scratch.at("target"), &options);
        assert!(is_untouched(&scratch), "seed {seed}: {script:?}");
        assert!(!Path::new("/victim").exists() && !Path::new("/run7").exists(), "seed {seed}");
        let said = failures.concat();
        assert!(!said.contains('\x1b') && !said.contains('\x07'), "seed {seed}: {said:?}");
    }
}

/// One message of a receiver.
fn answer(rng: &mut Rng) -> FromReceiver {
    let id = EntryId(rng.u64(..6));
    let version = Version([0; 32]);
    match rng.u8(..9) {
        0 => FromReceiver::Has { path: path(rng), version, kept: Kept::Whole(None) },
        1 => {
            let kept = Kept::Segments(vec![(segment(rng), hashes(rng))]);
            FromReceiver::Has { path: path(rng), version, kept }
        }
        2 | 3 => {
            let target = if rng.bool() { TargetKind::Files } else { TargetKind::Stream };
            FromReceiver::Ready { renamed: rng.bool().then(|| path(rng)), target }
        }
        4 => FromReceiver::Again {
            id,
            segments: (0..rng.usize(..5)).map(|_| segment(rng)).collect(),
        },
        5 => FromReceiver::Progress { bytes: number(rng), files: number(rng) },
        6 => FromReceiver::Failed { path: path(rng), failure: rng.bool().then(|| failure(rng)) },
        7 if rng.bool() => FromReceiver::Left { bytes: number(rng) },
        7 if rng.bool() => FromReceiver::Would { path: path(rng) },
        7 if rng.bool() => FromReceiver::Remark { text: "\x1b[1mgone\x07".into() },
        7 => FromReceiver::Incomplete { failure: failure(rng) },
        _ => FromReceiver::Finished,
    }
}

#[test]
fn a_receiver_that_says_anything_gets_no_more_than_was_to_be_sent() {
    let scratch = Scratch::new("lies-receiver");
    let tree = scratch.at("run7");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("a"), random(1, 3000)).unwrap();
    fs::write(tree.join("b"), random(2, 2_000_000)).unwrap();
    fs::write(scratch.at("secret"), b"secret").unwrap();
    let secret = Shown::new(b"secret").to_string();
    let options = recursive();
    for seed in 0..SEEDS {
        let mut rng = Rng::with_seed(seed);
        let (near, allowed) = (Meter::default(), Allowed::anything());
        let (names, sender) = pair(
            |half| {
                let Half { connection, mut incoming, outgoing, .. } = half;
                for _ in 0..rng.usize(1..LONGEST) {
                    let _ = outgoing.say(&answer(&mut rng));
                }
                let _ =
                    outgoing.say(&FromReceiver::Ready { renamed: None, target: TargetKind::Files });
                let mut names = Vec::new();
                while let Ok(Some(body)) = incoming.hear() {
                    match decode::<FromSender>(body) {
                        Ok((FromSender::Entry(entry) | FromSender::Small { entry, .. }, _)) => {
                            names.push(String::from_utf8_lossy(&entry.path).into_owned());
                        }
                        Ok((FromSender::End, _)) => break,
                        _ => {}
                    }
                }
                let _ = outgoing.say(&FromReceiver::Finished);
                connection.close(hikyaku_net::code::DONE, "");
                names
            },
            |half| {
                let roots = Roots::new(std::slice::from_ref(&tree), &[], Descriptors::Users);
                work(half, &options, &allowed, &near, |ends| send(ends, &roots))
            },
        );
        assert!(names.iter().all(|name| name.starts_with("run7")), "seed {seed}: {names:?}");
        assert!(!names.concat().contains(&secret), "seed {seed}: {names:?}");
        let said = [lines(&near), near.take_notes(), near.take_remarks()].concat().concat();
        let said = said + &sender.unwrap_or_default();
        assert!(!said.contains('\x1b') && !said.contains('\x07'), "seed {seed}: {said:?}");
    }
}
