//! Requests that OpenSSH's server has beyond version 3 (`PROTOCOL` of OpenSSH, section 4). The server names those that it
//! has in its first message ([`crate::Version::has`]).

use crate::answer::Handle;
use crate::client::{Asked, Client, Failed};
use crate::packet::{NotAResponse, Request, Response};
use crate::wire::{Reader, Writer};

/// A request beyond version 3, or more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extension {
    /// [`Request::PosixRename`].
    PosixRename,
    /// [`Request::Sync`].
    Sync,
    /// [`Client::limits`].
    Limits,
    /// [`Client::space`].
    Space,
    /// [`Client::names_of`].
    NamesById,
    /// [`Client::hard_link`].
    HardLink,
    /// [`Request::SetOfLink`].
    SetOfLink,
    /// [`Client::copy_data`].
    CopyData,
}

impl Extension {
    /// Its name, and what a server says of it.
    pub(crate) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::PosixRename => ("posix-rename@openssh.com", "1"),
            Self::Sync => ("fsync@openssh.com", "1"),
            Self::Limits => ("limits@openssh.com", "1"),
            Self::Space => ("statvfs@openssh.com", "2"),
            Self::NamesById => ("users-groups-by-id@openssh.com", "1"),
            Self::HardLink => ("hardlink@openssh.com", "1"),
            Self::SetOfLink => ("lsetstat@openssh.com", "1"),
            Self::CopyData => ("copy-data", "1"),
        }
    }
}

/// What a server takes at most, in bytes. 0 says that it has no limit, or does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Of a message.
    pub packet: u64,
    /// Of the bytes that one READ gives.
    pub read: u64,
    /// Of the bytes of one WRITE.
    pub write: u64,
    /// Of handles that are open at once.
    pub handles: u64,
}

/// The space of a file system, as of statvfs(3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Space {
    /// Bytes of a block in the counts below.
    pub block_bytes: u64,
    /// Blocks of the file system.
    pub blocks: u64,
    /// Blocks that are free.
    pub free: u64,
    /// Blocks that are free for users other than root.
    pub available: u64,
    /// Inodes of the file system.
    pub files: u64,
    /// Inodes that are free.
    pub files_free: u64,
    /// Inodes that are free for users other than root.
    pub files_available: u64,
}

impl Client {
    /// What the server takes at most; `None` if it has no `limits@openssh.com`.
    ///
    /// # Errors
    ///
    /// See [`Failed`].
    pub fn limits(&self) -> Asked<Option<Limits>> {
        if !self.version().has(Extension::Limits) {
            return Ok(None);
        }
        let data = self.extended(&Request::Extended(Extension::Limits, &[]))?;
        limits(&mut Reader(&data)).map(Some).map_err(|_| Failed::Odd)
    }

    /// The space of the file system with `path` (`statvfs@openssh.com`).
    ///
    /// # Errors
    ///
    /// See [`Failed`].
    pub fn space(&self, path: &[u8]) -> Asked<Space> {
        let mut writer = Writer::default();
        writer.string(path);
        let data = self.extended(&Request::Extended(Extension::Space, &writer.0))?;
        space(&mut Reader(&data)).map_err(|_| Failed::Odd)
    }

    /// Names of users and of groups by their numbers (`users-groups-by-id@openssh.com`); an empty one where the server has
    /// none.
    ///
    /// # Errors
    ///
    /// See [`Failed`].
    pub fn names_of(&self, users: &[u32], groups: &[u32]) -> Asked<[Vec<Vec<u8>>; 2]> {
        let mut writer = Writer::default();
        for ids in [users, groups] {
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_be_bytes()).collect();
            writer.string(&bytes);
        }
        let request = Request::Extended(Extension::NamesById, &writer.0);
        let data = self.extended(&request)?;
        let mut reader = Reader(&data);
        let mut list = |count: usize| names(&mut reader, count).map_err(|_| Failed::Odd);
        Ok([list(users.len())?, list(groups.len())?])
    }

    /// Makes a hard link to the file `old` (`hardlink@openssh.com`).
    ///
    /// # Errors
    ///
    /// See [`Failed`].
    pub fn hard_link(&self, old: &[u8], new: &[u8]) -> Asked<()> {
        let mut writer = Writer::default();
        writer.string(old).string(new);
        self.done(&Request::Extended(Extension::HardLink, &writer.0))
    }

    /// Copies all bytes of one open file into another, at the server (`copy-data`).
    ///
    /// # Errors
    ///
    /// See [`Failed`].
    pub fn copy_data(&self, from: &Handle, to: &Handle) -> Asked<()> {
        let mut writer = Writer::default();
        // A length of 0 is up to the end.
        writer.string(from.bytes()).u64(0).u64(0).string(to.bytes()).u64(0);
        self.done(&Request::Extended(Extension::CopyData, &writer.0))
    }

    fn extended(&self, request: &Request<'_>) -> Asked<Vec<u8>> {
        match self.wait(self.ask(request))? {
            Response::Extended(data) => Ok(data),
            _ => Err(Failed::Odd),
        }
    }
}

// fuzz: none, four numbers
fn limits(reader: &mut Reader<'_>) -> Result<Limits, NotAResponse> {
    Ok(Limits {
        packet: reader.u64()?,
        read: reader.u64()?,
        write: reader.u64()?,
        handles: reader.u64()?,
    })
}

// fuzz: none, eight numbers
fn space(reader: &mut Reader<'_>) -> Result<Space, NotAResponse> {
    let preferred = reader.u64()?;
    let unit = reader.u64()?;
    Ok(Space {
        // Some servers tell no unit.
        block_bytes: if unit == 0 { preferred } else { unit },
        blocks: reader.u64()?,
        free: reader.u64()?,
        available: reader.u64()?,
        files: reader.u64()?,
        files_free: reader.u64()?,
        files_available: reader.u64()?,
    })
}

/// A string with as many strings in it.
// fuzz: none, strings as in each response
fn names(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Vec<u8>>, NotAResponse> {
    let mut all = Reader(reader.string()?);
    (0..count).map(|_| Ok(all.string()?.to_vec())).collect()
}
