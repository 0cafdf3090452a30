//! The messages of version 3: requests of a client, responses of a server.

use crate::attributes::Attributes;
use crate::extensions::Extension;
use crate::wire::{Reader, Writer};
use std::fmt;

/// The version of the protocol that this crate speaks. Every server has it.
pub const VERSION: u32 = 3;
/// The longest message that is accepted, in bytes without its length: what OpenSSH sends at most.
pub const PACKET_BYTES_MAX: usize = 256 << 10;
/// Bytes of a file in one READ or WRITE. Every server must take 32 KiB (section 3); some refuse more.
pub const DATA_BYTES_MAX: usize = 32 << 10;
/// Bytes of a response that is neither a part of a file nor of a listing: a text, a path, metadata.
const PLAIN_BYTES_MAX: usize = 16 << 10;

/// The first message of a server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Version {
    /// The version of the protocol.
    pub number: u32,
    /// Extensions by their names, with their data.
    pub extensions: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Version {
    /// Whether the server has an extension.
    pub fn has(&self, wanted: Extension) -> bool {
        let (name, data) = wanted.words();
        let is_it = |(known, says): &(Vec<u8>, Vec<u8>)| {
            known == name.as_bytes() && says == data.as_bytes()
        };
        self.extensions.iter().any(is_it)
    }

    /// The request that gives a file a new name, in place of what has the name if the server can do that.
    pub fn renaming<'a>(&self, from: &'a [u8], to: &'a [u8]) -> Request<'a> {
        match self.has(Extension::PosixRename) {
            true => Request::PosixRename(from, to),
            false => Request::Rename(from, to),
        }
    }
}

/// A message to a server. Paths are bytes; a relative one begins at the user's home directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// Opens a file.
    Open {
        /// The file.
        path: &'a [u8],
        /// Bits of [`Request::READ`] and others.
        flags: u32,
        /// Metadata of a new file.
        attributes: Attributes,
    },
    /// Closes a handle.
    Close(&'a [u8]),
    /// Reads from a file.
    Read {
        /// The open file.
        handle: &'a [u8],
        /// Where.
        offset: u64,
        /// How many bytes at most.
        length: u32,
    },
    /// Writes to a file.
    Write {
        /// The open file.
        handle: &'a [u8],
        /// Where.
        offset: u64,
        /// What.
        data: &'a [u8],
    },
    /// Metadata of a name; of a link itself.
    LStat(&'a [u8]),
    /// Metadata of a name; of what a link leads to.
    Stat(&'a [u8]),
    /// Metadata of an open file.
    FStat(&'a [u8]),
    /// Changes metadata of a name.
    SetStat(&'a [u8], Attributes),
    /// Changes metadata of an open file.
    FSetStat(&'a [u8], Attributes),
    /// Opens a directory.
    OpenDir(&'a [u8]),
    /// The next entries of an open directory.
    ReadDir(&'a [u8]),
    /// Removes a file or link.
    Remove(&'a [u8]),
    /// Makes a directory.
    MakeDir(&'a [u8], Attributes),
    /// Removes an empty directory.
    RemoveDir(&'a [u8]),
    /// The absolute path of a name.
    RealPath(&'a [u8]),
    /// Renames; fails if the new name is taken.
    Rename(&'a [u8], &'a [u8]),
    /// The text of a link.
    ReadLink(&'a [u8]),
    /// Makes a link: its text, then its name. OpenSSH has them in this order, against the draft.
    MakeLink(&'a [u8], &'a [u8]),
    /// `posix-rename@openssh.com`: renames over a file that is there.
    PosixRename(&'a [u8], &'a [u8]),
    /// `fsync@openssh.com`: brings an open file to the disk.
    Sync(&'a [u8]),
    /// `lsetstat@openssh.com`: changes metadata of a name; of a link itself.
    SetOfLink(&'a [u8], Attributes),
    /// Another extension, with its data as the extension defines them.
    Extended(Extension, &'a [u8]),
}

impl Request<'_> {
    /// Flag of [`Request::Open`]: for reading.
    pub const READ: u32 = 1;
    /// For writing.
    pub const WRITE: u32 = 2;
    /// Each write goes to the end of the file.
    pub const APPEND: u32 = 4;
    /// The file is made if it is not there.
    pub const CREATE: u32 = 8;
    /// The file is emptied.
    pub const TRUNCATE: u32 = 0x10;
    /// It is an error if the file is there.
    pub const EXCLUSIVE: u32 = 0x20;

    /// The message, with its length in front.
    pub fn encode(&self, id: u32) -> Vec<u8> {
        let mut writer = Writer::default();
        // The length is put in at the end.
        writer.u32(0).byte(self.kind()).u32(id);
        match *self {
            Self::Open { path, flags, attributes } => {
                writer.string(path).u32(flags);
                attributes.write(&mut writer);
            }
            Self::Read { handle, offset, length } => {
                writer.string(handle).u64(offset).u32(length);
            }
            Self::Write { handle, offset, data } => {
                writer.string(handle).u64(offset).string(data);
            }
            Self::Close(one)
            | Self::LStat(one)
            | Self::Stat(one)
            | Self::FStat(one)
            | Self::OpenDir(one)
            | Self::ReadDir(one)
            | Self::Remove(one)
            | Self::RemoveDir(one)
            | Self::RealPath(one)
            | Self::ReadLink(one) => {
                writer.string(one);
            }
            Self::SetStat(one, attributes)
            | Self::FSetStat(one, attributes)
            | Self::MakeDir(one, attributes) => {
                writer.string(one);
                attributes.write(&mut writer);
            }
            Self::Rename(one, other) | Self::MakeLink(one, other) => {
                writer.string(one).string(other);
            }
            Self::PosixRename(from, to) => {
                writer.string(Extension::PosixRename.words().0.as_bytes()).string(from).string(to);
            }
            Self::Sync(handle) => {
                writer.string(Extension::Sync.words().0.as_bytes()).string(handle);
            }
            Self::SetOfLink(path, attributes) => {
                writer.string(Extension::SetOfLink.words().0.as_bytes()).string(path);
                attributes.write(&mut writer);
            }
            Self::Extended(extension, data) => {
                writer.string(extension.words().0.as_bytes()).0.extend(data);
            }
        }
        framed(writer)
    }

    /// Bytes that it and its response take at most.
    pub(crate) const fn bytes_max(&self) -> usize {
        match self {
            Self::Read { length, .. } => PLAIN_BYTES_MAX + *length as usize,
            Self::Write { data, .. } => PLAIN_BYTES_MAX + data.len(),
            Self::ReadDir(_) | Self::Extended(..) => PACKET_BYTES_MAX,
            _ => PLAIN_BYTES_MAX,
        }
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Open { .. } => 3,
            Self::Close(_) => 4,
            Self::Read { .. } => 5,
            Self::Write { .. } => 6,
            Self::LStat(_) => 7,
            Self::FStat(_) => 8,
            Self::SetStat(..) => 9,
            Self::FSetStat(..) => 10,
            Self::OpenDir(_) => 11,
            Self::ReadDir(_) => 12,
            Self::Remove(_) => 13,
            Self::MakeDir(..) => 14,
            Self::RemoveDir(_) => 15,
            Self::RealPath(_) => 16,
            Self::Stat(_) => 17,
            Self::Rename(..) => 18,
            Self::ReadLink(_) => 19,
            Self::MakeLink(..) => 20,
            Self::PosixRename(..) | Self::Sync(_) | Self::SetOfLink(..) | Self::Extended(..) => 200,
        }
    }
}

/// The first message of a client: its version.
pub(crate) fn greeting() -> Vec<u8> {
    let mut writer = Writer::default();
    writer.u32(0).byte(1).u32(VERSION);
    framed(writer)
}

/// Puts the length in front, in the four bytes that are kept for it.
fn framed(writer: Writer) -> Vec<u8> {
    let mut bytes = writer.0;
    let length = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// A message of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Response {
    /// How a request ended that has no other answer.
    Status(Status, Vec<u8>),
    /// An open file or directory.
    Handle(Vec<u8>),
    /// Bytes of a file.
    Data(Vec<u8>),
    /// Names: entries of a directory, an absolute path, or the text of a link.
    Names(Vec<Entry>),
    /// Metadata.
    Attributes(Attributes),
    /// The answer to an extension.
    Extended(Vec<u8>),
}

/// A name with its metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The name, without a directory.
    pub name: Vec<u8>,
    /// The line that `ls -l` prints of it, in the server's words.
    pub line: Vec<u8>,
    /// Its metadata.
    pub attributes: Attributes,
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It was done.
    Ok,
    /// The file or directory has ended.
    End,
    /// There is no such file.
    NoSuchFile,
    /// It is not permitted.
    Denied,
    /// Any other failure, such as a full disk: version 3 does not tell them apart.
    Failure,
    /// The server does not have such a request.
    Unsupported,
    /// Another number.
    Other(u32),
}

impl Status {
    const fn of(number: u32) -> Self {
        match number {
            0 => Self::Ok,
            1 => Self::End,
            2 => Self::NoSuchFile,
            3 => Self::Denied,
            4 => Self::Failure,
            8 => Self::Unsupported,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("no error"),
            Self::End => f.write_str("end of file"),
            Self::NoSuchFile => f.write_str("no such file or directory"),
            Self::Denied => f.write_str("permission denied"),
            Self::Failure => f.write_str("the server failed and does not say why"),
            Self::Unsupported => f.write_str("the server has no such request"),
            Self::Other(number) => write!(f, "the server failed with code {number}"),
        }
    }
}

/// The bytes are no message of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotAResponse {
    /// The message ends too early.
    #[error("a message of the SFTP server ends too early")]
    Short,
    /// More than the message has.
    #[error("a message of the SFTP server has bytes at its end that belong to nothing")]
    Long,
    /// A kind that no answer has.
    #[error("the SFTP server sent a message of kind {0}")]
    Kind(u8),
}

impl Response {
    /// Reads a message without its length. Gives the number of the request.
    // fuzz: sftp
    pub fn decode(bytes: &[u8]) -> Result<(u32, Self), NotAResponse> {
        let mut reader = Reader(bytes);
        let kind = reader.byte()?;
        let id = reader.u32()?;
        let response = match kind {
            101 => {
                let status = Status::of(reader.u32()?);
                // Servers of version 2 and some devices leave the text out.
                let text = if reader.is_empty() { &[][..] } else { reader.string()? };
                if !reader.is_empty() {
                    reader.string()?;
                }
                Self::Status(status, text.to_vec())
            }
            102 => Self::Handle(reader.string()?.to_vec()),
            103 => Self::Data(reader.string()?.to_vec()),
            104 => Self::Names(names(&mut reader)?),
            105 => Self::Attributes(Attributes::read(&mut reader)?),
            201 => Self::Extended(std::mem::take(&mut reader.0).to_vec()),
            other => return Err(NotAResponse::Kind(other)),
        };
        if reader.is_empty() { Ok((id, response)) } else { Err(NotAResponse::Long) }
    }
}

// fuzz: sftp
fn names(reader: &mut Reader<'_>) -> Result<Vec<Entry>, NotAResponse> {
    // The count is not trusted: each entry takes bytes of the message.
    let count = reader.u32()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let name = reader.string()?.to_vec();
        let line = reader.string()?.to_vec();
        entries.push(Entry { name, line, attributes: Attributes::read(reader)? });
    }
    Ok(entries)
}

impl Version {
    /// Reads the first message of a server, without its length.
    // fuzz: sftp
    pub fn decode(bytes: &[u8]) -> Result<Self, NotAResponse> {
        let mut reader = Reader(bytes);
        match reader.byte()? {
            2 => {}
            other => return Err(NotAResponse::Kind(other)),
        }
        let number = reader.u32()?;
        let mut extensions = Vec::new();
        while !reader.is_empty() {
            extensions.push((reader.string()?.to_vec(), reader.string()?.to_vec()));
        }
        Ok(Self { number, extensions })
    }
}

#[cfg(test)]
mod tests;
