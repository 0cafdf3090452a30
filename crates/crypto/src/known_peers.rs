//! The list of known servers: one line each, `host:port fingerprint date`.
//!
//! Users may edit the file. Lines that do not parse are skipped when reading and preserved when
//! writing. A change replaces the whole file atomically, so a reader sees the old list or the new
//! one; a lock file serialises writers.

use crate::date::day;
use crate::fingerprint::Fingerprint;
use crate::peer::{PeerName, Peers};
use crate::private_file;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[cfg(test)]
mod tests;

/// The list of known servers in a file, which need not exist yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownPeers {
    path: PathBuf,
}

/// The entry of one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownPeer {
    /// Host and port.
    pub name: String,
    /// The fingerprint of its key.
    pub fingerprint: Fingerprint,
    /// The day of its first use, as text from the file.
    pub since: String,
    /// Its line in the file, from 1.
    pub line: usize,
}

/// The outcome of recording a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Recorded {
    /// The entry was added.
    Added,
    /// The list already had an entry for the server, which is unchanged.
    Present(KnownPeer),
}

/// Why the list cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadKnownPeers {
    /// The file cannot be read.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The line of the server asked for is damaged. Skipping it would mean accepting any key for
    /// that server.
    #[error("line {line} of {} begins with {peer} but has no fingerprint", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The server.
        peer: PeerName,
    },
}

impl ReadKnownPeers {
    /// What the user can do about it, beginning with `try: `.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Damaged { peer, .. } => {
                Some(format!("try: correct the line, or: hikyaku keys forget {peer}"))
            }
            Self::Io { .. } => None,
        }
    }
}

/// Why the list cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum WriteKnownPeers {
    /// The current list cannot be read.
    #[error(transparent)]
    Read(#[from] ReadKnownPeers),
    /// The new list cannot be written.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The largest file accepted, in bytes. It has room for ten thousand servers.
const FILE_BYTES_MAX: u64 = 1 << 20;

impl KnownPeers {
    /// The usual name of the file.
    pub const FILE_NAME: &str = "known_peers";

    /// The list in the file `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The path of the list.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All entries, in the order of the file.
    pub fn list(&self) -> Result<Vec<KnownPeer>, ReadKnownPeers> {
        let bytes = self.read()?;
        Ok(lines(&bytes).filter_map(|(line, text)| parse(line, text)?.ok()).collect())
    }

    /// The first entry of `peer`.
    pub fn find(&self, peer: &PeerName) -> Result<Option<KnownPeer>, ReadKnownPeers> {
        self.find_in(&self.read()?, peer)
    }

    /// Adds an entry for `peer` with the date `today`, unless the list has one.
    pub fn record(
        &self,
        peer: &PeerName,
        fingerprint: Fingerprint,
        today: SystemTime,
    ) -> Result<Recorded, WriteKnownPeers> {
        let _turn = self.lock()?;
        let mut bytes = self.read()?;
        if let Some(known) = self.find_in(&bytes, peer)? {
            return Ok(Recorded::Present(known));
        }
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(format!("{peer} {fingerprint} {}\n", day(today)).as_bytes());
        self.write(&bytes)?;
        Ok(Recorded::Added)
    }

    /// Removes all entries of `peers`, including damaged ones, and returns the names that they had.
    pub fn forget(&self, peers: &Peers) -> Result<Vec<String>, WriteKnownPeers> {
        let _turn = self.lock()?;
        let bytes = self.read()?;
        let mut kept = Vec::with_capacity(bytes.len());
        let mut forgotten = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match first_field(line).filter(|name| peers.has(name)) {
                Some(name) => forgotten.push(String::from_utf8_lossy(name).into_owned()),
                None => kept.extend_from_slice(line),
            }
        }
        if !forgotten.is_empty() {
            self.write(&kept)?;
        }
        Ok(forgotten)
    }

    fn find_in(&self, bytes: &[u8], peer: &PeerName) -> Result<Option<KnownPeer>, ReadKnownPeers> {
        let found = lines(bytes)
            .filter(|(_, text)| is_of(text, peer))
            .find_map(|(line, text)| parse(line, text));
        found.transpose().map_err(|Damaged { line }| ReadKnownPeers::Damaged {
            path: self.path.clone(),
            line,
            peer: peer.clone(),
        })
    }

    fn read(&self) -> Result<Vec<u8>, ReadKnownPeers> {
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            File::open(&self.path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > FILE_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 1 MiB"));
            }
            Ok(bytes)
        };
        match read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other.map_err(|source| ReadKnownPeers::Io { path: self.path.clone(), source }),
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<(), WriteKnownPeers> {
        private_file::replace(&self.path, bytes).map_err(|source| self.unwritable(source))
    }

    /// Waits for the exclusive lock. The caller holds it until the returned file is dropped.
    fn lock(&self) -> Result<File, WriteKnownPeers> {
        let mut path = self.path.clone().into_os_string();
        path.push(".lock");
        let file = private_file::open_lock(Path::new(&path)).map_err(|e| self.unwritable(e))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|e| self.unwritable(e.into()))?;
        Ok(file)
    }

    fn unwritable(&self, source: io::Error) -> WriteKnownPeers {
        WriteKnownPeers::Io { path: self.path.clone(), source }
    }
}

/// A line that names a server but has no valid fingerprint.
struct Damaged {
    line: usize,
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    bytes.split(|byte| *byte == b'\n').enumerate().map(|(index, text)| (index + 1, text))
}

fn first_field(line: &[u8]) -> Option<&[u8]> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    fields.next().filter(|field| !field.starts_with(b"#"))
}

/// Whether a line is about `peer`, in upper or lower case.
fn is_of(line: &[u8], peer: &PeerName) -> bool {
    first_field(line).is_some_and(|name| name.eq_ignore_ascii_case(peer.as_str().as_bytes()))
}

/// Parses a line; `None` if it is empty or a comment.
// fuzz: none, the user's own file
fn parse(line: usize, text: &[u8]) -> Option<Result<KnownPeer, Damaged>> {
    first_field(text)?;
    let entry = || {
        let mut fields = str::from_utf8(text).ok()?.split_ascii_whitespace();
        let name = fields.next()?.to_owned();
        let fingerprint = fields.next()?.parse().ok()?;
        let since = fields.next().unwrap_or("an unknown day").to_owned();
        Some(KnownPeer { name, fingerprint, since, line })
    };
    Some(entry().ok_or(Damaged { line }))
}
