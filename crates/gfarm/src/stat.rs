//! Metadata of a file, as gfmd tells it.

use crate::code::Reader;
use crate::error::CallError;
use std::io::Read;

/// The bits of a mode that tell the kind, and their values.
const KIND_MASK: u32 = 0o170_000;
const KIND_DIR: u32 = 0o040_000;
const KIND_FILE: u32 = 0o100_000;
const KIND_LINK: u32 = 0o120_000;

/// The content of a file: equal handles mean equal bytes, because the generation grows when a writer closes the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle {
    /// The number of the file in the file system.
    pub inode: u64,
    /// The number of its content, counted up by each writer.
    pub generation: u64,
}

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// Something else.
    Other,
}

/// A point in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Time {
    /// Seconds since 1970.
    pub secs: i64,
    /// Nanoseconds below a second.
    pub nanos: u32,
}

/// What gfmd knows of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Inode and generation.
    pub handle: Handle,
    /// Its kind.
    pub kind: Kind,
    /// Permission bits (0o7777).
    pub mode: u32,
    /// The owner's name at the servers.
    pub user: String,
    /// The group's name at the servers.
    pub group: String,
    /// Bytes of the file.
    pub size: u64,
    /// Replicas of the file.
    pub copies: u64,
    /// When the content changed last.
    pub modified: Time,
}

impl Stat {
    // fuzz: gfarm
    pub(crate) fn read(reply: &mut Reader<impl Read>) -> Result<Self, CallError> {
        let handle = Handle { inode: reply.count()?, generation: reply.count()? };
        let mode = reply.int()?.cast_unsigned();
        let _links = reply.long()?;
        let (user, group) = (reply.word()?, reply.word()?);
        let (size, copies) = (reply.count()?, reply.count()?);
        let [_accessed, modified, _changed] = [time(reply)?, time(reply)?, time(reply)?];
        let kind = match mode & KIND_MASK {
            KIND_FILE => Kind::File,
            KIND_DIR => Kind::Dir,
            KIND_LINK => Kind::Link,
            _ => Kind::Other,
        };
        Ok(Self { handle, kind, mode: mode & 0o7777, user, group, size, copies, modified })
    }
}

fn time(reply: &mut Reader<impl Read>) -> Result<Time, CallError> {
    let (secs, nanos) = (reply.long()?, reply.int()?);
    match u32::try_from(nanos) {
        Ok(nanos) if nanos < 1_000_000_000 => Ok(Time { secs, nanos }),
        _ => Err(CallError::Protocol("more nanoseconds than a second has")),
    }
}
