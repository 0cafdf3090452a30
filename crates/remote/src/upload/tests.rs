//! Uploads to a server over a pair of sockets.

use super::*;
use crate::message::{SMALL_BYTES_MAX, Taken};
use crate::tests::{answer, path, put, random, with_limits};
use crate::{Limits, Writes};
use hikyaku_net::CloseReason;
use hikyaku_store::{
    Access, ErrorKind, Fault, Faulty, Kind, Memory, Operation, Store, Time, Version, When,
};

const TIME: Time = Time { secs: 1_000_000, nanos: 7 };
const WRITABLE: Writes = Writes::Allowed;

fn new(at: &str, size: usize) -> NewFile {
    let (path, mode) = (at.as_bytes().to_vec(), Some(0o6751));
    NewFile { path, size: size as u64, mode, modified: Some(TIME), taken: Taken::Replaced }
}

/// Runs `work` with a stream of uploads to a server of `store`.
fn with(
    store: Arc<dyn Store>,
    writes: Writes,
    work: impl FnOnce(&Client, &Uploads),
) -> Option<CloseReason> {
    with_limits(store, Limits { writes, ..Limits::default() }, |client| {
        work(client, &client.uploads().unwrap());
    })
}

fn kind<T>(answer: Result<T, RemoteError>) -> Option<ErrorKind> {
    match answer {
        Ok(_) => None,
        Err(RemoteError::Refused { kind, .. }) => Some(kind),
        Err(other) => panic!("{other}"),
    }
}

fn get(store: &dyn Store, at: &str) -> Option<Vec<u8>> {
    let open = store.open(&path(at), Access::Read).ok()?;
    let mut bytes = vec![0; open.found().unwrap().size as usize];
    open.read_at(0, &mut bytes).unwrap();
    Some(bytes)
}

/// Sends a file as a client does, whatever its size is.
fn send(uploads: &Uploads, file: NewFile, bytes: &[u8]) -> Result<Found, RemoteError> {
    if bytes.len() as u64 <= SMALL_BYTES_MAX {
        return answer(|done| uploads.small(file, bytes, done));
    }
    let size = file.size;
    let draft = uploads.begin(file, size, drop);
    pieces(uploads, draft, bytes);
    answer(|done| uploads.finish(draft, done))
}

fn pieces(uploads: &Uploads, draft: RequestId, bytes: &[u8]) {
    for (at, piece) in (0..).step_by(PIECE).zip(bytes.chunks(PIECE)) {
        uploads.bytes(draft, at, piece, drop);
    }
}

const PIECE: usize = SMALL_BYTES_MAX as usize;

// spec: store-put-1
// spec: store-put-2
#[test]
fn files_of_all_sizes_arrive_with_their_metadata() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    put(&*store, "2", b"an older version");
    with(store.clone(), WRITABLE, |_, uploads| {
        for (n, size) in [0, 1, PIECE, PIECE + 1, 3 * PIECE + 5].into_iter().enumerate() {
            let (name, bytes) = (n.to_string(), random(n as u64, size));
            let found = send(uploads, new(&name, size), &bytes).unwrap();
            assert!(get(&*store, &name) == Some(bytes), "{size}");
            assert_eq!(found, store.look(&path(&name)).unwrap());
            assert_eq!((found.size, found.modified), (size as u64, TIME));
            assert_eq!(found.mode, 0o751, "no set-id bits");
        }
    });
}

#[test]
fn many_small_files_are_sent_without_waiting_for_any() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    with(store.clone(), WRITABLE, |_, uploads| {
        let (say, hear) = std::sync::mpsc::channel();
        for n in 0..1000 {
            let (bytes, say) = (random(n, 300), say.clone());
            let done = move |named: Result<Found, _>| say.send(named.is_ok()).unwrap();
            uploads.small(new(&n.to_string(), bytes.len()), &bytes, done);
        }
        assert!((0..1000).all(|_| hear.recv_timeout(std::time::Duration::from_secs(20)).unwrap()));
        assert!((0..1000).all(|n| get(&*store, &n.to_string()) == Some(random(n, 300))));
    });
}

// spec: store-feature-4
#[test]
fn a_server_that_may_not_be_written_to_refuses_uploads() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    with(store.clone(), Writes::Refused, |_, uploads| {
        for size in [3, PIECE + 1] {
            let sent = send(uploads, new("a", size), &random(1, size));
            assert_eq!(kind(sent), Some(ErrorKind::ReadOnly));
        }
    });
    assert!(store.look(&path("a")).is_err());
}

// spec: store-put-3
#[test]
fn bytes_that_are_not_what_their_hash_says_are_not_written() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    with(store.clone(), WRITABLE, |_, uploads| {
        let hash = FileHash(*blake3::hash(b"other").as_bytes());
        let small = answer(|done| {
            uploads.ask(Put::Small { file: new("a", 5), hash }, b"bytes", done, found);
        });
        assert_eq!(kind(small), Some(ErrorKind::Damaged));
        let draft = uploads.begin(new("a", PIECE), 0, drop);
        let put = Put::Bytes { draft, at: 0, length: 5, hash };
        let piece = answer(|done| {
            uploads.ask(put, b"bytes", done, nothing);
        });
        assert_eq!(kind(piece), Some(ErrorKind::Damaged));
        // The draft is lost, whatever comes afterwards.
        let later = answer(|done| uploads.bytes(draft, 0, &random(1, PIECE), done));
        assert_eq!(kind(later), Some(ErrorKind::Damaged));
        assert_eq!(kind(answer(|done| uploads.finish(draft, done))), Some(ErrorKind::Damaged));
    });
    assert!(store.look(&path("a")).is_err());
}

// spec: store-put-4
#[test]
fn a_file_of_which_bytes_are_missing_gets_no_name() {
    let invalid = Some(ErrorKind::System(22));
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    put(&*store, "a", b"old");
    with(store.clone(), WRITABLE, |_, uploads| {
        let bytes = random(1, 2 * PIECE);
        // The last piece is missing.
        let draft = uploads.begin(new("a", 3 * PIECE), 0, drop);
        pieces(uploads, draft, &bytes);
        assert_eq!(kind(answer(|done| uploads.finish(draft, done))), invalid);
        // One is left out.
        let draft = uploads.begin(new("a", 3 * PIECE), 0, drop);
        let skipped = answer(|done| uploads.bytes(draft, PIECE as u64, &bytes[..PIECE], done));
        assert_eq!(kind(skipped), invalid);
        uploads.discard(draft);
        // One comes twice.
        let draft = uploads.begin(new("a", 2 * PIECE), 0, drop);
        uploads.bytes(draft, 0, &bytes[..PIECE], drop);
        let again = answer(|done| uploads.bytes(draft, 0, &bytes[..PIECE], done));
        assert_eq!(kind(again), invalid);
        uploads.discard(draft);
        // There are more than the file was to have.
        let draft = uploads.begin(new("a", PIECE + 1), 0, drop);
        pieces(uploads, draft, &bytes);
        assert_eq!(kind(answer(|done| uploads.finish(draft, done))), invalid);
    });
    assert_eq!(get(&*store, "a").unwrap(), b"old");
}

// spec: store-put-2
#[test]
fn sizes_that_no_file_can_have_are_refused_before_bytes_are_sent() {
    let store: Arc<dyn Store> = Arc::new(Memory::with_room(1 << 20));
    store.make_dir(&path("d"), 0o755).unwrap();
    put(&*store, "a", b"old");
    with(store.clone(), WRITABLE, |_, uploads| {
        let begin = |file: NewFile| {
            let size = file.size;
            let mut draft = None;
            let begun = answer(|done| draft = Some(uploads.begin(file, size, done)));
            uploads.discard(draft.unwrap());
            kind(begun)
        };
        assert_eq!(begin(NewFile { size: u64::MAX, ..new("b", 0) }), Some(ErrorKind::TooLarge));
        assert_eq!(begin(NewFile { size: 1 << 30, ..new("b", 0) }), Some(ErrorKind::NoSpace));
        assert_eq!(begin(new("d", PIECE + 1)), Some(ErrorKind::IsDir));
        assert_eq!(begin(new("nothing/b", PIECE + 1)), Some(ErrorKind::NotFound));
        assert_eq!(begin(new("../b", PIECE + 1)), Some(ErrorKind::BadName));
        let kept = NewFile { taken: Taken::Kept, ..new("a", PIECE + 1) };
        assert_eq!(begin(kept), Some(ErrorKind::Exists));
        let long = random(1, PIECE + 1);
        let sent = answer(|done| uploads.small(new("b", long.len()), &long, done));
        assert_eq!(kind(sent), Some(ErrorKind::System(22)));
    });
    assert_eq!(get(&*store, "a").unwrap(), b"old");
    assert!(store.look(&path("b")).is_err());
}

// spec: store-put-3
#[test]
fn holes_are_told_and_read_as_zeros() {
    let store: Arc<dyn Store> = Arc::new(Memory::with_room(1 << 20));
    let size = 1 << 40;
    with(store.clone(), WRITABLE, |_, uploads| {
        let draft = uploads.begin(NewFile { size, ..new("a", 0) }, 10, drop);
        uploads.zeros(draft, 0, 1000, drop);
        uploads.bytes(draft, 1000, b"0123456789", drop);
        uploads.zeros(draft, 1010, size - 1010, drop);
        let found = answer(|done| uploads.finish(draft, done)).unwrap();
        assert_eq!(found.size, size);
        let mut bytes = [1; 12];
        let open = store.open(&path("a"), Access::Read).unwrap();
        open.read_at(999, &mut bytes).unwrap();
        assert_eq!(&bytes, b"\x000123456789\0");
        for (at, length) in [(1, 5), (0, 11), (0, u64::MAX)] {
            let draft = uploads.begin(new("a", 10), 0, drop);
            let told = answer(|done| uploads.zeros(draft, at, length, done));
            assert_eq!(kind(told), Some(ErrorKind::System(22)));
            assert_eq!(
                kind(answer(|done| uploads.finish(draft, done))),
                Some(ErrorKind::System(22))
            );
        }
    });
}

#[test]
fn a_full_disk_ends_one_file_and_leaves_the_old_one() {
    let store = Arc::new(Faulty::new(Memory::default()));
    put(&*store, "a", b"old");
    let second = When { operation: Operation::Write, path: Some(path("a")), nth: 2, times: 1 };
    store.add(second, Fault::HalfWrite(ErrorKind::NoSpace));
    with(store.clone(), WRITABLE, |_, uploads| {
        let bytes = random(1, 3 * PIECE);
        let sent = send(uploads, new("a", bytes.len()), &bytes);
        assert_eq!(kind(sent), Some(ErrorKind::NoSpace));
        assert_eq!(get(&*store, "a").unwrap(), b"old");
        send(uploads, new("a", bytes.len()), &bytes).unwrap();
        assert!(get(&*store, "a").unwrap() == bytes);
    });
    assert_eq!(store.struck(), 1);
}

// spec: store-put-4
#[test]
fn a_file_that_does_not_reach_the_disk_gets_no_name() {
    let store = Arc::new(Faulty::new(Memory::default()));
    put(&*store, "a", b"old");
    let twice = When { operation: Operation::SyncFile, path: None, nth: 1, times: 2 };
    store.add(twice, Fault::Error(ErrorKind::System(5)));
    with(store.clone(), WRITABLE, |_, uploads| {
        for size in [10, PIECE + 10] {
            let sent = send(uploads, new("a", size), &random(1, size));
            assert_eq!(kind(sent), Some(ErrorKind::System(5)));
            assert_eq!(get(&*store, "a").unwrap(), b"old");
        }
    });
}

// spec: store-put-5
#[test]
fn nothing_is_left_of_what_was_not_finished() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    store.make_dir(&path("d"), 0o755).unwrap();
    let begun = |uploads: &Uploads| {
        let draft = uploads.begin(new("d/a", 2 * PIECE), 0, drop);
        answer(|done| uploads.bytes(draft, 0, &random(1, PIECE), done)).unwrap();
        // A directory with a draft in it is not empty.
        assert!(store.remove(&path("d"), Kind::Dir).is_err());
        draft
    };
    with(store.clone(), WRITABLE, |client, uploads| {
        let draft = begun(uploads);
        uploads.discard(draft);
        let again = client.uploads().unwrap();
        begun(&again);
        drop(again);
        begun(uploads);
    });
    store.remove(&path("d"), Kind::Dir).unwrap();
}

// spec: store-put-5
#[test]
fn a_client_that_begins_too_many_files_is_sent_away() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let limits = Limits { writes: WRITABLE, drafts: 4, ..Limits::default() };
    let reason = with_limits(store.clone(), limits, |client| {
        let uploads = client.uploads().unwrap();
        let begin = |n: usize| {
            answer(|done| {
                uploads.begin(new(&n.to_string(), 1), 0, done);
            })
        };
        for n in 0..4 {
            begin(n).unwrap();
        }
        assert!(begin(4).unwrap_err().is_of_server());
    });
    // Whose word ends the connection: the server's, or that of the client, whose stream has ended before.
    let is_ended = matches!(reason, Some(CloseReason::Local | CloseReason::Peer { .. }));
    assert!(is_ended, "{reason:?}");
    // A draft that failed counts as well, until the client ends it.
    with_limits(store, limits, |client| {
        let uploads = client.uploads().unwrap();
        for n in 0..9 {
            let begun = answer(|done| {
                let draft = uploads.begin(new("nothing/a", n), 0, done);
                uploads.discard(draft);
            });
            assert_eq!(kind(begun), Some(ErrorKind::NotFound));
        }
    });
}

#[test]
fn bytes_of_a_file_that_was_not_begun_end_the_connection() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    with(store, WRITABLE, |_, uploads| {
        let sent = answer(|done| uploads.bytes(RequestId(77), 0, b"x", done));
        assert!(sent.unwrap_err().is_of_server());
    });
}

// spec: store-feature-10
// spec: store-put-6
#[test]
fn a_file_gets_its_size_and_metadata_after_its_bytes() {
    let store: Arc<dyn Store> = Arc::new(Memory::with_room(1 << 30));
    put(&*store, "a", b"old");
    store.make_dir(&path("d"), 0o755).unwrap();
    with(store.clone(), WRITABLE, |_, uploads| {
        let bytes = random(1, 2 * PIECE + 5);
        for expected in [None, Some(1), Some(1 << 20)] {
            let draft = uploads.begin_unsized(&path("a"), expected, drop);
            pieces(uploads, draft, &bytes);
            uploads.zeros(draft, bytes.len() as u64, 1000, drop);
            let file = new("a", bytes.len() + 1000);
            let found = answer(|done| uploads.finish_as(draft, file, done)).unwrap();
            assert_eq!((found.size, found.modified), (bytes.len() as u64 + 1000, TIME));
            assert_eq!(found.mode, 0o751, "no set-id bits");
            assert!(get(&*store, "a").unwrap() == [&bytes[..], &[0; 1000]].concat());
        }
        let begin = |at: &str, expected| {
            let mut draft = None;
            let done =
                answer(|done| draft = Some(uploads.begin_unsized(&path(at), expected, done)));
            uploads.discard(draft.unwrap());
            kind(done)
        };
        assert_eq!(begin("a", Some(1 << 40)), Some(ErrorKind::NoSpace));
        assert_eq!(begin("d", None), Some(ErrorKind::IsDir));
        assert_eq!(begin("nothing/a", None), Some(ErrorKind::NotFound));
        let draft = uploads.begin_unsized(&path("a"), None, drop);
        uploads.bytes(draft, 0, b"x", drop);
        let told = answer(|done| uploads.zeros(draft, 1, u64::MAX - 1, done));
        assert_eq!(kind(told), Some(ErrorKind::TooLarge));
        uploads.discard(draft);
    });
    with(store, Writes::Refused, |_, uploads| {
        let begun = answer(|done| {
            uploads.begin_unsized(&path("b"), None, done);
        });
        assert_eq!(kind(begun), Some(ErrorKind::ReadOnly));
    });
}

// spec: store-put-7
#[test]
fn a_draft_gets_the_name_only_if_its_end_fits_its_begin() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    put(&*store, "a", b"old");
    with(store.clone(), WRITABLE, |_, uploads| {
        let begun = || {
            let draft = uploads.begin_unsized(&path("a"), None, drop);
            uploads.bytes(draft, 0, b"new", drop);
            draft
        };
        let finish = |draft, file| kind(answer(|done| uploads.finish_as(draft, file, done)));
        let invalid = Some(ErrorKind::System(22));
        for size in [2, 4] {
            assert_eq!(finish(begun(), new("a", size)), invalid);
        }
        assert_eq!(finish(begun(), new("b", 3)), invalid);
        assert_eq!(kind(answer(|done| uploads.finish(begun(), done))), invalid);
        let draft = uploads.begin(new("a", 3), 3, drop);
        uploads.bytes(draft, 0, b"new", drop);
        assert_eq!(finish(draft, new("a", 3)), invalid);
        let kept = NewFile { taken: Taken::Kept, ..new("a", 3) };
        assert_eq!(finish(begun(), kept), Some(ErrorKind::Exists));
        let version = store.look(&path("a")).unwrap().version.unwrap();
        let only = |version| NewFile { taken: Taken::ReplacedIf(version), ..new("a", 3) };
        assert_eq!(finish(begun(), only(Version([7; 32]))), Some(ErrorKind::Changed));
        assert_eq!(get(&*store, "a").unwrap(), b"old");
        assert_eq!(finish(begun(), only(version)), None);
        assert_eq!(get(&*store, "a").unwrap(), b"new");
    });
}
