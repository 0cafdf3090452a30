//! Metadata of files in messages.

use crate::packet::NotAResponse;
use crate::wire::{Reader, Writer};

/// Metadata. What is `None` is not said, or is not to be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// Bytes.
    pub size: Option<u64>,
    /// User and group, as numbers of the server.
    pub owner: Option<(u32, u32)>,
    /// Mode as of stat(2), with the kind of the file.
    pub mode: Option<u32>,
    /// Access and modification time in seconds since 1970. Version 3 has no fractions, and no times after 2106.
    pub times: Option<(u32, u32)>,
}

/// The kind of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A plain file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

/// A special file that takes bytes in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// It has no offsets.
    Fifo,
    /// A device.
    Device,
}

/// Bits that tell which parts follow.
const SIZE: u32 = 1;
const OWNER: u32 = 2;
const MODE: u32 = 4;
const TIMES: u32 = 8;
const EXTENDED: u32 = 0x8000_0000;

impl Attributes {
    /// The kind, if the mode tells it.
    pub fn kind(&self) -> Option<Kind> {
        Some(match self.mode? & 0o170_000 {
            0o100_000 => Kind::File,
            0o040_000 => Kind::Dir,
            0o120_000 => Kind::Link,
            0 => return None,
            _ => Kind::Special,
        })
    }

    /// The kind of a special file that takes bytes; `None` if the mode is that of another file.
    pub fn stream(&self) -> Option<Stream> {
        match self.mode? & 0o170_000 {
            0o010_000 => Some(Stream::Fifo),
            0o020_000 | 0o060_000 => Some(Stream::Device),
            _ => None,
        }
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let bit = |is_there: bool, bit: u32| if is_there { bit } else { 0 };
        writer.u32(
            bit(self.size.is_some(), SIZE)
                | bit(self.owner.is_some(), OWNER)
                | bit(self.mode.is_some(), MODE)
                | bit(self.times.is_some(), TIMES),
        );
        if let Some(size) = self.size {
            writer.u64(size);
        }
        if let Some((user, group)) = self.owner {
            writer.u32(user).u32(group);
        }
        if let Some(mode) = self.mode {
            writer.u32(mode);
        }
        if let Some((accessed, modified)) = self.times {
            writer.u32(accessed).u32(modified);
        }
    }

    // fuzz: sftp
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, NotAResponse> {
        let flags = reader.u32()?;
        let has = |bit: u32| flags & bit != 0;
        let attributes = Self {
            size: has(SIZE).then(|| reader.u64()).transpose()?,
            owner: has(OWNER).then(|| Ok((reader.u32()?, reader.u32()?))).transpose()?,
            mode: has(MODE).then(|| reader.u32()).transpose()?,
            times: has(TIMES).then(|| Ok((reader.u32()?, reader.u32()?))).transpose()?,
        };
        if has(EXTENDED) {
            // Each pair takes bytes of the message, so its length bounds the count.
            for _ in 0..reader.u32()? {
                reader.string()?;
                reader.string()?;
            }
        }
        Ok(attributes)
    }
}
