//! What is to be copied, and the name of each entry at the target.

mod walk;

use crate::census::{Census, File, LeftOut, ServerId, Why};
use crate::choice::Link;
use crate::dress::DirMeta;
use crate::session::{Dirs, Landing, Several};
use hikyaku_fs::{Incoming, PeerPath};
use hikyaku_remote::RemoteError;
use hikyaku_store::{Cut, ErrorKind, FetchError as ChannelError, Fetcher, StorePath, Versions};
use std::collections::BTreeSet;

/// Files, directories and links with their places at the target.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Directories that have to exist and may be missing on some servers of the target, such as the one that the user named.
    pub parents: Vec<StorePath>,
    /// What the names in lists are relative to: the directory that receives the sources.
    pub base: StorePath,
    /// The places of the sources.
    pub roots: Vec<StorePath>,
    /// Whether the target is the new name of a directory.
    pub is_new_tree: bool,
    /// How the source recognizes another content of a file, where a file has no version.
    pub versions: Versions,
    /// Directories, each before those in it.
    pub dirs: Vec<(StorePath, DirMeta)>,
    /// Symbolic links.
    pub links: Vec<(StorePath, Link)>,
    /// Files.
    pub files: Vec<File>,
    /// What is not copied, and why; paths as at the source.
    pub left_out: Vec<LeftOut>,
    /// Servers of the source that could not be asked, and why.
    pub lost: Vec<(ServerId, RemoteError)>,
    /// The servers of the target, if there are several: each file goes to one of them.
    pub several: Option<Several>,
    /// The FIFO or descriptor that gives the bytes of the only file, if it is no file of a server. Their number is known at
    /// their end.
    pub stream: Option<Incoming>,
}

impl Plan {
    /// The names of everything of a census where it lands. Something without a possible name is left out.
    pub fn of(census: Census, landing: &Landing) -> Self {
        let Census { dirs, links, files, mut left_out, lost } = census;
        let mut plan = Self { lost, is_new_tree: landing.is_new_tree(), ..Self::default() };
        plan.base.clone_from(&landing.base);
        landing.note(&mut plan);
        let mut place = |path: &PeerPath| {
            let place = landing.of(path);
            if place.is_none() {
                left_out.push(LeftOut { path: path.as_bytes().to_vec(), why: Why::BadName });
            }
            place
        };
        let is_top = |path: &PeerPath| landing.is_top(path);
        // A source without an entry of its own, such as the root of a server, is a directory all the same.
        if let Some(top) = landing.new_dir().filter(|_| !dirs.iter().any(|(path, _)| is_top(path)))
        {
            plan.dirs.push((top.clone(), DirMeta::unknown()));
        }
        for (path, meta) in dirs.into_iter().filter(|(path, _)| !landing.is_there(path)) {
            plan.dirs.extend(place(&path).map(|to| (to, meta)));
        }
        for (path, link) in links {
            plan.links.extend(place(&path).map(|to| (to, link)));
        }
        for file in files {
            // The name of a file behind a link is that of the link.
            let to = file.to.below_root().and_then(&mut place);
            plan.files.extend(to.map(|to| File { to, ..file }));
        }
        plan.left_out = left_out;
        plan.trim(landing.dirs);
        plan
    }

    fn leave_out(&mut self, path: &StorePath, why: Why) {
        self.left_out.push(LeftOut { path: path.as_bytes().to_vec(), why });
    }

    /// Leaves out directories that a store has by their entries.
    pub(crate) fn trim(&mut self, dirs: Dirs) {
        if dirs == Dirs::Implied {
            let files = self.files.iter().filter_map(|file| file.to.split());
            let dirs = self.dirs.iter().filter_map(|(path, _)| path.split());
            let filled: BTreeSet<StorePath> = files.chain(dirs).map(|(dir, _)| dir).collect();
            self.dirs.retain(|(path, _)| !filled.contains(path));
        }
    }

    /// Notes that each of so many servers has all files.
    pub fn is_from(&mut self, servers: usize) {
        for file in &mut self.files {
            file.at = (0..servers).map(ServerId).collect();
        }
    }

    /// The name of a path at the target in lists, such as that of a dry run.
    pub fn listed(&self, path: &[u8]) -> Vec<u8> {
        let below = path.strip_prefix(self.base.as_bytes()).unwrap_or(path);
        below.strip_prefix(b"/").unwrap_or(below).to_vec()
    }

    /// Measures the files that a store behind a network reports to be empty, as those of /proc are: one that has bytes gets
    /// their number as its size. One with too many is left out.
    ///
    /// # Errors
    ///
    /// The channel is lost.
    pub fn measure(&mut self, channel: &dyn Fetcher) -> Result<(), ChannelError> {
        if self.stream.is_some() {
            return Ok(());
        }
        let empty = |file: &&mut File| file.seen.size == 0;
        let mut files: Vec<&mut File> = self.files.iter_mut().filter(empty).collect();
        let wanted: Vec<_> = files.iter().map(|file| file.wanted()).collect();
        let mut left_out = Vec::new();
        let refs: Vec<_> = wanted.iter().collect();
        channel.small(&refs, &Cut::default(), &|_| (), &mut |index, content| match content {
            Ok(bytes) => files[index].seen.size = bytes.len() as u64,
            Err(kind) => {
                let why =
                    if kind == ErrorKind::Changed { Why::Sizeless } else { Why::Server(kind) };
                left_out.push((files[index].path.clone(), why));
            }
        })?;
        let is_left_out = |file: &File| left_out.iter().any(|(path, _)| *path == file.path);
        self.files.retain(|file| file.seen.size > 0 || !is_left_out(file));
        for (path, why) in left_out {
            self.left_out.push(LeftOut { path: path.as_bytes().to_vec(), why });
        }
        Ok(())
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.seen.size).sum()
    }
}

#[cfg(test)]
mod tests;
