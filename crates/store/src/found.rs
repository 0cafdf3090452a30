//! Metadata of files.
//!
//! A server sends these types as they are: the order of the fields and of the variants is part of its protocol.

use serde::{Deserialize, Serialize};

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// A plain file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket, a device, or a file whose size the store cannot determine. A store lists it and does not read it.
    Special,
}

/// A point in time: seconds since 1970 in UTC, and nanoseconds below a second.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Time {
    /// Seconds; negative before 1970.
    pub secs: i64,
    /// Nanoseconds, below 1,000,000,000.
    pub nanos: u32,
}

/// The owner of a file, as numbers of the machine that stores it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Owner {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
}

/// The identity of a file. Two names with one identity refer to the same file (hard links).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// The device or file system.
    pub device: u64,
    /// The file's number on the device.
    pub number: u64,
}

/// A hash that identifies the content of a file. Equal versions mean equal bytes (rule R2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Version(pub [u8; 32]);

/// Metadata of a name. For a symbolic link it is that of the link itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Found {
    /// The kind of the entry.
    pub kind: Kind,
    /// Bytes of a file; of a link the length of its text.
    pub size: u64,
    /// Bytes of storage in use. Fewer than `size` means that the file has holes.
    pub allocated: u64,
    /// Permission bits (0o7777).
    pub mode: u32,
    /// The owner.
    pub owner: Owner,
    /// The modification time of the content.
    pub modified: Time,
    /// The identity of the file.
    pub identity: Identity,
    /// The version of the content. `None` while the store cannot guarantee that a change would
    /// change it.
    pub version: Option<Version>,
}

/// The space of a store, in bytes and files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Space {
    /// Bytes that the caller may still write.
    pub free: u64,
    /// Bytes in total.
    pub total: u64,
    /// Files that may still be created, if that is limited.
    pub files: Option<u64>,
}
