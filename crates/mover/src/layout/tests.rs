//! Every target with every source.

use super::AtTarget::{Dir, File, Nothing, Special, Stream};
use super::*;

use FileKind::{Dir as Tree, File as One};
use Renamed::{Allowed, Contents, ContentsBeside, Never};
use Written::{AsDirectory, AsName};

/// The target, the source, and the place of the source.
type Row = ((AtTarget, Written), (FileKind, Renamed), Result<TargetLayout, NoPlace>);

#[test]
fn a_target_means_the_same_wherever_it_is() {
    use NoPlace::{NoDirectory, NoDirectoryForSeveral, NotDirectory, Special as Left};
    use TargetLayout as L;
    let table: &[Row] = &[
        ((Dir, AsName), (One, Allowed), Ok(L::Into)),
        ((Dir, AsDirectory), (Tree, Allowed), Ok(L::Into)),
        ((Dir, AsName), (One, Never), Ok(L::Into)),
        ((Dir, AsName), (Tree, Contents), Ok(L::Contents)),
        ((Dir, AsName), (Tree, ContentsBeside), Ok(L::Contents)),
        ((File, AsName), (One, Allowed), Ok(L::NewName)),
        ((File, AsDirectory), (One, Allowed), Err(NotDirectory)),
        ((File, AsName), (Tree, Allowed), Err(NotDirectory)),
        ((File, AsName), (One, Never), Err(NotDirectory)),
        ((File, AsName), (Tree, Contents), Err(NotDirectory)),
        ((Stream, AsName), (One, Allowed), Ok(L::Stream)),
        ((Stream, AsName), (One, Never), Err(NotDirectory)),
        ((Stream, AsName), (Tree, Allowed), Err(NotDirectory)),
        ((Special, AsName), (One, Allowed), Err(Left)),
        ((Special, AsDirectory), (One, Allowed), Err(NotDirectory)),
        ((Nothing, AsName), (One, Allowed), Ok(L::NewName)),
        ((Nothing, AsDirectory), (One, Allowed), Err(NoDirectory)),
        ((Nothing, AsDirectory), (Tree, Allowed), Ok(L::NewName)),
        ((Nothing, AsName), (One, Never), Err(NoDirectoryForSeveral)),
        ((Nothing, AsName), (Tree, ContentsBeside), Err(NoDirectoryForSeveral)),
        ((Nothing, AsName), (Tree, Contents), Ok(L::NewContents)),
    ];
    for &(target, source, wanted) in table {
        assert_eq!(TargetLayout::of(target, source), wanted, "{target:?} {source:?}");
    }
}

#[test]
fn only_a_single_source_gives_its_name_up() {
    assert_eq!(Renamed::of(1, Meant::Itself), Allowed);
    assert_eq!(Renamed::of(2, Meant::Itself), Never);
    assert_eq!(Renamed::of(1, Meant::Contents), Contents);
    assert_eq!(Renamed::of(2, Meant::Contents), ContentsBeside);
    assert_eq!(Renamed::of(2, Meant::List), Contents);
}
