//! Everything that holds files, by what a user writes for it: a [`Location`].
#![forbid(unsafe_code)]

mod location;

pub use location::{GfarmPath, Location, LocationError, Remote, S3Path};
