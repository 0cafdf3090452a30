//! A directory of this machine as a [`Store`](hikyaku_store::Store).
//!
//! Every path is resolved beneath a directory that is held open, and no symbolic link is followed (`hikyaku-fs`). A
//! draft is a file with a name of its own (`.NAME.TOKEN.hikyaku`) in the directory of its final name, locked by its
//! writer. Such names are not listed and cannot be used for files.
//!
//! A version is a hash of device, inode, size, modification time and change time. It is `None` while the change time
//! is younger than two seconds: a second write within the resolution of the clock would not change it.
#![forbid(unsafe_code)]

mod change;
mod convert;
mod draft;
mod grown;
mod listing;
mod local;
mod open;
mod walk;
mod whole;

pub use convert::Sizes;
pub use local::{Local, NewModes, Opening};
pub use whole::{Folder, Reached, Whole, name_all};
