//! Leases of a mount, without a server.

use super::*;
use hikyaku_store::{Found, Identity, Owner, Time};

fn dir(name: &str) -> StorePath {
    StorePath::new(name.as_bytes()).unwrap()
}

fn leased(lease: u64, extent: Extent) -> Leased {
    let found = Found {
        kind: Kind::Dir,
        size: 0,
        allocated: 0,
        mode: 0o755,
        owner: Owner::default(),
        modified: Time::default(),
        identity: Identity { device: 0, number: 1 },
        version: None,
    };
    Leased { dir: b"d".to_vec(), lease, extent, found }
}

// spec: store-lease-3
#[test]
fn leases_are_relied_on_while_the_server_is_heard_of() {
    let (mut leases, now) = (Leases::default(), Instant::now());
    let at = dir("d");
    assert!(
        leases.insert(&at, (&leased(1, Extent::Read), Turn::default()), None).is_none(),
        "nothing is heard"
    );
    let trust = Trust { until: now + Duration::from_secs(10), ..Trust::begin() };
    leases.trusted = Some(trust);
    assert!(
        leases
            .insert(&at, (&leased(1, Extent::Write), Turn::default()), Some(Names::new()))
            .is_some()
    );
    assert!(leases.since(&at, now).is_some() && leases.names(&at, now).is_some());
    let late = now + Duration::from_secs(10);
    assert!(leases.since(&at, late).is_none() && leases.names(&at, late).is_none());
    // The machine was suspended, which the other clock does not count.
    leases.trusted = Some(Trust { awake_or_not: since_boot(), ..trust });
    assert!(leases.since(&at, now).is_none() && leases.was_trusted(now));
    leases.trusted = Some(trust);
    leases.doubt(&at);
    assert!(leases.since(&at, now).is_some() && leases.names(&at, now).is_none());
    leases.clear();
    assert!(leases.since(&at, now).is_none());
}

#[test]
fn a_lease_that_was_recalled_before_it_came_is_not_used() {
    let (mut leases, now) = (Leases::default(), Instant::now());
    leases.trusted = Some(Trust::begin());
    leases.recalled.push_back(7);
    assert!(leases.insert(&dir("d"), (&leased(7, Extent::Read), Turn::default()), None).is_none());
    assert!(leases.since(&dir("d"), now).is_none());
    // A directory that was made here is used before the server has confirmed it.
    leases.made(&dir("new"), (now, Turn::default()));
    assert!(leases.names(&dir("new"), now).is_some());
    assert!(leases.confirm(&dir("new"), &leased(7, Extent::Write)), "it is wanted back");
    assert!(!leases.confirm(&dir("new"), &leased(8, Extent::Write)));
}
