//! A file is whole when every segment is proven and the sender has read it to its end: once, and in
//! whatever order that happens.

use super::*;
use crate::slots::Slots;
use hikyaku_transfer::SEGMENT;
use std::time::Duration;

fn begin(scratch: &std::path::Path) -> (Incoming, Geometry) {
    let dir = Arc::new(Dir::open(scratch).unwrap());
    let file = Geometry::new(2 * SEGMENT + 5).unwrap();
    let path = PeerPath::new(b"big").unwrap();
    let name = path.name();
    let plan = Plan {
        path,
        dir,
        device: 0,
        name,
        mode: 0o644,
        owner: None,
        modified: (1, 2),
        version: Version([0; 32]),
        size: file.size(),
        attributes: Vec::new(),
        manner: Manner::Renamed,
    };
    let draft = plan.open(&Token::random().unwrap(), None).unwrap();
    (Incoming::new(EntryId(1), plan, file, (draft, slot()), None), file)
}

fn slot() -> Slot {
    Slots::new(1).take(Duration::ZERO).unwrap()
}

fn hash(n: u8) -> SegmentHash {
    SegmentHash([n; 32])
}

// spec: copy-read-1
#[test]
fn it_is_whole_once_in_any_order() {
    let scratch = tempdir();
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let (incoming, _) = begin(&scratch);
        let mut whole = 0;
        for step in order {
            let news = match step {
                0 => incoming.expect(SegmentIndex(0), &[hash(0), hash(1), hash(2)]).unwrap(),
                1 => incoming.read(),
                2 => {
                    let first = incoming.arrived(SegmentIndex(2), hash(2)).unwrap();
                    assert!(!first.is_whole);
                    incoming.arrived(SegmentIndex(0), hash(0)).unwrap()
                }
                _ => incoming.arrived(SegmentIndex(1), hash(1)).unwrap(),
            };
            assert!(news.again.is_empty());
            whole += usize::from(news.is_whole);
        }
        assert_eq!(whole, 1, "{order:?}");
        assert!(incoming.is_over() && !incoming.read().is_whole);
    }
    std::fs::remove_dir_all(scratch).unwrap();
}

// spec: copy-hash-1
#[test]
fn wrong_bytes_are_asked_for_again_and_never_named() {
    let scratch = tempdir();
    let (incoming, _) = begin(&scratch);
    let arrived = |index, n| incoming.arrived(SegmentIndex(index), hash(n)).unwrap();
    incoming.expect(SegmentIndex(0), &[hash(0), hash(1), hash(2)]).unwrap();
    incoming.read();
    assert_eq!(arrived(1, 9).again, [SegmentIndex(1)]);
    arrived(0, 0);
    assert!(!arrived(2, 2).is_whole, "one is missing");
    // The repetition: hashes, data and the end again.
    incoming.expect(SegmentIndex(1), &[hash(1)]).unwrap();
    assert!(!arrived(1, 1).is_whole);
    assert!(incoming.read().is_whole);
    std::fs::remove_dir_all(scratch).unwrap();
}

#[test]
fn asking_again_has_an_end() {
    let scratch = tempdir();
    let (incoming, _) = begin(&scratch);
    let mut asked = 0;
    for _ in 0..100 {
        incoming.expect(SegmentIndex(0), &[hash(0)]).unwrap();
        asked += incoming.arrived(SegmentIndex(0), hash(1)).unwrap().again.len();
    }
    assert_eq!(asked, MOST_REPEATED as usize);
    std::fs::remove_dir_all(scratch).unwrap();
}

#[test]
fn hashes_of_what_is_not_sent_are_not_kept_for_ever() {
    let scratch = tempdir();
    let file = Geometry::new(SEGMENT << 20).unwrap();
    let (small, _) = begin(&scratch);
    let draft = small.plan.open(&Token::random().unwrap(), None).unwrap();
    let incoming = Incoming::new(EntryId(2), small.plan.clone(), file, (draft, slot()), None);
    let tell = |at: usize| incoming.expect(SegmentIndex((at * 64) as u32), &[hash(1); 64]);
    let told = (0..=MOST_AHEAD / 64).take_while(|&at| tell(at).is_ok()).count();
    assert_eq!(told, MOST_AHEAD / 64);
    std::fs::remove_dir_all(scratch).unwrap();
}

fn tempdir() -> std::path::PathBuf {
    let name = format!("hikyaku-incoming-{:?}", std::thread::current().id());
    let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}
