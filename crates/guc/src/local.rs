//! Files of this machine.

use anyhow::Result;
use hikyaku_fs::{Dir, Draft, FilePlace, Meta, Name, PeerPath, Zeros, umask};
use std::sync::Arc;

/// Who has made a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Made {
    /// It was there, or is no file of a part.
    Before,
    /// This command.
    Here,
}

/// The file itself, to write a part of it; it is made if it is not there.
pub(crate) fn in_place(place: &FilePlace) -> Result<(Draft, Made)> {
    let mut made = Made::Before;
    if place.dir.meta(&place.name)?.is_none() {
        let file = place.dir.create(&place.name)?;
        made = Made::Here;
        // A file system without modes keeps its own.
        let _ = Meta::set_mode(&file, 0o666 & !umask());
    }
    Ok((Draft::in_place(Arc::clone(&place.dir), &place.name)?, made))
}

/// Removes a file that was made here for a part that did not come.
pub(crate) fn remove_made(place: &FilePlace, made: Made) {
    if made == Made::Here {
        // That the part did not come is told in either case.
        let _ = place.dir.remove_file(&place.name);
    }
}

/// Gives a complete file its name.
pub(crate) fn finish(place: &FilePlace, draft: &Draft) -> Result<()> {
    place.complete(draft)?;
    Ok(place.give_name(draft)?)
}

/// The directory `name` in `dir`, which is made if it is not there.
pub(crate) fn directory(dir: &Dir, name: &Name) -> Result<Dir> {
    if dir.meta(name)?.is_some() {
        return Ok(dir.dir(&PeerPath::new(name.as_bytes())?)?);
    }
    let made = dir.make_dir(name)?;
    // A file system without modes keeps its own.
    let _ = Meta::set_mode(&made, 0o777 & !umask());
    Ok(made)
}

/// Stores bytes of a download.
pub(crate) fn store(draft: &Draft, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    draft.write_at(offset, bytes, Zeros::Written).map_err(std::io::Error::other)
}
