//! Messages of leases: what a client may rely on without asking, until the server takes it back.

use hikyaku_store::Found;
use serde::{Deserialize, Serialize};

/// A request about leases. A server without them refuses it.
// spec: store-feature-5
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Lease {
    /// The client holds its leases under this name, which it has drawn at random, over this connection and later ones.
    /// Answered by any number of [`Reply::Recall`](super::Reply::Recall).
    Hear {
        /// The name.
        holder: Holder,
    },
    /// The entries of a directory, and a lease of it, if nobody else holds one that excludes it. Answered by
    /// [`Reply::Leased`](super::Reply::Leased) before the entries of each directory that is leased; otherwise as
    /// [`Request::List`](super::Request::List).
    // spec: store-lease-1
    Take {
        /// The directory.
        path: Vec<u8>,
        /// What is wanted of it. Directories below it are leased for reading.
        extent: Extent,
        /// As of [`Request::List`](super::Request::List).
        ahead: u32,
    },
    /// The client is there. Answered by [`Reply::Done`](super::Reply::Done).
    Renew,
    /// The client relies on this lease no more, and all that it has changed under it is made. No answer.
    GiveBack {
        /// The number of the lease.
        lease: u64,
    },
}

/// The name of a client that holds leases, or of its process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Holder(pub [u8; 16]);

/// What a lease of a directory allows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Extent {
    /// Names, metadata and contents of the files in the directory are as they were told. Any number of clients may hold it.
    Read,
    /// Nobody else reads or changes them. The client may decide on changes itself and tell them later.
    Write,
}

/// A lease that was granted, told before the entries of its directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Leased {
    /// The directory, relative to the root of the store.
    pub dir: Vec<u8>,
    /// The number of the lease.
    pub lease: u64,
    /// What it allows.
    pub extent: Extent,
    /// The metadata of the directory.
    pub found: Found,
}
