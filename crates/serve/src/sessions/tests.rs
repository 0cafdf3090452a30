//! Places of keys, and keys that are taken from the list.

use super::*;
use hikyaku_crypto::Identity;
use hikyaku_net::Side;
use hikyaku_pipes::{Config, Pipe};
use std::os::unix::net::UnixStream;

fn guest(key: Fingerprint, permit: Permit) -> (Guest, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pipe = Pipe::new(ours.try_clone().unwrap(), ours);
    let pipes = hikyaku_pipes::Connection::new(vec![pipe], Side::Server, Config::default());
    (Guest { connection: pipes.unwrap().into(), key, permit }, theirs)
}

fn keys<const N: usize>() -> [Fingerprint; N] {
    [(); N].map(|()| Identity::generate().unwrap().fingerprint())
}

#[test]
fn one_key_leaves_room_for_the_others() {
    let [one, other] = keys();
    let sessions = Arc::new(Sessions::default());
    let (mut held, mut peers) = (Vec::new(), Vec::new());
    for (key, most_of_key, wanted) in
        [(one, None, 2), (other, Some(5), 5), (one, Some(9), 1), (one, Some(3), 0)]
    {
        let permit = Permit { max_sessions: most_of_key, ..Permit::default() };
        let mut entered = 0;
        for _ in 0..10 {
            let (guest, peer) = guest(key, permit.clone());
            if let Ok(place) = sessions.enter(guest, 8) {
                entered += 1;
                held.push(place);
                peers.push(peer);
            }
        }
        assert_eq!(entered, wanted);
    }
    assert_eq!(sessions.list().len(), 8);
}

#[test]
fn a_key_has_two_sessions_where_that_leaves_a_place_to_others() {
    let cases = [(1, 1), (2, 1), (3, 2), (4, 2), (8, 2), (12, 3), (200, 50)];
    for (most, of_key) in cases {
        assert_eq!(share_of_key(most), of_key, "of {most}");
    }
}

#[test]
fn a_session_whose_connection_has_ended_leaves_its_place_free() {
    let [key] = keys();
    let permit = Permit { max_sessions: Some(1), ..Permit::default() };
    let sessions = Arc::new(Sessions::default());
    let enter = || {
        let (guest, peer) = guest(key, permit.clone());
        let connection = guest.connection.clone();
        sessions.enter(guest, 100).map(|place| (place, connection, peer))
    };
    let first = enter().unwrap();
    assert!(enter().is_err());
    first.1.close(ENDS, "");
    // Its threads still wait for the disk: they have their place until they end.
    let second = enter().unwrap();
    second.1.close(ENDS, "");
    assert!(enter().is_err(), "the threads of ended sessions are limited as well");
    drop(first);
    assert!(enter().is_ok());
}

#[test]
fn sessions_end_whose_key_is_gone_or_may_do_something_else() {
    let [stays, gone, changed] = keys();
    let sessions = Arc::new(Sessions::default());
    let mut held = Vec::new();
    for key in [stays, gone, changed] {
        let (guest, peer) = guest(key, Permit::default());
        held.push((sessions.enter(guest, 100).unwrap(), peer));
    }
    sessions.review(|key| {
        let max_flows = (*key == changed).then_some(1);
        (*key != gone).then(|| Permit { max_flows, ..Permit::default() })
    });
    for (_, guest) in sessions.list() {
        assert_eq!(guest.connection.close_reason().is_none(), guest.key == stays);
    }
}

#[test]
fn as_few_of_the_largest_as_possible_end_when_clients_fill_the_memory() {
    for (sizes, most, ends) in [
        ([5, 1, 9], 15, [false, false, false]),
        ([5, 1, 9], 14, [false, false, true]),
        ([5, 1, 9], 6, [false, false, true]),
        ([5, 1, 9], 5, [true, false, true]),
        ([5, 1, 9], 0, [true, true, true]),
    ] {
        let all = keys::<3>();
        let sessions = Arc::new(Sessions::default());
        let mut held = Vec::new();
        for key in all {
            let (guest, peer) = guest(key, Permit::default());
            held.push((sessions.enter(guest, 100).unwrap(), peer));
        }
        let number = |guest: &Guest| all.iter().position(|key| *key == guest.key).unwrap();
        let unread = |guest: &Guest| DataSize::from_bytes(sizes[number(guest)]);
        sessions.relieve(DataSize::from_bytes(most), unread);
        for (_, guest) in sessions.list() {
            let is_ended = guest.connection.close_reason().is_some();
            assert_eq!(is_ended, ends[number(&guest)], "{most}");
        }
    }
}
