//! Locks of a mount, without a server.

use super::*;
use crate::core::{Access, Opens, Settings};
use crate::crew::{Crew, Places};
use crate::nodes::Seen;
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
    Seen { found, link: None, at: Places::only(0), asked: Instant::now() }
}

// spec: store-lock-3
#[test]
fn a_file_that_has_lost_its_name_is_freed_and_not_locked() {
    let settings = Settings {
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
    let path = StorePath::new(b"a").unwrap();
    let number = core.state().nodes.observe(&path, seen(1));
    let other = core.state().nodes.observe(&path, seen(2));
    let lock = |number, wish| core.lock_of_node((number, 7), (0, LAST), wish);
    let identity = |number, wish| lock(number, wish).map(|lock| lock.identity.number);
    let exclusive = Wish::Exclusive(Patience::None);
    assert_eq!(identity(number, exclusive).unwrap_err().code(), Errno::ESTALE.code());
    assert_eq!(identity(number, Wish::Free).unwrap(), 1);
    assert_eq!(identity(other, exclusive).unwrap(), 2);
}
