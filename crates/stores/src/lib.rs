//! Everything that holds files, by what a user writes for it.
//!
//! A [`Location`] is what a user has written, and [`open()`] opens it as one or several stores. This crate is the only one that
//! knows all kinds of storage.
#![forbid(unsafe_code)]

mod location;
mod open;

pub use hikyaku_reach::dial::Ending;
pub use location::{GfarmPath, Location, LocationError, Remote, S3Path};
pub use open::{HasAll, Holder, OpenError, Opened, Opening, code_of, open};
