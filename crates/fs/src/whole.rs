//! A file that is written at once, by its whole content.

use crate::dir::{Meta, Replace};
use crate::draft::Draft;
use crate::error::FsError;
use crate::partial::Token;
use crate::stream::Patience;
use crate::target::{Spot, Target};
use crate::umask::umask;
use rustix::io::Errno;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Writes `bytes` to a path of the local user's. No reader of a regular file sees a part of them: a new file replaces the
/// old one, whose mode it keeps. Only where the directory may not be written to the old file itself is written over. A FIFO
/// or a device is written into.
///
/// # Errors
///
/// The path is a directory or a socket, or it cannot be written to.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, 0o666 & !umask()).map_err(of_system)
}

/// Writes a file as [`write_whole`] does, but only its owner may read it if it is new.
///
/// # Errors
///
/// As [`write_whole`].
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, 0o600).map_err(of_system)
}

fn of_system(error: FsError) -> io::Error {
    match error.errno() {
        Some(errno) => errno.into(),
        None => io::Error::new(io::ErrorKind::PermissionDenied, error.reason()),
    }
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FsError> {
    let shown = path.as_os_str().as_bytes();
    match Target::of(path)? {
        Target::Dir => Err(FsError::is_dir(shown)),
        Target::Name(spot) if spot.must_be_dir => Err(FsError::new("write", shown, Errno::NOENT)),
        Target::Name(spot) => replace(spot, bytes, mode),
        Target::Stream(device) => {
            let spot = Spot::of(path)?;
            let stream = device.open(Patience::endless())?;
            let draft = Draft::stream(stream, Arc::new(spot.dir), spot.name);
            draft.pour(|to| to.write_all(bytes))
        }
    }
}

fn replace(spot: Spot, bytes: &[u8], mode: u32) -> Result<(), FsError> {
    let old = spot.dir.meta(&spot.name)?.filter(|old| old.kind == crate::Kind::File);
    let mode = old.map_or(mode, |old| old.mode);
    let dir = Arc::new(spot.dir);
    let draft = match Draft::create(dir.clone(), &spot.name, &Token::random()?) {
        // The file may be written to, and its directory may not.
        Err(error) if error.errno() == Some(Errno::ACCESS) && old.is_some() => {
            Draft::in_place(dir, &spot.name)?
        }
        created => created?,
    };
    draft.write_at(0, bytes, crate::Zeros::Written)?;
    draft.set_length(bytes.len() as u64)?;
    // A file system without modes keeps its own.
    let _ = draft.with(|file| Meta::set_mode(file, mode));
    draft.name(Replace::Allowed).map(drop)
}
