//! A Gfarm file system as a [`Store`](hikyaku_store::Store), and each of its nodes as a source of files.
//!
//! [`Gfarm`] is the store: a file is read from one of the nodes that have a replica of it, and a new file is written to
//! one of the nodes that gfmd offers. An existing file is not changed, only replaced. A download
//! from many nodes at once uses [`survey()`], which returns every file below a path with the nodes that have it, and a
//! [`Node`] for each of them.
//!
//! A daemon on a node reads the node's own replicas by the descriptors that gfsd hands out ([`Here`]).
//!
//! A version is a hash of inode and generation. Gfarm counts the generation up when a writer closes the file, so equal
//! versions mean equal bytes, except while a writer has the file open and writes into the replica that is read.
#![forbid(unsafe_code)]

mod batch;
mod convert;
mod draft;
mod gfarm;
mod here;
mod lane;
mod node;
mod open;
mod opens;
mod place;
mod pool;
mod store;
mod survey;
mod update;
mod walk;

#[cfg(test)]
mod tests;

pub use gfarm::{ConnectGfarm, Gfarm, Here, Trouble};
pub use hikyaku_gfarm::Dial;
pub use node::Node;
pub use survey::{Survey, Surveyed, survey};
