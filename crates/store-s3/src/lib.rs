//! A bucket of an S3-compatible service as a [`Store`](hikyaku_store::Store): Amazon S3, MinIO, Ceph, Wasabi and others.
//!
//! The feature `s3` is off by default, because it brings some 80 crates of others. Without it this crate has only what
//! reads a server's replies, so that these readers are tested and fuzzed with the rest.
//!
//! The crate `object_store` gives credentials (environment, web identity, containers, EC2), signatures and the HTTP client,
//! whose TLS is rustls with aws-lc-rs. The requests are made here (`wire`): the object interface of that crate has no keys
//! that end in `/`, which stand for empty directories, completes uploads without a condition, and fails a whole page of a
//! listing for one odd key.
//!
//! The store runs a tokio runtime of its own and blocks its callers. A directory is a prefix of keys; an empty one is a key
//! that ends in `/`. A file is read by ranges of the version that was opened (`If-Match`), and written in parts, several of
//! which are under way at once. There is no atomic rename, no link and no permission bit, and what is there is not changed
//! in place.
#![forbid(unsafe_code)]

mod reply;

#[cfg(feature = "s3")]
mod connect;
#[cfg(feature = "s3")]
mod draft;
#[cfg(feature = "s3")]
mod error;
#[cfg(feature = "s3")]
mod key;
#[cfg(feature = "s3")]
mod objects;
#[cfg(feature = "s3")]
mod open;
#[cfg(feature = "s3")]
mod parts;
#[cfg(feature = "s3")]
mod profile;
#[cfg(feature = "s3")]
mod settings;
#[cfg(feature = "s3")]
mod store;
#[cfg(feature = "s3")]
mod survey;
#[cfg(feature = "s3")]
mod wire;

#[cfg(all(test, feature = "s3"))]
mod tests;

pub use reply::read_anything;

#[cfg(feature = "s3")]
pub use connect::{Conditions, Parents, S3, S3Options};
#[cfg(feature = "s3")]
pub use error::S3Error;
#[cfg(feature = "s3")]
pub use survey::{Meant, Times, Walks};
