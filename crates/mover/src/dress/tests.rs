//! A table of bits.

use super::*;
use hikyaku_store::{Identity, Owner};

fn found(kind: Kind, mode: u32) -> Found {
    Found {
        kind,
        size: 7,
        allocated: 7,
        mode,
        owner: Owner::default(),
        modified: Time { secs: 5, nanos: 0 },
        identity: Identity { device: 1, number: 1 },
        version: None,
    }
}

const USUAL: Dress = Dress::Usual { umask: 0o027 };

#[test]
fn a_file_that_is_replaced_keeps_its_bits_unless_those_of_the_source_are_kept() {
    for (dress, mode, there, wanted) in [
        (USUAL, 0o4775, None, 0o750),
        (USUAL, 0o666, Some(found(Kind::File, 0o600)), 0o600),
        (USUAL, 0o666, Some(found(Kind::Link, 0o777)), 0o640),
        (Dress::Kept, 0o6775, Some(found(Kind::File, 0o600)), 0o775),
        (Dress::Kept, 0o600, None, 0o600),
    ] {
        assert_eq!(dress.file(mode, there.as_ref()), wanted, "{dress:?} {mode:o} {there:?}");
    }
    let same = |dress: Dress, mode| dress.same_file(mode, &found(Kind::File, 0o640));
    assert_eq!(same(USUAL, 0o777), None);
    assert_eq!(same(Dress::Kept, 0o4640), None);
    assert_eq!(same(Dress::Kept, 0o400).and_then(|change| change.mode), Some(0o400));
}

#[test]
fn a_directory_gets_its_bits_when_it_is_filled_and_keeps_the_sticky_one() {
    let time = Time { secs: 5, nanos: 0 };
    for (dress, mode, state, new, filled) in [
        (USUAL, 0o1777, DirState::Made, 0o1750, None),
        (USUAL, 0o2555, DirState::Made, 0o750, Some((Some(0o550), None))),
        (USUAL, 0o777, DirState::There, 0o750, None),
        (Dress::Kept, 0o1777, DirState::Made, 0o1777, Some((None, Some(time)))),
        (Dress::Kept, 0o6500, DirState::There, 0o700, Some((Some(0o500), Some(time)))),
    ] {
        let meta = DirMeta::of(&found(Kind::Dir, mode));
        assert_eq!(dress.new_dir(mode), new, "{dress:?} {mode:o}");
        let change = dress.filled_dir(meta, state);
        let found = change.map(|change| (change.mode, change.modified));
        assert_eq!(found, filled, "{dress:?} {mode:o} {state:?}");
    }
}
