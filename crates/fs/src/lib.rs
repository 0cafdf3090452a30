//! File operations on behalf of a peer: confined to one directory, by descriptor, and never through
//! a symbolic link.
//!
//! A peer names files by [`PeerPath`], which cannot express `..`, an absolute path, or a NUL. A
//! [`Dir`] is a directory held open. Every operation resolves its names beneath that descriptor,
//! and the kernel refuses symbolic links on the way (`openat2` with `RESOLVE_BENEATH |
//! RESOLVE_NO_SYMLINKS`; without that call, `openat` with `O_NOFOLLOW` for each component). So
//! there is no gap between checking a path and using it in which another process could exchange a
//! directory for a link.
//!
//! What a path of the local user's means as a target is a [`Target`]. A destination file is written as a [`Draft`]. A
//! source is read beneath a [`Tree`], which follows symbolic links only if the local user asked for that. Mode, times and
//! owner are set through the open descriptor. State that another user can have made is not believed ([`trust()`]).
//!
//! Names and texts of a peer are printed only as [`Shown`], which escapes terminal control
//! characters.
#![forbid(unsafe_code)]

mod attributes;
mod descriptor;
mod dir;
mod draft;
mod error;
mod escape;
mod incoming;
mod list;
mod lock;
mod partial;
mod path;
mod shown;
mod sparse;
mod stream;
mod system;
mod target;
mod trust;
mod umask;
mod volume;
mod whole;
mod words;

pub use attributes::{Named, attributes, set_attribute};
pub use descriptor::{descriptor_number, open_descriptor};
pub use dir::{
    CHANGED, Dir, Entry, Folder, Kind, Links, Meta, Names, Owner, Replace, Resolve, Special, Tree,
};
pub use draft::{Draft, Manner, Zeros, remove_unfinished};
pub use error::FsError;
pub use escape::{escaped, unescaped};
pub use incoming::{Incoming, read_incoming};
pub use list::{Lines, Step, read_list};
pub use partial::{PARTIAL_SUFFIX, Token};
pub use path::{Name, PathError, PeerPath, dirs_above};
pub use shown::{Shown, brief, cut, sentence};
pub use sparse::{holes, punch, write_sparse};
pub use stream::{Patience, Stream};
pub use target::{Device, FilePlace, Spot, Target};
pub use trust::{Distrust, Others, Owners, trust, trust_list};
pub use umask::umask;
pub use volume::{Volume, Volumes, is_sizeless};
pub use whole::{write_private, write_whole};
pub use words::{Unresolved, reworded, words};
