//! A file is whole when every segment is proven and the sender has read it to its end: once, and in
//! whatever order that happens.

use super::*;
use hikyaku_transfer::SEGMENT;

fn begin(scratch: &std::path::Path) -> (Incoming, Geometry) {
    let dir = Arc::new(Dir::open(scratch).unwrap());
    let file = Geometry::new(2 * SEGMENT + 5).unwrap();
    let path = PeerPath::new(b"big").unwrap();
    let name = path.name();
    let plan = Plan {
        path,
        dir,
        name,
        mode: 0o644,
        modified: (1, 2),
        size: file.size(),
        attributes: Vec::new(),
        manner: Manner::Renamed,
    };
    (Incoming::begin(EntryId(1), plan, file, None, None).unwrap().0, file)
}

fn hash(n: u8) -> SegmentHash {
    SegmentHash([n; 32])
}

#[test]
fn it_is_whole_once_in_any_order() {
    let scratch = tempdir();
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let (incoming, _) = begin(&scratch);
        let mut whole = 0;
        for step in order {
            let news = match step {
                0 => incoming.expect(SegmentIndex(0), &[hash(0), hash(1), hash(2)]),
                1 => incoming.read(),
                2 => {
                    let first = incoming.arrived(SegmentIndex(2), hash(2));
                    assert!(first.whole.is_none());
                    incoming.arrived(SegmentIndex(0), hash(0))
                }
                _ => incoming.arrived(SegmentIndex(1), hash(1)),
            };
            assert!(news.again.is_empty());
            whole += usize::from(news.whole.is_some());
        }
        assert_eq!(whole, 1, "{order:?}");
        assert!(incoming.is_over() && incoming.read().whole.is_none());
    }
    std::fs::remove_dir_all(scratch).unwrap();
}

#[test]
fn wrong_bytes_are_asked_for_again_and_never_named() {
    let scratch = tempdir();
    let (incoming, _) = begin(&scratch);
    incoming.expect(SegmentIndex(0), &[hash(0), hash(1), hash(2)]);
    incoming.read();
    assert_eq!(incoming.arrived(SegmentIndex(1), hash(9)).again, [SegmentIndex(1)]);
    incoming.arrived(SegmentIndex(0), hash(0));
    assert!(incoming.arrived(SegmentIndex(2), hash(2)).whole.is_none(), "one is missing");
    // The repetition: hashes, data and the end again.
    incoming.expect(SegmentIndex(1), &[hash(1)]);
    assert!(incoming.arrived(SegmentIndex(1), hash(1)).whole.is_none());
    assert!(incoming.read().whole.is_some());
    std::fs::remove_dir_all(scratch).unwrap();
}

#[test]
fn asking_again_has_an_end() {
    let scratch = tempdir();
    let (incoming, _) = begin(&scratch);
    let mut asked = 0;
    for _ in 0..100 {
        incoming.expect(SegmentIndex(0), &[hash(0)]);
        asked += incoming.arrived(SegmentIndex(0), hash(1)).again.len();
    }
    assert_eq!(asked, MOST_REPEATED as usize);
    std::fs::remove_dir_all(scratch).unwrap();
}

fn tempdir() -> std::path::PathBuf {
    let name = format!("hikyaku-incoming-{:?}", std::thread::current().id());
    let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}
