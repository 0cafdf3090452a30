//! Clients of a server with locks.

use super::*;
use crate::tests::{connections, path, put};
use crate::{Client, Limits, Locks, RemoteError, Server};
use hikyaku_store::{Fault, Faulty, Kind, Memory, Operation, Store, When};
use std::thread;
use std::time::Duration;

type Heard = Receiver<std::result::Result<(), RemoteError>>;

/// Runs `work` with two clients of a store with files `0`, `1` and `2`, whose locks are `locks`.
fn with_two(writes: Writes, locks: &Arc<Locks>, work: impl FnOnce(&Memory, [&Client; 2])) {
    let store = Memory::default();
    ["0", "1", "2"].into_iter().for_each(|name| put(&store, name, b"bytes"));
    thread::scope(|scope| {
        let client = || {
            let (ours, theirs) = connections();
            let limits = Limits { writes, ..Limits::default() };
            let server = Server::new(Arc::new(store.clone()), limits);
            let server = server.with_locks(Some(locks.clone()));
            scope.spawn(move || server.attend(theirs).unwrap());
            Client::new(ours).unwrap()
        };
        let clients = [client(), client()];
        work(&store, [&clients[0], &clients[1]]);
        clients.iter().for_each(|client| {
            client.connection().close(hikyaku_net::code::DONE, "");
        });
    });
}

fn of(store: &Memory, name: &str, owner: u64, wish: Wish) -> Lock {
    let identity = store.look(&path(name)).unwrap().identity;
    Lock { path: name.as_bytes().to_vec(), identity, owner, range: (0, 9), wish }
}

fn ask(client: &Client, lock: Lock) -> Heard {
    let (tell, hear) = channel();
    client.lock_then(lock, move |answer| {
        let _ = tell.send(answer);
    });
    hear
}

fn now(client: &Client, lock: Lock) -> std::result::Result<(), ErrorKind> {
    ask(client, lock).recv().unwrap().map_err(|error| match error {
        RemoteError::Refused { kind, .. } => kind,
        other => panic!("{other}"),
    })
}

const EXCLUSIVE: Wish = Wish::Exclusive(Patience::None);
const WAITS: Wish = Wish::Exclusive(Patience::Wait);

// spec: store-lock-3
#[test]
fn a_file_that_has_lost_its_name_can_be_freed() {
    let locks = Arc::<Locks>::default();
    with_two(Writes::Allowed, &locks, |store, [a, b]| {
        let (ours, theirs) = (of(store, "0", 1, EXCLUSIVE), of(store, "0", 1, WAITS));
        assert_eq!(now(a, ours.clone()), Ok(()));
        assert_eq!(now(b, Lock { wish: EXCLUSIVE, ..theirs.clone() }), Err(ErrorKind::Busy));
        let waited = ask(b, theirs.clone());
        // It is waited for when the next answer has come.
        assert_eq!(now(b, Lock { owner: 2, wish: EXCLUSIVE, ..theirs }), Err(ErrorKind::Busy));
        assert!(waited.try_recv().is_err());
        store.remove(&path("0"), Kind::File).unwrap();
        assert_eq!(now(a, ours.clone()), Err(ErrorKind::NotFound), "there is no file to lock");
        assert_eq!(now(a, Lock { wish: Wish::Free, ..ours.clone() }), Ok(()));
        waited.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
        let empty = Lock { range: (9, 0), wish: Wish::Free, ..ours };
        assert!(now(a, empty).is_err());
    });
    // The locks of a session end with it.
    assert!(locks.is_empty());
}

// spec: store-lock-2
#[test]
fn whoever_may_not_write_keeps_nobody_from_reading() {
    with_two(Writes::Refused, &Arc::default(), |store, [a, _]| {
        for wish in [EXCLUSIVE, WAITS] {
            assert_eq!(now(a, of(store, "0", 1, wish)), Err(ErrorKind::ReadOnly));
        }
        assert_eq!(now(a, of(store, "0", 1, Wish::Shared(Patience::None))), Ok(()));
        assert_eq!(now(a, of(store, "0", 1, Wish::Free)), Ok(()));
    });
}

#[test]
fn a_client_waits_for_so_many_locks_at_most() {
    with_two(Writes::Allowed, &Arc::default(), |store, [a, b]| {
        for name in ["0", "1", "2"] {
            assert_eq!(now(a, of(store, name, 1, EXCLUSIVE)), Ok(()));
        }
        let half = WAITING_MAX as u64 / 2;
        let waits: Vec<Heard> = ["0", "1"]
            .into_iter()
            .flat_map(|name| (0..half).map(move |owner| (name, owner)))
            .map(|(name, owner)| ask(b, of(store, name, owner, WAITS)))
            .collect();
        assert_eq!(now(b, of(store, "2", 1, WAITS)), Err(ErrorKind::System(37)));
        // What needs no waiting is answered as ever.
        assert_eq!(now(b, of(store, "2", 1, EXCLUSIVE)), Err(ErrorKind::Busy));
        assert_eq!(now(b, of(store, "0", 0, Wish::Free)), Ok(()));
        assert!(waits[0].recv().unwrap().is_err());
        let last = ask(b, of(store, "2", 1, WAITS));
        assert_eq!(now(a, of(store, "2", 1, Wish::Free)), Ok(()));
        last.recv().unwrap().unwrap();
    });
}

#[test]
fn a_lock_that_comes_after_the_end_of_its_connection_is_freed() {
    let (store, locks) = (Memory::default(), Arc::<Locks>::default());
    put(&store, "0", b"bytes");
    let slow = Faulty::new(store.clone());
    let when = When { operation: Operation::Look, path: None, nth: 1, times: 1 };
    slow.add(when, Fault::Delay(Duration::from_millis(300)));
    let (ours, theirs) = connections();
    let server = Server::new(
        Arc::new(slow.clone()),
        Limits { writes: Writes::Allowed, ..Limits::default() },
    );
    let server = server.with_locks(Some(locks.clone()));
    thread::scope(|scope| {
        let served = scope.spawn(move || server.attend(theirs).unwrap());
        let client = Client::new(ours).unwrap();
        let _unheard = ask(&client, of(&store, "0", 1, EXCLUSIVE));
        while slow.struck() == 0 {
            thread::yield_now();
        }
        client.connection().close(hikyaku_net::code::DONE, "");
        served.join().unwrap();
    });
    assert!(locks.is_empty());
}
