//! Two clients of one daemon: leases, locks and appends.

use super::*;
use crate::tests::{connections, path, put};
use crate::{Leases, Limits, Server, Writes};
use hikyaku_store::{ErrorKind, Identity, Memory, Store};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Runs `work` with two clients of servers of one store.
fn with_two(store: &Memory, leases: Option<&Arc<Leases>>, work: impl FnOnce([&Client; 2])) {
    let limits = Limits { writes: Writes::Allowed, ..Limits::default() };
    thread::scope(|scope| {
        let client = || {
            let (ours, theirs) = connections();
            let server = Server::new(Arc::new(store.clone()), limits)
                .with_leases(leases.cloned(), crate::Party([0; 32]));
            scope.spawn(move || server.attend(theirs).unwrap());
            Client::new(ours).unwrap().with_leases().unwrap()
        };
        let clients = [client(), client()];
        work([&clients[0], &clients[1]]);
        clients.iter().for_each(|client| {
            client.connection().close(hikyaku_net::code::DONE, "");
        });
    });
}

/// The answer to a request.
fn answer<T: Send + 'static>(
    ask: impl FnOnce(Box<dyn FnOnce(Result<T, RemoteError>) + Send>),
) -> Result<T, RemoteError> {
    let (tell, hear) = channel();
    ask(Box::new(move |answer| drop(tell.send(answer))));
    hear.recv().unwrap()
}

/// Names the holder, and returns what is recalled.
fn hear(client: &Client, name: u8) -> Receiver<u64> {
    let (tell, recalls) = channel();
    client.hear_recalls(Holder([name; 16]), move |lease| {
        if let Ok(lease) = lease {
            let _ = tell.send(lease);
        }
    });
    // The name goes another way than this, and is there when this is answered.
    while answer(|done| client.renew_then(done)).is_err() {}
    recalls
}

/// Asks for a lease, and returns it with the names that came with it.
fn take(client: &Client, at: &str, extent: Extent) -> (Option<Leased>, Vec<Vec<u8>>) {
    let (tell, hear) = channel();
    let found = Mutex::new((None, Vec::new()));
    client.take_then(&path(at), (extent, 0), move |listing| match listing.unwrap() {
        Listing::Leased { leased, .. } => found.lock().unwrap().0 = Some(leased),
        Listing::Entries { entries, .. } => {
            found.lock().unwrap().1.extend(entries.into_iter().map(|entry| entry.name));
        }
        Listing::End => tell.send(std::mem::take(&mut *found.lock().unwrap())).unwrap(),
    });
    hear.recv().unwrap()
}

fn held(
    client: &Client,
    edit: Edit,
    attempt: Attempt,
    bytes: &'static [u8],
) -> Result<Decided, ErrorKind> {
    let answer = answer(|done| client.held_then((edit, attempt), bytes, done));
    answer.map_err(|error| match error {
        RemoteError::Refused { kind, .. } => kind,
        other => panic!("{other}"),
    })
}

fn create(at: &str) -> Edit {
    Edit::Create { path: at.as_bytes().to_vec(), mode: 0o600 }
}

fn write(at: &str, length: u32) -> Edit {
    let identity = Identity { device: 0, number: 0 };
    Edit::Write { path: at.as_bytes().to_vec(), identity, at: 0, length }
}

// spec: store-lease-4
#[test]
fn what_one_client_decides_another_sees_when_it_looks() {
    let store = Memory::default();
    store.make_dir(&path("d"), 0o755).unwrap();
    put(&store, "d/old", b"x");
    with_two(&store, Some(&Arc::default()), |[a, b]| {
        let (recalls, _others) = (hear(a, 1), hear(b, 2));
        let (lease, names) = take(a, "d", Extent::Write);
        assert_eq!((names, lease.as_ref().unwrap().extent), (vec![b"old".to_vec()], Extent::Write));
        // Nothing can be decided without a lease.
        assert_eq!(held(b, create("d/b"), Attempt::First, b""), Err(ErrorKind::Changed));
        let edit = Edit::MakeDir { path: b"d/new".to_vec(), mode: 0o700 };
        let made = held(a, edit.clone(), Attempt::First, b"").unwrap();
        assert!(matches!(made, Decided::Leased(Leased { extent: Extent::Write, .. })), "{made:?}");
        for at in ["d/a", "d/new/a"] {
            assert!(matches!(held(a, create(at), Attempt::First, b""), Ok(Decided::There(_))));
        }
        let (looked, looks) = channel();
        b.look_then(&path("d/a"), move |found| looked.send(found).unwrap());
        // The answer waits for what has not been told yet.
        assert_eq!(recalls.recv().unwrap(), lease.as_ref().unwrap().lease);
        let written = held(a, write("d/a", 5), Attempt::First, b"bytes").unwrap();
        assert!(matches!(written, Decided::There(found) if found.size == 5));
        assert!(looks.try_recv().is_err());
        a.give_back(lease.unwrap().lease);
        assert_eq!(looks.recv().unwrap().unwrap().size, 5);
        // What looks as if it had been made counts as made, if the client is not sure.
        assert_eq!(held(a, create("d/new/a"), Attempt::First, b""), Err(ErrorKind::Exists));
        assert!(held(a, create("d/new/a"), Attempt::Again, b"").is_ok());
        let remove = Edit::Remove { path: b"d/new/none".to_vec(), kind: hikyaku_store::Kind::File };
        assert_eq!(held(a, remove.clone(), Attempt::First, b""), Err(ErrorKind::NotFound));
        assert_eq!(held(a, remove, Attempt::Again, b""), Ok(Decided::Done));
    });
}

#[test]
fn changes_by_any_request_recall() {
    let store = Memory::default();
    store.make_dir(&path("d"), 0o755).unwrap();
    put(&store, "d/old", b"x");
    put(&store, "other", b"x");
    with_two(&store, Some(&Arc::new(Leases::without_quiet())), |[a, b]| {
        let (recalls, _others) = (hear(a, 1), hear(b, 2));
        let name = |text: &str| text.as_bytes().to_vec();
        let edits = [
            (create("d/new"), true),
            (Edit::SetLength { path: name("d/old"), size: 7 }, true),
            (Edit::Change { path: name("d/old"), mode: Some(0o600), modified: None }, true),
            (Edit::MakeDir { path: name("d/dir"), mode: 0o700 }, true),
            (Edit::MakeLink { path: name("d/link"), text: name("x") }, true),
            (Edit::Rename { from: name("other"), to: name("d/other"), replaces: false }, true),
            (Edit::Remove { path: name("d/other"), kind: hikyaku_store::Kind::File }, true),
            (create("elsewhere"), false),
        ];
        for (edit, recalls_it) in edits {
            let mut lease = take(a, "d", Extent::Read).0;
            while lease.is_none() {
                // Not granted for a while after a recall.
                lease = take(a, "d", Extent::Read).0;
            }
            let lease = lease.unwrap().lease;
            let (tell, done) = channel();
            b.edit_then(edit.clone(), b"", move |answer| tell.send(answer).unwrap());
            if recalls_it {
                assert_eq!(recalls.recv().unwrap(), lease, "{edit:?}");
                assert!(done.try_recv().is_err(), "{edit:?}");
                a.give_back(lease);
            }
            done.recv().unwrap().unwrap();
        }
        assert!(recalls.try_recv().is_err());
    });
}

// spec: store-feature-5
#[test]
fn a_server_without_leases_refuses_them() {
    let store = Memory::default();
    with_two(&store, None, |[a, _]| {
        let refused = answer(|done| a.renew_then(done)).unwrap_err();
        assert!(matches!(refused, RemoteError::Refused { .. }), "{refused}");
        assert_eq!(held(a, create("a"), Attempt::First, b""), Err(ErrorKind::Changed));
        assert!(store.look(&path("a")).is_err());
    });
}

// spec: store-append-1
#[test]
fn what_two_clients_append_is_all_there() {
    let store = Memory::default();
    put(&store, "log", b"");
    let identity = store.look(&path("log")).unwrap().identity;
    with_two(&store, None, |clients| {
        thread::scope(|scope| {
            for (who, client) in clients.into_iter().enumerate() {
                scope.spawn(move || {
                    for n in 0..100 {
                        let bytes = [b'a' + who as u8, n];
                        let edit = Edit::Append { path: b"log".to_vec(), identity, length: 2 };
                        answer(|done| client.edit_then(edit, &bytes, done)).unwrap();
                    }
                });
            }
        });
        let other = Identity { number: identity.number + 1, ..identity };
        let edit = Edit::Append { path: b"log".to_vec(), identity: other, length: 1 };
        let refused = answer(|done| clients[0].edit_then(edit, b"x", done)).unwrap_err();
        assert!(matches!(refused, RemoteError::Refused { kind: ErrorKind::Changed, .. }));
    });
    let mut bytes = vec![0; 400];
    store.open(&path("log"), hikyaku_store::Access::Read).unwrap().read_at(0, &mut bytes).unwrap();
    assert_eq!(store.look(&path("log")).unwrap().size, 400);
    for who in [b'a', b'b'] {
        let own: Vec<u8> = bytes.chunks(2).filter(|c| c[0] == who).map(|c| c[1]).collect();
        assert_eq!(own, (0..100).collect::<Vec<u8>>());
    }
}

// spec: store-feature-6
#[test]
fn a_server_without_locks_refuses_them() {
    let store = Memory::default();
    put(&store, "a", b"");
    let identity = store.look(&path("a")).unwrap().identity;
    with_two(&store, None, |[a, _]| {
        let wish = crate::Wish::Exclusive(crate::Patience::None);
        let lock = crate::Lock { path: b"a".to_vec(), identity, owner: 1, range: (0, 9), wish };
        let asks = |done: Box<dyn FnOnce(_) + Send>| {
            a.lock_then(lock.clone(), done);
        };
        assert!(answer(asks).is_err());
        assert!(answer(|done| a.lock_of_then(lock, done)).is_err());
    });
}
