//! The choice of a server among several.

use super::*;
use hikyaku_store::{ErrorKind, Owner, Time};
use std::sync::mpsc::channel;

fn found(kind: Kind, size: u64, secs: i64) -> Found {
    let modified = Time { secs, nanos: 0 };
    let (owner, identity) = (Owner { user: 0, group: 0 }, Identity { device: 7, number: size + 1 });
    Found { kind, size, allocated: 0, mode: 0o644, owner, modified, identity, version: None }
}

#[test]
fn the_newest_of_several_is_shown_with_all_that_have_it() {
    let file = |size, secs| found(Kind::File, size, secs);
    let all = [(0, file(5, 10)), (1, file(6, 20)), (3, file(6, 20)), (4, file(9, 19))];
    let (best, at) = newest(&all).unwrap();
    assert_eq!((best.size, best.modified.secs, best.identity.number), (6, 20, 0));
    assert_eq!(at, Places(0b1010));
    // Directories have times of their own, and are one directory.
    let dirs = [(0, found(Kind::Dir, 5, 10)), (2, found(Kind::Dir, 6, 20))];
    assert_eq!(newest(&dirs).unwrap().1, Places(0b101));
    assert_eq!(newest(&[]), None);
}

#[test]
fn listings_are_put_together_by_name() {
    let entry = |name: &str, secs| Listed {
        name: name.as_bytes().to_vec(),
        found: found(Kind::File, 1, secs),
        link: None,
    };
    let lists = vec![
        (0, vec![entry("b", 5), entry("a", 5)]),
        (1, vec![entry("c", 5), entry("b", 5), entry("a", 6)]),
    ];
    let told: Vec<(Vec<u8>, i64, Places)> = union(lists)
        .into_iter()
        .map(|(entry, at)| (entry.name, entry.found.modified.secs, at))
        .collect();
    let wanted = [(b"a", 6, Places(2)), (b"b", 5, Places(3)), (b"c", 5, Places(2))];
    let wanted = wanted.map(|(name, secs, at)| (name.to_vec(), secs, at));
    assert_eq!(told, wanted);
}

#[test]
fn an_answer_waits_for_all_servers() {
    let ask = |is_one_away| {
        let (tell, hear) = channel();
        let gather = Gather::new(3, is_one_away, move |found: Vec<(usize, u8)>, error| {
            tell.send((found, error.is_some())).unwrap();
        });
        (gather, hear)
    };
    let missing = || RemoteError::Refused { kind: ErrorKind::NotFound, text: String::new() };
    let (gather, hear) = ask(false);
    gather.take(2, Ok(7));
    gather.take(0, Ok(5));
    gather.take(1, Err(missing()));
    assert!(hear.try_recv().is_err(), "not all have been asked");
    gather.start();
    assert_eq!(hear.recv().unwrap(), (vec![(0, 5), (2, 7)], false));
    let (gather, hear) = ask(false);
    gather.start();
    (0..3).for_each(|server| gather.take(server, Err(missing())));
    assert_eq!(hear.recv().unwrap(), (vec![], false));
    let (gather, hear) = ask(true);
    gather.start();
    (0..3).for_each(|server| gather.take(server, Err(missing())));
    assert_eq!(hear.recv().unwrap(), (vec![], true));
}
