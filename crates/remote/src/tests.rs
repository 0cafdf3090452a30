//! A client and a server over a pair of sockets.

use super::*;
use hikyaku_net::{CloseReason, Side};
use hikyaku_pipes::{Config, Pipe};
use hikyaku_reach::Connection;
use hikyaku_store::{
    ErrorKind, Fault, Faulty, Finish, Make, Memory, Naming, Operation, Store, StorePath, When,
};
use hikyaku_transfer::SEGMENT;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

fn connections() -> (Connection, Connection) {
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
    let (ours, theirs) = connections();
    thread::scope(|scope| {
        let server = Server::new(store, Limits::default());
        let served = scope.spawn(move || server.attend(theirs).unwrap());
        let client = Client::new(ours).unwrap();
        work(&client);
        client.connection().close(hikyaku_net::code::DONE, "");
        served.join().unwrap()
    })
}

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| rng.u8(..)).collect()
}

fn put(store: &dyn Store, at: &str, bytes: &[u8]) {
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
        client.walk(&path("a"), |entry| all.push(entry)).unwrap();
        assert_eq!(all.len(), 2003);
        let at = |name: &[u8]| all.iter().position(|entry| entry.path == name).unwrap();
        assert_eq!(at(b"a"), 0);
        assert!(at(b"a/b") < at(b"a/b/file 1999"));
        assert_eq!(all[at(b"a/link")].link.as_deref(), Some(&b"b"[..]));
        assert!(client.walk(&path("nothing"), |_| {}).is_err());
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
