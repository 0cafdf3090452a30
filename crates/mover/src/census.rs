//! What the servers have.

mod chosen;
mod claims;
mod followed;

pub use claims::Claims;
pub use followed::Behind;

use crate::choice::Link;
use crate::dress::DirMeta;
use hikyaku_fs::{PeerPath, Token};
use hikyaku_remote::{Client, Entry, RemoteError, Seen};
use hikyaku_store::{ContentToken, ErrorKind, Found, Kind, Store, StoreError, StorePath, Wanted};
use hikyaku_store_gfarm::Survey;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::thread;

/// The number of a server in the list that the census was taken of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServerId(pub usize);

/// A file that one or more servers have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Its path below the root of the servers.
    pub path: PeerPath,
    /// Its path at the target. In a census it is `path`, or that of the link that leads to the file, and a landing gives it
    /// another ([`Plan::of`](crate::Plan::of)).
    pub to: StorePath,
    /// Its size and time, equal on all servers in `at`.
    pub seen: Seen,
    /// About how many of its bytes are in no holes.
    pub data: u64,
    /// Its content, if all servers in `at` have the same version of it.
    pub content: Option<ContentToken>,
    /// Permission bits, as the first server tells them.
    pub mode: u32,
    /// The servers that have it.
    pub at: Vec<ServerId>,
}

impl File {
    /// The file as a server is asked for it.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted {
            path: self.path.clone().into(),
            size: self.seen.size,
            modified: self.seen.modified,
            content: self.content.clone(),
        }
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// Directories, each before those in it.
    pub dirs: Vec<(PeerPath, DirMeta)>,
    /// Symbolic links.
    pub links: Vec<(PeerPath, Link)>,
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
    /// A FIFO, a socket, a device, or a file of the kernel's whose size a daemon cannot tell.
    #[error("it is a FIFO, a socket, a device or a file without a size (/proc)")]
    Special,
    /// A link that leads out of the tree that its holder offers, or back to itself.
    #[error("a link leads out of what its holder offers, or back to itself")]
    Away,
    /// A link that leads back to a directory above it, so that following it has no end.
    #[error("a link leads back to a directory above it")]
    Circle,
    /// Its name cannot be that of a file here.
    #[error("this file system cannot have a file of this name")]
    BadName,
    /// A directory, and directories are not copied.
    #[error("is a directory, and -r was not given")]
    Tree,
    /// Reading it gives bytes, and its size is told as zero, as of files of /proc.
    #[error("gives more bytes than its size says; copy what 'cat' makes of it")]
    Sizeless,
    /// An object whose name is also that of a directory.
    #[error("an object of this name is beside a directory of it, and only the directory is copied")]
    Double,
    /// Another source of the same command has this name at the target.
    #[error("another source has this name")]
    Taken,
}

impl Why {
    /// The reason for a link that could not be followed.
    pub(crate) const fn of_link(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Link => Self::Away,
            kind => Self::Server(kind),
        }
    }
}

/// What one server told.
type Told = Result<Vec<Entry>, RemoteError>;

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

/// The entries of a survey of a Gfarm file system. `numbers` are the servers of its nodes.
pub fn gfarm_census(survey: &Survey, numbers: &[ServerId]) -> Census {
    // A tree without bytes needs no node, and the census a place to stand on.
    let servers = numbers.iter().map(|server| server.0 + 1).max().unwrap_or(1);
    let mut told: Vec<Told> = (0..servers).map(|_| Ok(Vec::new())).collect();
    let mut out_of_reach = Vec::new();
    for one in &survey.all {
        let entry = Entry { path: one.path.clone(), found: one.found, link: one.link.clone() };
        let at: Vec<ServerId> = match one.found {
            Ok(found) if found.kind == Kind::File && found.size > 0 => {
                one.at.iter().filter_map(|node| numbers.get(*node).copied()).collect()
            }
            // Its bytes are not needed, and gfmd has told the rest.
            _ => vec![ServerId(0)],
        };
        if at.is_empty() {
            let why = Why::Server(ErrorKind::Unreachable);
            out_of_reach.push(LeftOut { path: entry.path.clone(), why });
        }
        for server in at {
            if let Some(Ok(entries)) = told.get_mut(server.0) {
                entries.push(entry.clone());
            }
        }
    }
    let mut census = merge(told);
    census.left_out.extend(out_of_reach);
    census
}

/// Everything at and below `root` in a store that all of these servers read.
///
/// # Errors
///
/// Those of [`Store::walk`].
pub fn stored_census(
    store: &dyn Store,
    root: &StorePath,
    servers: usize,
) -> Result<Census, StoreError> {
    let mut all = Vec::new();
    store.walk(root, &mut |entry| {
        let found = entry.found.map_err(|error| error.kind);
        all.push(Entry { path: entry.path.as_bytes().to_vec(), found, link: entry.link });
        ControlFlow::Continue(())
    })?;
    let mut census = read_by(servers, all);
    if !store.abilities().times {
        census.dirs.iter_mut().for_each(|(_, meta)| meta.modified = None);
    }
    Ok(census)
}

/// Entries of a store that so many servers read.
fn read_by(servers: usize, all: Vec<Entry>) -> Census {
    let mut census = merge(vec![Ok(all)]);
    for file in &mut census.files {
        file.at = (0..servers).map(ServerId).collect();
    }
    census
}

/// Files of a store by their paths.
#[cfg(test)]
pub(crate) fn store_census(all: &BTreeMap<Vec<u8>, Found>, servers: usize) -> Census {
    let entry = |(path, found): (&Vec<u8>, &Found)| Entry {
        path: path.clone(),
        found: Ok(*found),
        link: None,
    };
    read_by(servers, all.iter().map(entry).collect())
}

/// What a server has at and below `root`.
fn walk(client: &Client, root: &StorePath) -> Told {
    let mut all = Vec::new();
    client.walk(root, |_, entry| {
        all.push(entry);
        ControlFlow::Continue(())
    })?;
    Ok(all)
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
    // The first one is what the user has named: it is copied or refused by its name.
    let named = all.first_key_value().map_or(0, |(path, _)| path.len());
    // A directory comes before what is in it: its path is the shorter one.
    for (path, entries) in all {
        if Token::is_in(path.get(named..).unwrap_or_default()) {
            continue;
        }
        if let Some(why) = unlisted(&entries) {
            let path = if path.is_empty() { b".".to_vec() } else { path.clone() };
            census.left_out.push(LeftOut { path, why });
        }
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

/// Why a directory was not listed to its end. The server that has it reports it a second time, with the error.
fn unlisted(entries: &[(ServerId, Entry)]) -> Option<Why> {
    let has_dir = |server: ServerId| {
        entries.iter().any(|(at, entry)| {
            *at == server && entry.found.is_ok_and(|found| found.kind == Kind::Dir)
        })
    };
    entries.iter().find_map(|(server, entry)| {
        let kind = entry.found.err().filter(|_| has_dir(*server))?;
        // A bucket reports an object that has the name of a directory so.
        Some(if kind == ErrorKind::IsDir { Why::Double } else { Why::Server(kind) })
    })
}

impl Census {
    /// Gives servers the numbers that `number` returns; one without a number takes no part. A file is left out if no server
    /// has its bytes any more.
    pub fn renumber(&mut self, number: impl Fn(ServerId) -> Option<ServerId>) {
        let left_out = &mut self.left_out;
        self.files.retain_mut(|file| {
            // The bytes of an empty file are not needed.
            if file.seen.size == 0 {
                file.at = vec![ServerId(0)];
                return true;
            }
            file.at = file.at.iter().filter_map(|server| number(*server)).collect();
            if file.at.is_empty() {
                let why = Why::Server(ErrorKind::Unreachable);
                left_out.push(LeftOut { path: file.to.as_bytes().to_vec(), why });
            }
            !file.at.is_empty()
        });
    }

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
            Kind::Dir => self.dirs.push((path, DirMeta::of(&first))),
            Kind::Special => return Err(Why::Special),
            Kind::Link => {
                let texts = entries.iter().filter_map(|(_, entry)| entry.link.as_ref());
                let mut texts: Vec<_> = texts.collect();
                texts.dedup();
                match texts.as_slice() {
                    [text] => {
                        let (text, modified) = (text.to_vec(), first.modified);
                        self.links.push((path, Link { text, modified }));
                    }
                    _ => return Err(Why::Differs),
                }
            }
            Kind::File => {
                let seen = Seen::from(&first);
                if readable.iter().any(|(_, found)| Seen::from(found) != seen) {
                    return Err(Why::Differs);
                }
                let at = readable.iter().map(|(server, _)| *server).collect();
                let is_same = readable.iter().all(|(_, found)| found.version == first.version);
                let content = first.version.filter(|_| is_same).map(ContentToken::from);
                let to = StorePath::from(path.clone());
                let used = readable.iter().map(|(_, found)| found.allocated).max();
                let (data, mode) = (used.unwrap_or(seen.size).min(seen.size), first.mode);
                self.files.push(File { path, to, seen, data, content, mode, at });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
