//! A client and a server over a pair of sockets.

use super::*;
use hikyaku_net::{CloseReason, Side};
use hikyaku_pipes::{Config, Pipe};
use hikyaku_reach::Connection;
use hikyaku_store::{
    ErrorKind, Fault, Faulty, Finish, Make, Memory, Naming, Operation, Store, StorePath, When,
};
use hikyaku_transfer::SEGMENT;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

pub(crate) fn connections() -> (Connection, Connection) {
    let (a, b) = UnixStream::pair().unwrap();
    let end = |socket: UnixStream, side| {
        let pipe = Pipe::new(socket.try_clone().unwrap(), socket);
        let pipes = hikyaku_pipes::Connection::new(vec![pipe], side, Config::default()).unwrap();
        Connection::from(pipes)
    };
    (end(a, Side::Client), end(b, Side::Server))
}

/// Runs `work` with a client of a server of `store`.
fn with(store: Arc<dyn Store>, work: impl FnOnce(&Client)) -> Option<CloseReason> {
    with_limits(store, Limits::default(), work)
}

pub(crate) fn with_limits(
    store: Arc<dyn Store>,
    limits: Limits,
    work: impl FnOnce(&Client),
) -> Option<CloseReason> {
    let (ours, theirs) = connections();
    thread::scope(|scope| {
        let server = Server::new(store, limits);
        let served = scope.spawn(move || server.attend(theirs).unwrap());
        let client = Client::new(ours).unwrap();
        work(&client);
        client.connection().close(hikyaku_net::code::DONE, "");
        served.join().unwrap()
    })
}

pub(crate) fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

pub(crate) fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| rng.u8(..)).collect()
}

pub(crate) fn put(store: &dyn Store, at: &str, bytes: &[u8]) {
    let draft = store.create(&path(at), &Make::default()).unwrap();
    draft.write_at(0, bytes).unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
}

fn seen(store: &dyn Store, at: &str) -> Seen {
    Seen::from(&store.look(&path(at)).unwrap())
}

fn give(store: &dyn Store, at: &str, ranges: &[(u64, u64)]) -> Give {
    let (path, ranges) = (at.as_bytes().to_vec(), ranges.to_vec());
    Give { path, seen: seen(store, at), ranges, class: Class::Bulk }
}

#[test]
fn a_name_and_a_tree_are_told() {
    let store = Memory::default();
    store.make_dir(&path("a"), 0o755).unwrap();
    store.make_dir(&path("a/b"), 0o755).unwrap();
    store.make_link(&path("a/link"), b"b").unwrap();
    for n in 0..2000 {
        put(&store, &format!("a/b/file {n}"), b"x");
    }
    with(Arc::new(store), |client| {
        assert_eq!(client.look(&path("a/b/file 7")).unwrap().size, 1);
        let refused = client.look(&path("nothing")).unwrap_err();
        assert!(matches!(refused, RemoteError::Refused { kind: ErrorKind::NotFound, .. }));
        let mut all = Vec::new();
        let each = |_, entry| {
            all.push(entry);
            ControlFlow::Continue(())
        };
        client.walk(&path("a"), each).unwrap();
        assert_eq!(all.len(), 2003);
        let at = |name: &[u8]| all.iter().position(|entry| entry.path == name).unwrap();
        assert_eq!(at(b"a"), 0);
        assert!(at(b"a/b") < at(b"a/b/file 1999"));
        assert_eq!(all[at(b"a/link")].link.as_deref(), Some(&b"b"[..]));
        assert!(client.walk(&path("nothing"), |_, _| ControlFlow::Break(())).is_err());
    });
}

#[test]
fn ranges_of_many_files_come_at_once_and_proven() {
    let store = Memory::default();
    let size = 5 * SEGMENT as usize + 77;
    let files: Vec<Vec<u8>> = (0..12).map(|n| random(n, size)).collect();
    for (n, bytes) in files.iter().enumerate() {
        put(&store, &format!("{n}"), bytes);
    }
    let asked = |n: usize| {
        give(&store, &format!("{n}"), &[(SEGMENT, 3 * SEGMENT), (4 * SEGMENT, size as u64)])
    };
    let asked: Vec<Give> = (0..12).map(asked).collect();
    with(Arc::new(store), |client| {
        thread::scope(|scope| {
            for (asked, bytes) in asked.iter().zip(&files) {
                scope.spawn(move || {
                    let mut found = Vec::new();
                    let mut arrived = 0;
                    let incoming = client.give(asked.clone()).unwrap();
                    let outcome = incoming.receive(
                        |bytes| arrived += bytes,
                        |segment| {
                            let at = segment.offset as usize;
                            assert!(bytes[at..at + segment.bytes.len()] == *segment.bytes);
                            found.push(segment.index.0);
                        },
                    );
                    assert_eq!(outcome.unwrap(), Outcome::default());
                    found.sort_unstable();
                    assert_eq!(found, [1, 2, 4, 5]);
                    assert_eq!(arrived, 3 * SEGMENT + 77);
                });
            }
        });
    });
}

// spec: store-pick-1
// spec: store-pick-2
#[test]
fn any_ranges_of_a_file_are_picked_and_proven() {
    let store = Memory::default();
    let size = 5 * SEGMENT + 77;
    let bytes = random(9, size as usize);
    put(&store, "a", &bytes);
    let step = 3001;
    let rows = (0..size / step).map(|row| (row * step + 7, row * step + 1500)).collect::<Vec<_>>();
    let wanted: Vec<u8> =
        rows.iter().flat_map(|&(from, to)| &bytes[from as usize..to as usize]).copied().collect();
    let asked = give(&store, "a", &rows);
    let refused = [&[(0, size + 1)][..], &[(7, 7)], &[(9, 10), (0, 1)]];
    let refused = refused.map(|ranges| give(&store, "a", ranges));
    with(Arc::new(store), |client| {
        let mut found = vec![0; wanted.len()];
        let outcome = client.pick(asked.clone()).unwrap().receive(
            |_| {},
            |segment| {
                let at = segment.offset as usize;
                found[at..at + segment.bytes.len()].copy_from_slice(segment.bytes);
            },
        );
        assert_eq!(outcome.unwrap(), Outcome::default());
        assert!(found == wanted);
        for asked in refused {
            assert!(client.pick(asked).is_err());
        }
        let changed = Seen { size: size + 1, ..asked.seen };
        let other = client.pick(Give { seen: changed, ..asked }).unwrap().receive(|_| {}, |_| {});
        assert!(matches!(other, Err(RemoteError::Refused { kind: ErrorKind::Changed, .. })));
    });
}

#[test]
fn small_files_come_together() {
    let store = Memory::default();
    let files: Vec<Vec<u8>> = (0..1000).map(|n| random(n, n as usize % 300)).collect();
    let mut wanted = Vec::new();
    for (n, bytes) in files.iter().enumerate() {
        let name = format!("{n}");
        put(&store, &name, bytes);
        wanted.push(Wanted { path: name.clone().into_bytes(), seen: seen(&store, &name) });
    }
    // One of another size, and one that is not there.
    wanted[5].seen.size += 1;
    wanted[6].path = b"nothing".to_vec();
    with(Arc::new(store), |client| {
        let mut found = 0;
        let each = |index: usize, content: Result<Vec<u8>, ErrorKind>| match index {
            5 => assert_eq!(content, Err(ErrorKind::Changed)),
            6 => assert_eq!(content, Err(ErrorKind::NotFound)),
            _ => {
                assert!(content.unwrap() == files[index]);
                found += 1;
            }
        };
        client.give_many(wanted, |_| {}, each).unwrap();
        assert_eq!(found, 998);
    });
}

#[test]
fn a_file_that_changed_is_refused() {
    let store = Memory::default();
    put(&store, "a", &random(1, 3 * SEGMENT as usize));
    let mut old = give(&store, "a", &[(0, 3 * SEGMENT)]);
    old.seen.modified.secs -= 1;
    with(Arc::new(store), |client| {
        let error = client.give(old).unwrap().receive(|_| {}, |_| {}).unwrap_err();
        assert!(matches!(error, RemoteError::Refused { kind: ErrorKind::Changed, .. }), "{error}");
    });
}

#[test]
fn a_request_that_is_cut_ends_with_what_was_sent() {
    let store = Memory::default();
    let size = 200 * SEGMENT;
    put(&store, "a", &vec![7; size as usize]);
    let asked = give(&store, "a", &[(0, size)]);
    with(Arc::new(store), |client| {
        let incoming = client.give(asked).unwrap();
        let id = incoming.id();
        let mut found = 0u64;
        let outcome = incoming.receive(
            |_| {},
            |_| {
                if found == 0 {
                    client.cut(id, 0);
                }
                found += 1;
            },
        );
        let missing = outcome.unwrap().missing;
        assert!(!missing.is_empty(), "all of it came");
        assert_eq!(missing.len() as u64 + found, 200);
    });
}

#[test]
fn an_error_of_the_store_is_told_and_others_go_on() {
    let memory = Memory::default();
    let bytes = random(3, 4 * SEGMENT as usize);
    put(&memory, "good", &bytes);
    put(&memory, "bad", &bytes);
    let (good, bad) =
        (give(&memory, "good", &[(0, 4 * SEGMENT)]), give(&memory, "bad", &[(0, 4 * SEGMENT)]));
    let when = When { operation: Operation::Read, path: Some(path("bad")), nth: 2, times: 1 };
    let store = Faulty::new(memory);
    store.add(when, Fault::Error(ErrorKind::System(5)));
    with(Arc::new(store), |client| {
        let mut came = 0;
        let error = client.give(bad).unwrap().receive(|_| {}, |_| came += 1).unwrap_err();
        assert!(
            matches!(error, RemoteError::Refused { kind: ErrorKind::System(5), .. }),
            "{error}"
        );
        assert!(came <= 1);
        let mut came = 0;
        client.give(good).unwrap().receive(|_| {}, |_| came += 1).unwrap();
        assert_eq!(came, 4);
    });
}

#[test]
fn a_server_that_dies_ends_all_requests() {
    let store = Memory::default();
    put(&store, "a", &vec![7; 50 * SEGMENT as usize]);
    let asked = give(&store, "a", &[(0, 50 * SEGMENT)]);
    let (ours, theirs) = connections();
    let server = Server::new(Arc::new(store), Limits::default());
    let killed = theirs.clone();
    let served = thread::spawn(move || server.attend(theirs));
    let client = Client::new(ours).unwrap();
    let incoming = client.give(asked).unwrap();
    let outcome = incoming.receive(|_| {}, |_| killed.close(1, "gone"));
    assert!(outcome.unwrap_err().is_of_server());
    assert!(client.look(&StorePath::ROOT).unwrap_err().is_of_server());
    served.join().unwrap().unwrap();
}

// spec: store-feature-2
#[test]
fn a_daemon_and_a_client_agree_on_a_service() {
    use hikyaku_reach::daemon::{NoService, Offered, PICKS, STORE, ask, offer};
    use std::time::Duration;
    let second = Duration::from_secs(20);
    let (ours, theirs) = connections();
    let offered = &[STORE];
    thread::scope(|scope| {
        let (first, other) = (theirs.clone(), theirs.clone());
        let heard = scope.spawn(move || offer(&first, offered, second).map(|(_, version)| version));
        let agreed = ask(&ours, &STORE, second).unwrap();
        assert_eq!(agreed.protocol, 1);
        assert!(agreed.features.contains(PICKS));
        assert_eq!(heard.join().unwrap(), Ok(1));
        let heard = scope.spawn(move || offer(&other, offered, second).is_err());
        let nothing = Offered { name: "nothing", ..STORE };
        let refused = ask(&ours, &nothing, second);
        assert!(matches!(refused, Err(NoService::Refused(text)) if text.contains("offers store")));
        assert!(heard.join().unwrap());
    });
    let (silent, _theirs) = connections();
    let short = Duration::from_millis(30);
    assert_eq!(ask(&silent, &STORE, short), Err(NoService::Silent(short)));
}

#[test]
fn a_client_that_asks_for_too_much_at_once_is_sent_away() {
    let memory = Memory::default();
    put(&memory, "a", &random(1, SEGMENT as usize));
    let asked = give(&memory, "a", &[(0, SEGMENT)]);
    let store = Faulty::new(memory);
    let slow = When { operation: Operation::Read, path: None, nth: 1, times: 10 };
    store.add(slow, Fault::Delay(std::time::Duration::from_millis(200)));
    let (ours, theirs) = connections();
    thread::scope(|scope| {
        let limits = Limits { gives: 1, waiting: 3, ..Limits::default() };
        let server = Server::new(Arc::new(store), limits);
        let served = scope.spawn(move || server.attend(theirs).unwrap());
        let client = Client::new(ours).unwrap();
        let all: Vec<_> = (0..20).map_while(|_| client.give(asked.clone()).ok()).collect();
        let errors = all.into_iter().filter_map(|one| one.receive(|_| {}, |_| {}).err());
        assert!(errors.last().is_some_and(|error| error.is_of_server()));
        assert!(served.join().unwrap().is_some());
    });
}

/// Calls `ask` with what takes the answer, and waits for it.
pub(crate) fn answer<T: Send + 'static>(
    ask: impl FnOnce(Box<dyn FnOnce(Result<T, RemoteError>) + Send>),
) -> Result<T, RemoteError> {
    let (give, take) = std::sync::mpsc::channel();
    ask(Box::new(move |answer| give.send(answer).unwrap()));
    take.recv_timeout(std::time::Duration::from_secs(20)).unwrap()
}

// spec: store-piece-1
// spec: store-piece-2
#[test]
fn a_short_range_comes_proven_and_only_of_the_expected_file() {
    let store = Memory::default();
    let bytes = random(1, 700_000);
    put(&store, "a", &bytes);
    let good =
        Piece { path: b"a".to_vec(), seen: seen(&store, "a"), from: 300_001, length: 200_000 };
    with(Arc::new(store), |client| {
        let ask = |piece: Piece| answer(|done| client.piece_then(piece, done));
        assert!(ask(good.clone()).unwrap() == bytes[300_001..500_001]);
        let mut other = good.clone();
        other.seen.size += 1;
        let mut beyond = good.clone();
        beyond.from = 600_000;
        let long = Piece { from: 0, length: SMALL_BYTES_MAX as u32 + 1, ..good.clone() };
        let huge = Piece { from: u64::MAX, ..good };
        let kind = |piece| match ask(piece) {
            Err(RemoteError::Refused { kind, .. }) => kind,
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(other), ErrorKind::Changed);
        for piece in [beyond, long, huge] {
            assert_eq!(kind(piece), ErrorKind::System(22));
        }
    });
}

// spec: store-piece-2
#[test]
fn a_piece_that_is_not_what_was_asked_for_is_not_handed_on() {
    use hikyaku_reach::talk;
    use hikyaku_transfer::{FileHash, decode};
    let right = FileHash(*blake3::hash(b"12345").as_bytes());
    for (bytes, hash, is_right) in [
        (&b"12345"[..], right, true),
        (b"12346", right, false),
        (b"1234", FileHash(*blake3::hash(b"1234").as_bytes()), false),
    ] {
        let (ours, theirs) = connections();
        let server = thread::spawn(move || {
            use hikyaku_net::blocking::block_on;
            let (mut incoming, out, _writer) =
                talk(block_on(theirs.accept_stream()).unwrap()).unwrap();
            let (asked, _) = decode::<Asked>(incoming.hear().unwrap().unwrap()).unwrap();
            let reply = Reply::Piece { length: bytes.len() as u32, hash };
            out.say_with(&Answer { id: asked.id, reply }, bytes).unwrap();
            let _ = block_on(theirs.closed());
        });
        let client = Client::new(ours).unwrap();
        let seen = Seen { size: 5, modified: Default::default() };
        let piece = Piece { path: b"a".to_vec(), seen, from: 0, length: 5 };
        let came = answer(|done| client.piece_then(piece, done));
        assert_eq!(came.is_ok(), is_right, "{came:?}");
        client.connection().close(hikyaku_net::code::DONE, "");
        server.join().unwrap();
    }
}

/// Everything that a listing tells, by directory.
fn listing(client: &Client, at: &str, ahead: u32) -> Result<Vec<(String, usize)>, RemoteError> {
    let (give, take) = std::sync::mpsc::channel();
    client.list_then(&path(at), ahead, move |listing| give.send(listing).unwrap());
    let (mut told, mut open) = (Vec::new(), 0);
    loop {
        match take.recv_timeout(std::time::Duration::from_secs(20)).unwrap()? {
            Listing::Leased { .. } => panic!("a lease"),
            Listing::End => return Ok(told),
            Listing::Entries { dir, entries, is_last } => {
                open += entries.len();
                if is_last {
                    told.push((dir.to_string(), std::mem::take(&mut open)));
                }
            }
        }
    }
}

// spec: store-list-1
#[test]
fn a_directory_is_listed_with_those_below_it_as_far_as_wanted() {
    let store = Memory::default();
    for dir in ["a", "a/b", "a/c", "a/b/deep"] {
        store.make_dir(&path(dir), 0o755).unwrap();
    }
    (0..3000).for_each(|n| put(&store, &format!("a/b/{n}"), b""));
    put(&store, "a/c/one", b"");
    store.make_link(&path("a/link"), b"b").unwrap();
    with(Arc::new(store), |client| {
        let told = |ahead| {
            let mut told = listing(client, "a", ahead).unwrap();
            told[1..].sort();
            told.into_iter().map(|(dir, count)| format!("{dir} {count}")).collect::<Vec<_>>()
        };
        assert_eq!(told(0), ["a 3"]);
        let all = ["a 3", "a/b 3001", "a/b/deep 0", "a/c 1"];
        assert_eq!(told(u32::MAX), all);
        assert!(told(4).len() < 4);
        let refused = listing(client, "nothing", 10).unwrap_err();
        assert!(matches!(refused, RemoteError::Refused { kind: ErrorKind::NotFound, .. }));
        let text = answer(|done| client.read_link_then(&path("a/link"), done));
        assert_eq!(text.unwrap(), b"b");
        let refused = answer(|done| client.read_link_then(&path("a/c/one"), done));
        assert!(refused.is_err());
        answer(|done| client.space_then(done)).unwrap();
        assert_eq!(answer(|done| client.look_then(&path("a/link"), done)).unwrap().size, 1);
    });
}

// spec: store-list-2
#[test]
fn a_directory_that_was_not_asked_for_ends_the_request() {
    use hikyaku_reach::talk;
    use hikyaku_transfer::decode;
    for (dir, is_good) in [("a/b", true), ("a", true), ("ab", false), ("", false), ("/a", false)] {
        let (ours, theirs) = connections();
        let server = thread::spawn(move || {
            use hikyaku_net::blocking::block_on;
            let _short = block_on(theirs.accept_stream());
            let (mut incoming, out, _writer) =
                talk(block_on(theirs.accept_stream()).unwrap()).unwrap();
            let (Asked { id, .. }, _) = decode(incoming.hear().unwrap().unwrap()).unwrap();
            let dir = dir.as_bytes().to_vec();
            let listed = Reply::Listed { dir, entries: Vec::new(), is_last: true };
            for reply in [listed, Reply::Done] {
                out.say(&Answer { id, reply }).unwrap();
            }
            let _ = block_on(theirs.closed());
        });
        let client = Client::new(ours).unwrap();
        // The server waits for both streams of the client.
        client.cap(None);
        assert_eq!(listing(&client, "a", 10).is_ok(), is_good, "{dir}");
        client.connection().close(hikyaku_net::code::DONE, "");
        server.join().unwrap();
    }
}

// spec: store-feature-1
#[test]
fn a_server_says_that_it_can_be_mounted() {
    use hikyaku_reach::daemon::{MOUNTS, STORE, ask, offer};
    let second = std::time::Duration::from_secs(20);
    let (ours, theirs) = connections();
    thread::scope(|scope| {
        scope.spawn(|| offer(&theirs, &[STORE], second).is_ok());
        assert!(ask(&ours, &STORE, second).unwrap().features.contains(MOUNTS));
    });
}

// spec: store-feature-11
#[test]
fn a_server_of_one_user_knows_where_paths_begin() {
    let (ours, theirs) = connections();
    thread::scope(|scope| {
        let server = Server::new(Arc::new(Memory::default()), Limits::default());
        let server = server.with_home(Some(b"/users/ann".to_vec()));
        scope.spawn(move || server.attend(theirs).unwrap());
        let client = Client::new(ours).unwrap();
        assert_eq!(client.home().unwrap(), b"/users/ann");
        client.connection().close(hikyaku_net::code::DONE, "");
    });
    with(Arc::new(Memory::default()), |client| {
        let error = client.home().unwrap_err();
        assert!(matches!(error, RemoteError::Refused { kind: ErrorKind::NotFound, .. }));
    });
}

#[test]
fn whoever_waits_hears_that_the_connection_has_ended() {
    let (ours, theirs) = connections();
    let client = Client::new(ours).unwrap();
    let waiting = thread::spawn({
        let client = client.clone();
        move || answer(|done| client.look_then(&path("a"), done))
    });
    thread::sleep(std::time::Duration::from_millis(50));
    theirs.close(1, "gone");
    assert!(waiting.join().unwrap().unwrap_err().is_of_server());
    let late = answer(|done| client.look_then(&path("a"), done));
    assert!(late.unwrap_err().is_of_server());
}

/// Changes the store, and waits for the answer.
fn change(client: &Client, edit: Edit, bytes: &[u8]) -> Result<(), ErrorKind> {
    let answer = answer(|done| client.edit_then(edit, bytes, done));
    answer.map(drop).map_err(|error| match error {
        RemoteError::Refused { kind, .. } => kind,
        other => panic!("{other}"),
    })
}

fn write_edit(store: &dyn Store, at_path: &str, at: u64, length: usize) -> Edit {
    let identity = store.look(&path(at_path)).unwrap().identity;
    Edit::Write { path: at_path.as_bytes().to_vec(), identity, at, length: length as u32 }
}

// spec: store-write-1
#[test]
fn changes_are_made_in_their_order_and_only_where_they_are_allowed() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let create = || Edit::Create { path: b"a".to_vec(), mode: 0o640 };
    with(store.clone(), |client| {
        assert_eq!(change(client, create(), b""), Err(ErrorKind::ReadOnly));
        let remove = Edit::Remove { path: b"nothing".to_vec(), kind: hikyaku_store::Kind::File };
        assert_eq!(change(client, remove, b""), Err(ErrorKind::ReadOnly));
    });
    assert!(store.look(&path("a")).is_err());
    let limits = Limits { writes: Writes::Allowed, ..Limits::default() };
    with_limits(store.clone(), limits, |client| {
        change(client, create(), b"").unwrap();
        assert_eq!(change(client, create(), b""), Err(ErrorKind::Exists));
        assert_eq!(store.look(&path("a")).unwrap().mode, 0o640);
        let parts: Vec<Vec<u8>> = (0..200).map(|n| random(n, 3000)).collect();
        let (give, take) = std::sync::mpsc::channel();
        for part in &parts {
            // All at the same place: the last one stays.
            let (edit, give) = (write_edit(&*store, "a", 7, part.len()), give.clone());
            client.edit_then(edit, part, move |done| give.send(done.is_ok()).unwrap());
        }
        let rename = Edit::Rename { from: b"a".to_vec(), to: b"b".to_vec(), replaces: false };
        change(client, rename, b"").unwrap();
        assert!((0..200).all(|_| take.recv().unwrap()));
        let mut found = vec![0; 3000];
        let open = store.open(&path("b"), hikyaku_store::Access::Read).unwrap();
        open.read_at(7, &mut found).unwrap();
        assert!(found == parts[199]);
        change(client, Edit::SetLength { path: b"b".to_vec(), size: 5 }, b"").unwrap();
        assert_eq!(store.look(&path("b")).unwrap().size, 5);
        change(client, Edit::MakeDir { path: b"d".to_vec(), mode: 0o4755 }, b"").unwrap();
        assert_eq!(store.look(&path("d")).unwrap().mode, 0o755, "no set-id bits");
        let link = Edit::MakeLink { path: b"d/l".to_vec(), text: b"x".to_vec() };
        change(client, link, b"").unwrap();
        let remove = |path: &str, kind| Edit::Remove { path: path.as_bytes().to_vec(), kind };
        use hikyaku_store::Kind;
        assert_eq!(change(client, remove("d", Kind::Dir), b""), Err(ErrorKind::NotEmpty));
        change(client, remove("d/l", Kind::Link), b"").unwrap();
        change(client, remove("d", Kind::Dir), b"").unwrap();
    });
}

// spec: store-write-2
#[test]
fn bytes_go_into_the_file_that_was_meant() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    put(&*store, "a", b"old");
    put(&*store, "other", b"new");
    let limits = Limits { writes: Writes::Allowed, ..Limits::default() };
    with_limits(store.clone(), limits, |client| {
        let edit = write_edit(&*store, "a", 0, 3);
        store.rename(&path("other"), &path("a"), hikyaku_store::Replace::Allowed).unwrap();
        assert_eq!(change(client, edit, b"bad"), Err(ErrorKind::Changed));
        let mut found = [0; 3];
        store
            .open(&path("a"), hikyaku_store::Access::Read)
            .unwrap()
            .read_at(0, &mut found)
            .unwrap();
        assert_eq!(&found, b"new");
        let long = vec![1; SMALL_BYTES_MAX as usize + 1];
        let edit = write_edit(&*store, "a", 0, long.len());
        assert_eq!(change(client, edit, &long), Err(ErrorKind::System(22)));
    });
}

// spec: store-write-3
#[test]
fn a_sync_covers_the_file_and_its_name_and_tells_errors() {
    let store = Arc::new(Faulty::new(Memory::default()));
    put(&*store, "a", b"old");
    for operation in [Operation::SyncFile, Operation::SyncDir] {
        let once = When { operation, path: None, nth: 1, times: 1 };
        store.add(once, Fault::Error(ErrorKind::System(5)));
    }
    let limits = Limits { writes: Writes::Allowed, ..Limits::default() };
    with_limits(store.clone(), limits, |client| {
        change(client, write_edit(&*store, "a", 0, 3), b"new").unwrap();
        let sync = || Edit::Sync { path: b"a".to_vec() };
        assert_eq!(change(client, sync(), b""), Err(ErrorKind::System(5)), "of the file");
        assert_eq!(change(client, sync(), b""), Err(ErrorKind::System(5)), "of its directory");
        change(client, sync(), b"").unwrap();
    });
}

// spec: store-withdraw-1
#[test]
fn a_client_goes_on_with_files_whose_names_it_has_withdrawn_up_to_a_limit() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let name = |number: usize| format!("d/.hikyaku-open-{number}");
    store.make_dir(&path("d"), 0o755).unwrap();
    put(&*store, "d/a", b"old");
    (0..65).for_each(|number| put(&*store, &name(number), b"old"));
    let limits = Limits { writes: Writes::Allowed, ..Limits::default() };
    let withdraw = |at: &str| Edit::Withdraw { path: at.as_bytes().to_vec() };
    let remove =
        |at: &str| Edit::Remove { path: at.as_bytes().to_vec(), kind: hikyaku_store::Kind::File };
    with_limits(store.clone(), limits, |client| {
        assert_eq!(change(client, withdraw("d/a"), b""), Err(ErrorKind::BadName));
        let edit = write_edit(&*store, &name(0), 1, 3);
        change(client, withdraw(&name(0)), b"").unwrap();
        assert_eq!(store.look(&path(&name(0))).unwrap_err().kind, ErrorKind::NotFound);
        // It is written and looked at, also after its directory has got another name.
        change(client, edit, b"new").unwrap();
        assert_eq!(client.look(&path(&name(0))).unwrap().size, 4);
        let (from, to) = (b"d".to_vec(), b"e".to_vec());
        change(client, Edit::Rename { from, to, replaces: false }, b"").unwrap();
        let moved = name(0).replacen('d', "e", 1);
        assert_eq!(client.look(&path(&moved)).unwrap().size, 4);
        change(client, Edit::Sync { path: moved.as_bytes().to_vec() }, b"").unwrap();
        // Another file may get the directory's name meanwhile.
        put(&*store, "d", b"");
        change(client, remove(&moved), b"").unwrap();
        assert_eq!(change(client, remove(&moved), b""), Err(ErrorKind::NotFound));
        // A client cannot have any number of files open.
        for number in 1..65 {
            change(client, withdraw(&name(number).replacen('d', "e", 1)), b"").unwrap();
        }
        put(&*store, "e/.hikyaku-open-last", b"");
        let last = withdraw("e/.hikyaku-open-last");
        assert_eq!(change(client, last, b""), Err(ErrorKind::Busy));
    });
    let refused = Limits::default();
    with_limits(store, refused, |client| {
        let last = withdraw("e/.hikyaku-open-last");
        assert_eq!(change(client, last, b""), Err(ErrorKind::ReadOnly));
    });
}

// spec: store-process-1
#[test]
fn a_client_ends_sessions_of_its_own_key_only() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let processes = Arc::<Processes>::default();
    let name = |byte: u8| Holder([byte; 16]);
    let tell = |client: &Client, own: u8, ended: Vec<Holder>| {
        let (tell, hear) = std::sync::mpsc::channel();
        client.process_then((name(own), ended), move |done| {
            let _ = tell.send(done.is_ok());
        });
        assert!(hear.recv().unwrap());
    };
    let lives = |client: &Client| {
        let error = client.look(&path("none")).unwrap_err();
        matches!(error, RemoteError::Refused { kind: ErrorKind::NotFound, .. })
    };
    thread::scope(|scope| {
        let session = |party: u8| {
            let (ours, theirs) = connections();
            let server = Server::new(store.clone(), Limits::default());
            let server = server.with_processes(processes.clone(), Party([party; 32]));
            scope.spawn(move || server.attend(theirs).unwrap());
            Client::new(ours).unwrap()
        };
        let (first, other, next) = (session(1), session(2), session(1));
        tell(&first, 1, Vec::new());
        tell(&other, 2, vec![name(1)]);
        assert!(lives(&first), "ended by another key");
        tell(&next, 3, vec![name(1), name(2), name(3)]);
        hikyaku_net::blocking::block_on(first.connection().closed());
        assert!(lives(&other) && lives(&next));
        for client in [other, next] {
            client.connection().close(hikyaku_net::code::DONE, "");
        }
    });
}

fn view(store: &dyn Store, at: &str) -> View {
    let (path, seen) = (at.as_bytes().to_vec(), seen(store, at));
    let (levels, raw, coding) = (None, None, Coding::Jpeg(90));
    View { path, seen, region: [0, 0, 600, 600], step: 1, levels, raw, coding }
}

/// Runs `work` with a client of a server whose windows are these bytes, or refused with a text.
fn with_views(
    store: Arc<dyn Store>,
    made: Result<Vec<u8>, &'static str>,
    work: impl FnOnce(&Client),
) {
    let (ours, theirs) = connections();
    let render: Render = Arc::new(move |open, view| {
        let mut read = [0; 3];
        open.read_at(0, &mut read).unwrap();
        assert_eq!(read, *b"abc");
        let bytes = made.clone().map_err(str::to_owned)?;
        Ok(Rendered { width: view.region[2], height: 7, bytes })
    });
    thread::scope(|scope| {
        let server = Server::new(store, Limits::default()).with_views(Some(render));
        let served = scope.spawn(move || server.attend(theirs).unwrap());
        let client = Client::new(ours).unwrap();
        work(&client);
        client.connection().close(hikyaku_net::code::DONE, "");
        served.join().unwrap()
    });
}

// spec: store-view-1
#[test]
fn a_window_of_a_picture_is_made_of_the_file_that_was_meant() {
    let store = Arc::new(Memory::default());
    put(&*store, "a", b"abc");
    let made = random(5, SEGMENT as usize + 99);
    let (right, mut other) = (view(&*store, "a"), view(&*store, "a"));
    other.seen.size = 4;
    with_views(store.clone(), Ok(made.clone()), |client| {
        let viewing = client.view(right.clone()).unwrap();
        assert_eq!((viewing.width, viewing.height), (600, 7));
        assert!(viewing.receive().unwrap() == made);
        let refused = client.view(other).err();
        let changed =
            |error| matches!(error, RemoteError::Refused { kind: ErrorKind::Changed, .. });
        assert!(refused.is_some_and(changed));
    });
    with_views(store.clone(), Err("not a picture"), |client| {
        let refused = client.view(right.clone()).err().unwrap();
        assert!(refused.to_string().contains("not a picture"), "{refused}");
    });
    // spec: store-feature-3
    with(store, |client| {
        let refused = client.view(right.clone()).err().unwrap();
        assert!(matches!(refused, RemoteError::Refused { .. }), "{refused}");
    });
}

#[test]
fn a_window_is_not_made_any_more_when_its_client_has_gone() {
    let store = Arc::new(Memory::default());
    put(&*store, "a", b"abc");
    let wanted = view(&*store, "a");
    let (begun, begins) = std::sync::mpsc::channel();
    // It would go on for ever.
    let render: Render = Arc::new(move |open, _| {
        let _ = begun.send(());
        while open.read_at(0, &mut [0; 3]).is_ok() {
            thread::yield_now();
        }
        Err("not made".to_owned())
    });
    let (ours, theirs) = connections();
    thread::scope(|scope| {
        let server = Server::new(store, Limits::default()).with_views(Some(render));
        let served = scope.spawn(move || server.attend(theirs).unwrap());
        let client = Arc::new(Client::new(ours).unwrap());
        let asks = client.clone();
        scope.spawn(move || assert!(asks.view(wanted).is_err()));
        begins.recv().unwrap();
        client.connection().close(hikyaku_net::code::DONE, "");
        served.join().unwrap();
    });
}

// spec: store-view-2
#[test]
fn a_window_larger_than_its_pixels_is_refused() {
    let store = Arc::new(Memory::default());
    put(&*store, "a", b"abc");
    let mut small = view(&*store, "a");
    (small.region, small.step) = ([0, 0, 20, 20], 2);
    let most = (64 << 10) + 4 * 10 * 10;
    for (bytes, is_right) in [(most, true), (most + 1, false)] {
        with_views(store.clone(), Ok(vec![1; bytes]), |client| {
            assert_eq!(client.view(small.clone()).is_ok(), is_right, "{bytes}");
        });
    }
}
