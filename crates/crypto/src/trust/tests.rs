//! Which keys are accepted.

use super::*;
use crate::testing::Folder;
use std::time::UNIX_EPOCH;

fn peer() -> PeerName {
    PeerName::new("example.org", 4433).unwrap()
}

fn print(number: u8) -> Fingerprint {
    Fingerprint::of(&[number])
}

#[test]
fn only_the_expected_key_passes() {
    let folder = Folder::new();
    let list = KnownPeers::at(folder.path("known_peers"));
    let first_use = Trust::FirstUse(list.clone());
    let verifier = |trust: &Trust| Verifier::new(trust, &peer()).unwrap();
    assert_eq!(verifier(&first_use).check(print(2)), Ok(()));
    list.record(&peer(), print(1), UNIX_EPOCH).unwrap();
    let any = Trust::AnyOf([print(7), print(1)].into());
    for trust in [first_use, Trust::Pinned(print(1)), any] {
        assert_eq!(verifier(&trust).check(print(1)), Ok(()));
        assert!(verifier(&trust).check(print(2)).is_err());
    }
}

#[test]
fn a_pin_does_not_touch_the_list() {
    let handle = TrustHandle::new(Trust::Pinned(print(1)), peer());
    assert!(handle.seen().set(Seen::Proven(print(1))).is_ok());
    assert_eq!(handle.settle(UNIX_EPOCH).unwrap(), TrustOutcome::Known);
}

/// Two connections meet an unknown server at the same time, and one of them reaches an impostor.
#[test]
fn two_first_uses_with_different_keys_are_not_both_accepted() {
    let folder = Folder::new();
    let list = KnownPeers::at(folder.path("known_peers"));
    let handles = [1, 2].map(|number| {
        let handle = TrustHandle::new(Trust::FirstUse(list.clone()), peer());
        assert!(handle.seen().set(Seen::Proven(print(number))).is_ok());
        handle
    });
    assert_eq!(handles[0].settle(UNIX_EPOCH).unwrap(), TrustOutcome::FirstUse(print(1)));
    assert_eq!(handles[0].settle(UNIX_EPOCH).unwrap(), TrustOutcome::Known);
    let error = handles[1].settle(UNIX_EPOCH).unwrap_err();
    assert!(matches!(error, SettleTrust::Untrusted(Untrusted::Changed { .. })), "{error}");
}

#[test]
fn a_damaged_entry_stops_the_connection_before_it_begins() {
    let folder = Folder::new();
    let list = KnownPeers::at(folder.path("known_peers"));
    std::fs::write(list.path(), "example.org:4433 SHA256:\n").unwrap();
    assert!(Verifier::new(&Trust::FirstUse(list), &peer()).is_err());
}
