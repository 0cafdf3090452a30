//! What the servers have.

use hikyaku_fs::PeerPath;
use hikyaku_remote::{Client, Entry, RemoteError, Seen};
use hikyaku_store::{ErrorKind, Found, Kind, StorePath};
use std::collections::BTreeMap;
use std::thread;

/// The number of a server in the list that the census was taken of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServerId(pub usize);

/// A file that one or more servers have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Its path below the root of the servers.
    pub path: PeerPath,
    /// Its size and time, equal on all servers in `at`.
    pub seen: Seen,
    /// Permission bits, as the first server tells them.
    pub mode: u32,
    /// The servers that have it.
    pub at: Vec<ServerId>,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Census {
    /// Directories with their permission bits, each before those in it.
    pub dirs: Vec<(PeerPath, u32)>,
    /// Symbolic links and their texts.
    pub links: Vec<(PeerPath, Vec<u8>)>,
    /// Files in order of their paths.
    pub files: Vec<File>,
    /// What cannot be copied, and why.
    pub left_out: Vec<LeftOut>,
    /// Servers that could not be asked, and why.
    pub lost: Vec<(ServerId, RemoteError)>,
}

/// Something that is not copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Its path.
    pub path: Vec<u8>,
    /// Why.
    pub why: Why,
}

/// Why something is not copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Why {
    /// A server cannot read it.
    #[error("{0}")]
    Server(ErrorKind),
    /// Two servers have files of this name with other sizes or times.
    #[error("the servers have different files of this name")]
    Differs,
    /// A FIFO, a socket or a device.
    #[error("it is a FIFO, a socket or a device")]
    Special,
    /// Its name cannot be that of a file here.
    #[error("the name is not possible here")]
    BadName,
}

/// What one server told.
type Told = Result<Vec<Entry>, RemoteError>;

/// Names that one server may tell: some 2 GB of memory with long paths.
const NAMES_MAX: usize = 10_000_000;

/// Asks all servers for everything at and below `root`, all at once. A server that has nothing of this name takes no part.
pub fn census(servers: &[Client], root: &StorePath) -> Census {
    let told: Vec<Told> = thread::scope(|scope| {
        let asked: Vec<_> =
            servers.iter().map(|client| scope.spawn(|| walk(client, root))).collect();
        let closed = || Err(RemoteError::Closed(None));
        asked.into_iter().map(|asked| asked.join().unwrap_or_else(|_| closed())).collect()
    });
    merge(told)
}

fn walk(client: &Client, root: &StorePath) -> Told {
    let mut all = Vec::new();
    let mut is_too_many = false;
    client.walk(root, |entry| match all.len() < NAMES_MAX {
        true => all.push(entry),
        false => is_too_many = true,
    })?;
    match is_too_many {
        true => Err(RemoteError::Protocol("more names than can be held")),
        false => Ok(all),
    }
}

fn merge(told: Vec<Told>) -> Census {
    let mut census = Census::default();
    let mut all: BTreeMap<Vec<u8>, Vec<(ServerId, Entry)>> = BTreeMap::new();
    for (number, told) in told.into_iter().enumerate() {
        match told {
            Ok(entries) => {
                for entry in entries {
                    all.entry(entry.path.clone()).or_default().push((ServerId(number), entry));
                }
            }
            Err(error) => census.lost.push((ServerId(number), error)),
        }
    }
    // A directory comes before what is in it: its path is the shorter one.
    for (path, entries) in all {
        if path.is_empty() {
            continue;
        }
        let why = match PeerPath::new(&path) {
            Ok(peer_path) => census.add(peer_path, &entries).err(),
            Err(_) => Some(Why::BadName),
        };
        census.left_out.extend(why.map(|why| LeftOut { path, why }));
    }
    census
}

impl Census {
    fn add(&mut self, path: PeerPath, entries: &[(ServerId, Entry)]) -> Result<(), Why> {
        let readable: Vec<(ServerId, Found)> = entries
            .iter()
            .filter_map(|(server, entry)| Some((*server, entry.found.as_ref().ok().copied()?)))
            .collect();
        let Some(&(_, first)) = readable.first() else {
            let error = entries.iter().find_map(|(_, entry)| entry.found.as_ref().err().copied());
            return Err(Why::Server(error.unwrap_or(ErrorKind::NotFound)));
        };
        if readable.iter().any(|(_, found)| found.kind != first.kind) {
            return Err(Why::Differs);
        }
        match first.kind {
            Kind::Dir => self.dirs.push((path, first.mode)),
            Kind::Special => return Err(Why::Special),
            Kind::Link => {
                let texts = entries.iter().filter_map(|(_, entry)| entry.link.as_ref());
                let mut texts: Vec<_> = texts.collect();
                texts.dedup();
                match texts.as_slice() {
                    [text] => self.links.push((path, text.to_vec())),
                    _ => return Err(Why::Differs),
                }
            }
            Kind::File => {
                let seen = Seen::from(&first);
                if readable.iter().any(|(_, found)| Seen::from(found) != seen) {
                    return Err(Why::Differs);
                }
                let at = readable.iter().map(|(server, _)| *server).collect();
                self.files.push(File { path, seen, mode: first.mode, at });
            }
        }
        Ok(())
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.seen.size).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_store::{Identity, Owner, Time};

    fn entry(path: &str, kind: Kind, size: u64) -> Entry {
        let found = Found {
            kind,
            size,
            allocated: size,
            mode: 0o644,
            owner: Owner::default(),
            modified: Time::default(),
            identity: Identity { device: 1, number: 1 },
            version: None,
        };
        let link = (kind == Kind::Link).then(|| b"to".to_vec());
        Entry { path: path.as_bytes().to_vec(), found: Ok(found), link }
    }

    #[test]
    fn replicas_are_files_of_one_name_size_and_time() {
        let first = vec![
            entry("", Kind::Dir, 0),
            entry("d", Kind::Dir, 0),
            entry("d/a", Kind::File, 7),
            entry("d/b", Kind::File, 8),
            entry("l", Kind::Link, 2),
            entry("fifo", Kind::Special, 0),
            entry("../x", Kind::File, 1),
        ];
        let second = vec![
            entry("d", Kind::Dir, 0),
            entry("d/a", Kind::File, 7),
            entry("d/b", Kind::File, 9),
            entry("d/c", Kind::File, 1),
        ];
        let lost = Err(RemoteError::Closed(None));
        let census = merge(vec![Ok(first), lost, Ok(second)]);
        let at = |name: &str| {
            let mut files = census.files.iter();
            files.find(|file| file.path.as_bytes() == name.as_bytes()).map(|file| &file.at[..])
        };
        assert_eq!(at("d/a"), Some(&[ServerId(0), ServerId(2)][..]));
        assert_eq!(at("d/b"), None);
        assert_eq!(at("d/c"), Some(&[ServerId(2)][..]));
        let why = |name: &str| {
            let mut all = census.left_out.iter();
            all.find(|left| left.path == name.as_bytes()).map(|left| left.why)
        };
        assert_eq!(why("d/b"), Some(Why::Differs));
        assert_eq!(why("fifo"), Some(Why::Special));
        assert_eq!(why("../x"), Some(Why::BadName));
        assert_eq!((census.dirs.len(), census.links.len(), census.bytes()), (1, 1, 8));
        assert_eq!(census.lost.len(), 1);
    }
}
