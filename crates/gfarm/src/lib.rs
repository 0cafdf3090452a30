//! A client of Gfarm's own protocol.
//!
//! A Gfarm file system has a metadata server (gfmd) and file-system nodes (gfsd). [`Metadata`] is a session with gfmd: it
//! knows names, sizes and replicas. A [`Spool`] is a connection to one gfsd: it has the bytes. A file is whole on each node
//! that has a replica of it.
//!
//! To read a file, the client opens it at gfmd and takes the number of the open file to a node of its choice. The node
//! accepts it because both connections belong to one [`Process`], which the client has announced to gfmd under a random
//! key. Each connection to a node needs a number of its own.
//!
//! To write a file, the client makes it at gfmd ([`Metadata::create`]) and chooses one of the nodes that gfmd offers
//! ([`Metadata::schedule`]). All writers of an open file use the same node.
//!
//! [`Config`] reads the files and the environment that Gfarm's own programs read, so a user for whom `gfls` works needs no
//! other settings.
//!
//! The client authenticates by a shared secret (`~/.gfarm_shared_key`). Gfarm sends the file data of such a connection
//! without encryption and without a checksum; TCP's checksum is the only protection.
#![forbid(unsafe_code)]

mod account;
mod code;
mod config;
mod error;
mod link;
mod local;
mod login;
mod metadata;
mod process;
mod reply;
mod request;
mod spool;
mod stat;

#[cfg(test)]
mod tests;

pub use account::{Account, Dial, KeyError, SharedKey};
pub use config::{Address, Config, ConfigError};
pub use error::{CallError, Code, ConnectError};
pub use local::is_local;
pub use metadata::{Each, Metadata, OpenFile, Place};
pub use process::Process;
pub use reply::{Candidate, Entry, Host, Replica, Space, readable};
pub use spool::{End, Spool};
pub use stat::{Handle, Kind, Stat, Time};
