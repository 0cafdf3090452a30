//! Programs at a far side, as an SFTP server shows them: `.cache/hikyaku/bin/HASH/hikyaku` below the home directory,
//! where HASH is the BLAKE3 hash of the program in hexadecimal digits.

use super::place::{Holds, Spot, for_shell};
use super::programs::Program;
use blake3::Hash;
use hikyaku_fs::{FsError, Name, Token};
use hikyaku_sftp::{
    Asked, Attributes, Client, DATA_BYTES_MAX, Extension, Failed, Handle, Kind, Request, Ticket,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Versions that stay at a far side; older ones are removed when another is sent.
pub const KEPT_VERSIONS: usize = 3;

/// The directories, from the outermost.
pub(super) const FOLDERS: [&str; 3] = [".cache", ".cache/hikyaku", BIN];
pub(super) const BIN: &str = ".cache/hikyaku/bin";
pub(super) const NAME: &str = "hikyaku";
/// The bits with which the group and others may write.
const OTHERS_WRITE: u32 = 0o022;
/// Entries of a directory of the far side that are looked at.
const ENTRIES_MAX: usize = 1000;
/// Requests that are under way at once: 2 MiB, the window of OpenSSH's channels.
const WINDOW: usize = 64;

/// A program that was sent to a far side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Its hash, as the far side has it in the name of its directory.
    pub hash: Hash,
    /// Bytes; `None` if the directory has no program, because it was not sent to its end.
    pub size: Option<u64>,
    /// When it was sent, in seconds since 1970 by the far side's clock; `None` if the server does not tell.
    pub time: Option<u32>,
}

/// Why a program was not put on a far side.
#[derive(Debug, thiserror::Error)]
pub enum NotStored {
    /// The program cannot be read here.
    #[error("{}", .path.display())]
    Read {
        /// The program.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system gives no random name.
    #[error(transparent)]
    Name(#[from] FsError),
    /// A folder of programs is another user's.
    #[error("~/{path} belongs to another user")]
    Theirs {
        /// The folder, below the home directory.
        path: String,
    },
    /// The server refuses something.
    #[error("cannot {what} {path}: {source}")]
    Refused {
        /// What.
        what: &'static str,
        /// The path.
        path: String,
        /// The server's answer.
        source: Failed,
    },
}

/// The directory of a program below the home directory.
pub(super) fn folder(hash: &Hash) -> String {
    format!("{BIN}/{}", hash.to_hex())
}

/// The path of a program below the home directory.
pub(super) fn path(hash: &Hash) -> String {
    format!("{}/{NAME}", folder(hash))
}

fn refused(what: &'static str, path: &str) -> impl Fn(Failed) -> NotStored {
    move |source| NotStored::Refused { what, path: for_shell(path), source }
}

/// Whether the folders of programs were the user's alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Folders {
    /// They were, or are not there.
    Private,
    /// Others could write there, so that a program in them may be anybody's. They can no more.
    Closed,
}

/// Takes the right to write to the folders of programs away from others. Those of another user cannot be closed.
pub(super) fn close_folders(client: &Client, hash: &Hash) -> Result<Folders, NotStored> {
    let home = client.attributes(&Request::Stat(b".")).ok().and_then(|home| home.owner);
    let mut folders = Folders::Private;
    for path in FOLDERS.into_iter().map(str::to_owned).chain([folder(hash)]) {
        let Ok(found) = client.attributes(&Request::Stat(path.as_bytes())) else { break };
        let is_theirs = |(own, theirs): ((u32, u32), (u32, u32))| own.0 != theirs.0;
        if home.zip(found.owner).is_some_and(is_theirs) {
            return Err(NotStored::Theirs { path });
        }
        let Some(mode) = found.mode.filter(|mode| mode & OTHERS_WRITE != 0) else { continue };
        let mode = Some(mode & 0o7777 & !OTHERS_WRITE);
        let close = Request::SetStat(path.as_bytes(), Attributes { mode, ..Attributes::default() });
        client.done(&close).map_err(refused("take the right to write from others to", &path))?;
        folders = Folders::Closed;
    }
    Ok(folders)
}

/// Whether the program of this hash and size is there.
pub(super) fn has(client: &Client, hash: &Hash, size: u64) -> Asked<bool> {
    match client.attributes(&Request::LStat(path(hash).as_bytes())) {
        Ok(found) => Ok(found.kind() == Some(Kind::File) && found.size == Some(size)),
        Err(Failed::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A program on a remote host under a temporary name, complete and synced.
pub(super) struct Draft<'a> {
    client: &'a Client,
    spot: &'a Spot,
    path: String,
}

impl<'a> Draft<'a> {
    /// Writes the program. If that fails, nothing of it stays. `progress` is called with the number of bytes that the server
    /// has confirmed.
    pub(super) fn write(
        client: &'a Client,
        (program, file): (&Program, &File),
        spot: &'a Spot,
        progress: &dyn Fn(u64),
    ) -> Result<Self, NotStored> {
        for made in &spot.folders {
            make_folder(client, made, spot.folder_mode)?;
        }
        let token = Token::random()?;
        let name = format!(".{NAME}.{}", String::from_utf8_lossy(token.as_bytes()));
        let draft = Self { client, spot, path: spot.named(&name) };
        match draft.fill(program, file, progress) {
            Ok(()) => Ok(draft),
            Err(error) => {
                draft.remove();
                Err(error)
            }
        }
    }

    /// Its path.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Gives it the name of the program.
    pub(super) fn rename(self) -> Result<(), NotStored> {
        let to = self.spot.path();
        let renaming = self.client.version().renaming(self.path.as_bytes(), to.as_bytes());
        self.client.done(&renaming).map_err(|error| {
            self.remove();
            refused("rename a file to", &to)(error)
        })
    }

    /// Removes it, and its directory if that is for this program only and is empty.
    pub(super) fn remove(&self) {
        // If it cannot be removed, it stays. The caller reports another error.
        let _ = self.client.done(&Request::Remove(self.path.as_bytes()));
        if self.spot.holds == Holds::OneProgram {
            let _ = self.client.done(&Request::RemoveDir(self.spot.folder.as_bytes()));
        }
    }

    fn fill(
        &self,
        program: &Program,
        file: &File,
        progress: &dyn Fn(u64),
    ) -> Result<(), NotStored> {
        let (client, path) = (self.client, self.path.as_str());
        let mode = Attributes { mode: Some(self.spot.mode), ..Attributes::default() };
        let flags = Request::WRITE | Request::CREATE | Request::EXCLUSIVE;
        let open = Request::Open { path: path.as_bytes(), flags, attributes: mode };
        let handle = client.open(&open).map_err(refused("make", path))?;
        let written =
            write_all(client, (program, file), (&handle, path), progress).and_then(|()| {
                // The server has taken its umask away from the mode.
                let set = client.ask(&Request::FSetStat(handle.bytes(), mode));
                if client.version().has(Extension::Sync) {
                    client.done(&Request::Sync(handle.bytes())).map_err(refused("sync", path))?;
                }
                client.is_done(set).map_err(refused("set the mode of", path))
            });
        let closed = client.close(&handle).map_err(refused("write", path));
        written.and(closed)
    }
}

/// Makes a directory, unless it is there.
fn make_folder(client: &Client, path: &str, mode: u32) -> Result<(), NotStored> {
    let attributes = Attributes { mode: Some(mode), ..Attributes::default() };
    let Err(error) = client.done(&Request::MakeDir(path.as_bytes(), attributes)) else {
        return Ok(());
    };
    // Version 3 does not say that a name is taken.
    match client.attributes(&Request::Stat(path.as_bytes())) {
        Ok(found) if found.kind() == Some(Kind::Dir) => Ok(()),
        _ => Err(refused("make", path)(error)),
    }
}

fn write_all(
    client: &Client,
    (program, file): (&Program, &File),
    (handle, draft): (&Handle, &str),
    progress: &dyn Fn(u64),
) -> Result<(), NotStored> {
    let mut under_way: VecDeque<(Ticket, u64)> = VecDeque::new();
    let settle = |under_way: &mut VecDeque<(Ticket, u64)>, most: usize| {
        while under_way.len() > most
            && let Some((ticket, end)) = under_way.pop_front()
        {
            client.is_done(ticket)?;
            progress(end);
        }
        Ok(())
    };
    let (mut buffer, mut offset) = (vec![0; DATA_BYTES_MAX], 0_u64);
    loop {
        let length = file.read_at(&mut buffer, offset);
        let length =
            length.map_err(|source| NotStored::Read { path: program.path.clone(), source })?;
        let settled = settle(&mut under_way, if length == 0 { 0 } else { WINDOW - 1 });
        settled.map_err(refused("write", draft))?;
        if length == 0 {
            return Ok(());
        }
        let write = Request::Write { handle: handle.bytes(), offset, data: &buffer[..length] };
        let ticket = client.ask(&write);
        offset += length as u64;
        under_way.push_back((ticket, offset));
    }
}

/// The programs that were sent to the far side of `client`, the newest first. What is there beside them is not told.
///
/// # Errors
///
/// See [`Failed`].
pub fn sent(client: &Client) -> Asked<Vec<Sent>> {
    let mut all = Vec::new();
    for name in names(client, BIN)? {
        let hash = std::str::from_utf8(&name).ok().and_then(|name| Hash::from_hex(name).ok());
        let Some(hash) = hash.filter(|hash| hash.to_hex().as_bytes() == name) else { continue };
        let found = match client.attributes(&Request::LStat(path(&hash).as_bytes())) {
            Ok(found) => found,
            Err(Failed::Refused { .. }) => Attributes::default(),
            Err(error) => return Err(error),
        };
        let time = found.times.map(|(_, modified)| modified);
        all.push(Sent { hash, size: found.size, time });
    }
    all.sort_by_key(|sent| std::cmp::Reverse(sent.time));
    Ok(all)
}

/// Removes a program that was sent to the far side of `client`, with what is unfinished of it.
///
/// # Errors
///
/// See [`Failed`].
pub fn remove(client: &Client, hash: &Hash) -> Asked<()> {
    let folder = folder(hash);
    for name in names(client, &folder)? {
        let path = [folder.as_bytes(), b"/", &name].concat();
        client.done(&Request::Remove(&path))?;
    }
    client.done(&Request::RemoveDir(folder.as_bytes()))
}

/// Removes all but the newest [`KEPT_VERSIONS`], of which `own` is one. Programs that run are not disturbed. What has no
/// program yet may be under way.
pub(super) fn remove_old(client: &Client, own: &Hash) -> Asked<()> {
    let is_old = |sent: &Sent| sent.hash != *own && sent.size.is_some();
    let others = sent(client)?.into_iter().filter(is_old);
    others.skip(KEPT_VERSIONS - 1).try_for_each(|old| remove(client, &old.hash))
}

/// Names in a directory of the far side; none if it is not there.
fn names(client: &Client, folder: &str) -> Asked<Vec<Vec<u8>>> {
    let handle = match client.open(&Request::OpenDir(folder.as_bytes())) {
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut all = Vec::new();
    while all.len() < ENTRIES_MAX
        && let Some(entries) = client.entries(&handle)?
    {
        let names = entries.into_iter().map(|entry| entry.name);
        all.extend(names.filter(|name| Name::new(name).is_ok()));
    }
    all.truncate(ENTRIES_MAX);
    client.close(&handle)?;
    Ok(all)
}
