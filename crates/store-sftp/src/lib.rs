//! A directory of an SFTP server as a [`Store`](hikyaku_store::Store).
//!
//! [`Sftp`] is the store. All of its requests go over one [`Client`](hikyaku_sftp::Client), which has many requests under
//! way: a file is read and written with a window of requests, a walk lists many directories at once, and a batch sends the
//! requests of one kind for all of its operations together.
//!
//! A draft is a file beside its final name, named as all unfinished files are. It is written at any offset, gets its
//! metadata, and is then renamed. Naming is atomic where the server has `posix-rename@openssh.com`; another server cannot
//! replace a file, and naming fails with `Exists`.
//!
//! The protocol (version 3) has limits that the store shows to its callers:
//!
//! - Times are whole seconds from 1970 to 2106, and identities of files do not exist: an identity is that of a path.
//! - No request refuses symbolic links in the middle of a path. The store checks each directory once, when it first uses
//!   the directory. A link that another program puts in its place after that is followed.
//! - There are no locks. A draft has one writer within one store only.
//! - A server without `fsync@openssh.com` chooses itself when bytes reach its disk.
#![forbid(unsafe_code)]

mod batch;
mod change;
mod convert;
mod draft;
mod explain;
mod fetcher;
mod known;
mod listing;
mod named;
mod open;
mod put;
mod reading;
mod settle;
mod store;
#[cfg(test)]
mod tests;
mod walk;

pub use named::Named;
pub use reading::{Files, Flow};
pub use settle::{Reached, SyncDirs};
pub use store::Sftp;
