//! Storage as the rest of the product sees it.
//!
//! A [`Store`] is a tree of files, directories and symbolic links: a directory of this machine, a Gfarm file system, a
//! bucket. Code that copies files works on any `Store`.
//!
//! A store behind a long path hides round trips: [`Store::walk`] lists a whole tree, [`Store::batch`] does many small
//! operations, [`fetchers`] opens channels that read files, and a [`Draft`] may still be writing when
//! [`Draft::write_at`] has returned.
//!
//! # Rules
//!
//! Every implementation keeps these rules, and the suite in [`testing`] has cases for each.
//!
//! - **R1, short reads.** [`Open::read_at`] returns fewer bytes than asked only at the end of the file, and 0 only if
//!   the file still has the version that it was opened with and the offset is at or behind its size. In any other case
//!   it returns an error. A short read never looks like an end of file.
//! - **R2, versions.** Two equal [`Version`]s of a file mean equal bytes. A version is `None` while the store cannot
//!   promise that, for example while the modification time of a local file is so young that a second write could have
//!   the same one.
//! - **R3, drafts.** A [`Draft`] is not listed and cannot be opened by its final name until [`Draft::name`] returns.
//!   Naming is atomic: a reader sees the old file or the whole new one.
//! - **R4, power failures.** What was synced ([`Draft::sync`] or [`Open::sync`], then [`Store::sync`] of the
//!   directory) survives a crash. Other bytes may be lost, but no name ever shows a part of a draft.
//! - **R5, parallel writers.** Writers of disjoint ranges never disturb each other. Of overlapping writes one remains.
//! - **R6, paths.** A path is relative to the root and never follows a symbolic link. A store that cannot hold a name
//!   refuses it with [`ErrorKind::BadName`].
//! - **R7, errors.** Every failure is one [`ErrorKind`]; a store that lacks an ability returns
//!   [`ErrorKind::Unsupported`] and does not pretend.
//! - **R8, holes.** Where [`Abilities::holes`] is set, ranges that were never written take no room and
//!   [`Open::extents`] reports them as [`Extent::Hole`]. Elsewhere they are zeros and reported as data.
//! - **R9, walks.** [`Store::walk`] reports a directory before its entries, each path once and what [`Store::look`] reports
//!   of it, follows no link, and goes on after an entry or a directory that it cannot read, which it reports.
//! - **R10, batches.** [`Store::batch`] returns exactly one result for each operation. Operations on one path take effect in
//!   their order, and a failed one does not affect the others.
//! - **R11, order of bytes.** A draft takes bytes in the order that [`Abilities::writes`] names. Of another order it makes
//!   the right file or an error, never another file.
//!
//! Calls block, as system calls do. A caller that must not wait makes them on a thread of its own.
#![forbid(unsafe_code)]

mod abilities;
mod batch;
mod begun;
mod descent;
mod error;
mod faulty;
mod fetch;
mod found;
mod lead;
mod memory;
mod path;
mod store;
pub mod testing;
mod walk;

pub use abilities::{Abilities, Ability, Clock, Identities, Latency, Umask, Versions, Writes};
pub use batch::{Op, Put, Reply, do_at_once, do_one, runs};
pub use begun::{Begun, Left, Note, left_here, left_over};
pub use descent::Descent;
pub use error::{Doing, ErrorKind, Result, StoreError, doing};
pub use faulty::{Fault, Faulty, Operation, When};
pub use fetch::{
    Asked, Begins, ConnectionCount, Cut, Cutting, FetchError, Fetcher, FetcherTraits, Heads,
    Incomplete, Paced, Segment, Segments, Wanted, fetcher, fetcher_by_file, fetcher_of_files,
    fetchers,
};
pub use found::{Found, Identity, Kind, Owner, Space, Time, Version};
pub use lead::{End, Last, Led, Root, Step, follow_by_names, lead};
pub use memory::Memory;
pub use path::StorePath;
pub use store::{
    Access, Attribute, Change, Cursor, Draft, Extent, Finish, Growing, Item, Make, Naming, Open,
    Page, Place, Replace, Store, SyncScope, Token,
};
pub use walk::{ContentToken, Entry, walk_by_listing, walk_dirs};
