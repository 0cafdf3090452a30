//! Files of a web server as a store. It cannot be written to.
//!
//! The root of an [`HttpStore`] is the directory of a URL, or the server's root. The URL's own file has the name under which
//! a download saves it, which the server may choose (`Content-Disposition`). Every other path is the URL below that
//! directory, without a query. HTTP has no listing of directories: [`Store::list`](hikyaku_store::Store::list) is not
//! supported, and only a file can be the root of a walk.
//!
//! - A file has a [`Version`](hikyaku_store::Version) if the server sends a strong entity tag. An answer is compared with
//!   the first one before a byte of it is used: entity tag, date, size and coding. Parts of two versions are never mixed.
//! - If a server sends neither an entity tag nor a date, an open file delivers the bytes of one answer only.
//! - If a server sends no ranges, a read skips the bytes before it.
//! - A request that fails for a reason that may pass is repeated for the bytes that are missing.
//!
//! Connections stay open between requests. Each call that waits for a server has a connection of its own, so that the
//! parallel readers of a file have as many connections.
#![forbid(unsafe_code)]

mod error;
mod fetcher;
mod found;
mod mirrors;
mod open;
mod opened;
mod shared;
mod standing;
mod store;

pub use hikyaku_net::Memory;
pub use mirrors::{Hearing, Mirrors};
pub use store::{Conduct, HttpStore, OpenError};
