//! Changes of the store.

#[cfg(doc)]
use super::{Reply, SMALL_BYTES_MAX};
use hikyaku_store::{Identity, Kind, Time};
use serde::{Deserialize, Serialize};

/// A change of the store. A server that may not be written to refuses it as `ReadOnly`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Edit {
    /// The bytes behind the message are written into a file. Answered by [`Reply::Done`].
    // spec: store-write-2
    Write {
        /// The path.
        path: Vec<u8>,
        /// Which file it must be; another one of the path is answered with `Changed`.
        identity: Identity,
        /// Where the bytes go.
        at: u64,
        /// How many, at most [`SMALL_BYTES_MAX`].
        length: u32,
    },
    /// An empty file is made; `Exists` if the name is taken. Answered by [`Reply::Looked`].
    Create {
        /// The path.
        path: Vec<u8>,
        /// Permission bits.
        mode: u32,
    },
    /// A file is cut off or extended by zeros. Answered by [`Reply::Looked`].
    SetLength {
        /// The path.
        path: Vec<u8>,
        /// Its new size.
        size: u64,
    },
    /// Metadata are changed. Answered by [`Reply::Looked`].
    Change {
        /// The path.
        path: Vec<u8>,
        /// Permission bits, if they change.
        mode: Option<u32>,
        /// The modification time, if it changes.
        modified: Option<Time>,
    },
    /// A directory is made. Answered by [`Reply::Looked`].
    MakeDir {
        /// The path.
        path: Vec<u8>,
        /// Permission bits.
        mode: u32,
    },
    /// A symbolic link is made. Answered by [`Reply::Looked`].
    MakeLink {
        /// The path.
        path: Vec<u8>,
        /// Its text.
        text: Vec<u8>,
    },
    /// A name is removed. A directory must be empty. Answered by [`Reply::Done`].
    Remove {
        /// The path.
        path: Vec<u8>,
        /// What it must be.
        kind: Kind,
    },
    /// A name is changed. Answered by [`Reply::Done`].
    Rename {
        /// The path.
        from: Vec<u8>,
        /// The new path.
        to: Vec<u8>,
        /// Whether an entry of the new name is replaced; if not, it is answered with `Exists`.
        replaces: bool,
    },
    /// The bytes of a file, its metadata, and its name or the entries of a directory are made durable. Answered by
    /// [`Reply::Done`].
    // spec: store-write-3
    Sync {
        /// The path.
        path: Vec<u8>,
    },
    /// The bytes behind the message are written behind the end of a file, wherever that is. Answered by [`Reply::Looked`].
    // spec: store-append-1
    Append {
        /// The path.
        path: Vec<u8>,
        /// Which file it must be.
        identity: Identity,
        /// How many, at most [`SMALL_BYTES_MAX`].
        length: u32,
    },
    /// The name of a file is removed, and this client goes on with the file under its path until it removes that. The name
    /// must begin with [`HIDDEN_PREFIX`](crate::HIDDEN_PREFIX). Answered by [`Reply::Done`].
    // spec: store-withdraw-1
    Withdraw {
        /// The path.
        path: Vec<u8>,
    },
}

impl Edit {
    /// The paths that the change touches; the last one is that which is there, or is gone, afterwards.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        let (before, path) = match self {
            Self::Rename { from, to, .. } => (Some(from), to),
            Self::Write { path, .. }
            | Self::Append { path, .. }
            | Self::Create { path, .. }
            | Self::SetLength { path, .. }
            | Self::Change { path, .. }
            | Self::MakeDir { path, .. }
            | Self::MakeLink { path, .. }
            | Self::Remove { path, .. }
            | Self::Withdraw { path }
            | Self::Sync { path } => (None, path),
        };
        before.into_iter().chain([path]).map(Vec::as_slice)
    }

    pub(super) const fn tail(&self) -> u64 {
        match self {
            Self::Write { length, .. } | Self::Append { length, .. } => *length as u64,
            _ => 0,
        }
    }
}
