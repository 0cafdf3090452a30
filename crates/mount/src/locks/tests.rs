//! Locks of a mount, without a server.

use super::*;
use crate::changes::Turn;
use crate::core::{Access, Opens, Settings};
use crate::crew::{Crew, Places};
use crate::nodes::Seen;
use crate::options::Checks;
use hikyaku_store::{Found, Identity, Kind, Owner, StorePath, Time};
use std::time::{Duration, Instant};

fn seen(number: u64) -> Seen {
    let found = Found {
        kind: Kind::File,
        size: 1,
        allocated: 1,
        mode: 0o644,
        owner: Owner::default(),
        modified: Time::default(),
        identity: Identity { device: 1, number },
        version: None,
    };
    Seen { found, link: None, at: Places::only(0), asked: Instant::now(), sent: Turn::default() }
}

fn core() -> Arc<Core> {
    let settings = Settings {
        checks: Checks::Omitted,
        attr_ttl: Duration::ZERO,
        opens: Opens::Ask,
        timeout: Duration::ZERO,
        cache_bytes: 1 << 20,
        access: Access::Write,
        locking: Locking::Server,
        owner: None,
    };
    let core = Core::new(settings, Crew::new(vec![None], Duration::ZERO), None);
    core.state().nodes.observe(&StorePath::ROOT, seen(9));
    core
}

// spec: store-lock-3
#[test]
fn a_lock_names_its_own_file_whatever_has_the_path() {
    let core = core();
    let path = StorePath::new(b"a").unwrap();
    let number = core.state().nodes.observe(&path, seen(1));
    core.state().nodes.at_mut(number).unwrap().opens = 1;
    let other = core.state().nodes.observe(&path, seen(2));
    let exclusive = Wish::Exclusive(Patience::None);
    for (number, wish, identity) in
        [(number, exclusive, 1), (number, Wish::Free, 1), (other, exclusive, 2)]
    {
        let lock = core.state().lock_of_node((number, 7), (0, LAST), wish).unwrap();
        assert_eq!(lock.identity.number, identity);
    }
}

#[test]
fn an_owner_has_locks_until_all_its_wishes_are_refused_or_it_frees_them() {
    let core = core();
    let key = (5, 7);
    let wish = || core.state().locked.entry(key).or_default().wishes += 1;
    let is_known = || core.state().locked.contains_key(&key);
    wish();
    wish();
    core.state().locked_or_not(key, false);
    assert!(is_known(), "one is not answered");
    core.state().locked_or_not(key, true);
    wish();
    core.state().locked_or_not(key, false);
    assert!(is_known(), "it has the other one");
    core.state().locked.remove(&key);
    core.state().locked_or_not(key, true);
    assert!(!is_known(), "it was freed meanwhile");
}

#[test]
fn a_handle_that_is_closed_late_frees_no_lock_of_the_next_one() {
    let core = core();
    let path = StorePath::new(b"a").unwrap();
    let number = core.state().nodes.observe(&path, seen(1));
    let key = (number, 7);
    let has = |handle| {
        let mut state = core.state();
        let owned = state.locked.entry(key).or_default();
        owned.has = true;
        owned.handles.insert(handle);
    };
    let is_known = || core.state().locked.contains_key(&key);
    has(1);
    has(2);
    core.free_of_handle(number, 1);
    assert!(is_known(), "the second file has the number of the first one");
    core.free_of_handle(number, 2);
    assert!(!is_known());
    has(3);
    has(4);
    core.free_of_owner(key, drop);
    assert!(!is_known(), "fcntl(2) frees all");
}
