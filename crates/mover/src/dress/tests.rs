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

#[test]
fn a_store_with_an_umask_of_its_own_makes_new_files_and_directories_with_the_bits_of_the_source() {
    let there = found(Kind::File, 0o600);
    let dress = USUAL.within(Umask::Store);
    assert_eq!((dress, USUAL.within(Umask::Caller)), (Dress::OfStore, USUAL));
    assert_eq!(Dress::Kept.within(Umask::Store), Dress::Kept);
    assert_eq!(dress.file_mode(0o4666, None), FileMode::Made(0o666));
    assert_eq!(dress.file_mode(0o666, Some(&there)), FileMode::Exact(0o600));
    assert_eq!(dress.new_dir(0o2555), 0o755);
    assert_eq!(dress.lent_by_store(0o555, DirState::Made), Some(0o200));
    assert_eq!(dress.lent_by_store(0o755, DirState::Made), None);
    assert_eq!(dress.lent_by_store(0o555, DirState::There), None);
    assert_eq!(Dress::Kept.lent_by_store(0o555, DirState::Made), None);
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
        (Dress::Kept, 0o1777, DirState::Made, 0o1777, Some((Some(0o1777), Some(time)))),
        (Dress::Kept, 0o6500, DirState::There, 0o700, Some((Some(0o500), Some(time)))),
    ] {
        let meta = DirMeta::of(&found(Kind::Dir, mode));
        assert_eq!(dress.new_dir(mode), new, "{dress:?} {mode:o}");
        let change = dress.filled_dir(meta, state);
        let found = change.map(|change| (change.mode, change.modified));
        assert_eq!(found, filled, "{dress:?} {mode:o} {state:?}");
    }
}
