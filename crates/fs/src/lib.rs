//! The file system as a peer may use it: beneath one directory, by descriptor, never through a link.
//!
//! A peer names files by [`PeerPath`], which cannot say `..`, an absolute path, or a NUL. A [`Dir`]
//! is a directory held open; every operation resolves its names beneath that descriptor, and the
//! kernel refuses links on the way (`openat2` with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`; where it
//! is missing, one component after another with `O_NOFOLLOW`). So it does not matter who exchanges
//! a directory for a link in between: no string is checked first and used later.
//!
//! What a file is given (mode, times, owner) it is given through its open descriptor.
//!
//! Names and texts of a peer reach a terminal only as [`Shown`].
#![forbid(unsafe_code)]

mod attributes;
mod dir;
mod error;
mod path;
mod shown;
mod sparse;
mod temp;

pub use attributes::{Named, attributes, set_attribute};
pub use dir::{Dir, Entry, Kind, Meta, Replace, Resolve};
pub use error::FsError;
pub use path::{Name, PathError, PeerPath};
pub use shown::{Shown, sentence};
pub use sparse::{holes, punch, write_sparse};
pub use temp::{Manner, NewFile, PARTIAL_SUFFIX};
