//! What is to be copied, and the name of each entry at the target.

use crate::census::{Census, File, LeftOut, ServerId, Why};
use crate::choice::{Link, Selection, Wanted};
use crate::dress::DirMeta;
use crate::session::{Dirs, Landing};
use hikyaku_fs::{PeerPath, umask};
use hikyaku_remote::{RemoteError, Seen};
use hikyaku_store::{Access, ErrorKind, Found, Kind, Store, StoreError, StorePath, Versions};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Files, directories and links with their places at the target.
#[derive(Debug, Default)]
pub struct Plan {
    /// Directories that have to exist and may be missing on some servers of the target, such as the one that the user named.
    pub parents: Vec<StorePath>,
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
}

/// The bits of a directory of which the source tells none, before those of the umask are removed.
const DIR_MODE: u32 = 0o777;

/// A source while it is looked through.
struct Walk<'a> {
    source: &'a Arc<dyn Store>,
    selection: &'a Selection<'a>,
    /// Bytes of a path before what is below the source.
    skip: usize,
}

/// Names of a directory that are read at once.
const PAGE: usize = 512;

impl Plan {
    /// The names of everything of a census where it lands. Something without a possible name is left out.
    pub fn of(census: Census, landing: &Landing) -> Self {
        let Census { dirs, links, files, mut left_out, lost } = census;
        let mut plan = Self { lost, is_new_tree: landing.is_new_tree(), ..Self::default() };
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
            plan.dirs.push((top.clone(), DirMeta { mode: DIR_MODE & !umask(), modified: None }));
        }
        for (path, meta) in dirs.into_iter().filter(|(path, _)| !landing.is_there(path)) {
            plan.dirs.extend(place(&path).map(|to| (to, meta)));
        }
        for (path, link) in links {
            plan.links.extend(place(&path).map(|to| (to, link)));
        }
        for file in files {
            plan.files.extend(place(&file.path).map(|to| File { to, ..file }));
        }
        plan.left_out = left_out;
        plan.trim(landing.dirs);
        plan
    }

    /// Adds what is wanted of what is at `from` in a store; the place of `from` at the servers is `to`. Links are not
    /// followed. What is listed and is not there is left out.
    ///
    /// # Errors
    ///
    /// There is nothing at `from`. What cannot be read below it is left out.
    pub(crate) fn add(
        &mut self,
        source: &Arc<dyn Store>,
        from: &StorePath,
        to: &StorePath,
        selection: &Selection<'_>,
    ) -> Result<(), StoreError> {
        self.roots.push(to.clone());
        self.versions = source.abilities().versions;
        let walk = Walk { source, selection, skip: from.as_bytes().len() };
        let mut dirs = VecDeque::new();
        let found = source.look(from)?;
        match (found.kind, from.split()) {
            // The list is about what is in it; it is wanted itself.
            (Kind::Dir, _) => self.found(source, (from.clone(), found), to.clone(), &mut dirs),
            // Patterns are about the name of a file.
            (_, Some((_, name))) if selection.of(name.as_bytes(), false) == Wanted::LeftOut => {}
            _ => self.found(source, (from.clone(), found), to.clone(), &mut dirs),
        }
        while let Some((from, to)) = dirs.pop_front() {
            self.dir(&walk, &from, &to, &mut dirs);
        }
        for path in selection.listed() {
            let there = match StorePath::new(&[from.as_bytes(), b"/", path].concat()) {
                Ok(listed) => source.look(&listed),
                Err(_) => Err(StoreError::new("read", from, ErrorKind::BadName)),
            };
            if let Err(error) = there {
                let why = Why::Server(error.kind);
                self.left_out.push(LeftOut { path: path.to_vec(), why });
            }
        }
        Ok(())
    }

    fn dir(
        &mut self,
        walk: &Walk<'_>,
        from: &StorePath,
        to: &StorePath,
        dirs: &mut VecDeque<(StorePath, StorePath)>,
    ) {
        let mut after = None;
        loop {
            let page = match walk.source.list(from, after.as_ref(), PAGE) {
                Ok(page) => page,
                Err(error) => return self.leave_out(from, Why::Server(error.kind)),
            };
            if page.skipped > 0 {
                self.leave_out(from, Why::BadName);
            }
            for item in page.items {
                match (from.join(&item.name), to.join(&item.name)) {
                    (Ok(from), Ok(to)) => self.entry(walk, (from, item.found), to, dirs),
                    _ => self.leave_out(from, Why::BadName),
                }
            }
            after = page.next;
            if after.is_none() {
                return;
            }
        }
    }

    fn entry(
        &mut self,
        walk: &Walk<'_>,
        (from, found): (StorePath, Found),
        to: StorePath,
        dirs: &mut VecDeque<(StorePath, StorePath)>,
    ) {
        let below = from.as_bytes().get(walk.skip..).unwrap_or_default();
        let below = below.strip_prefix(b"/").unwrap_or(below);
        match walk.selection.of(below, found.kind == Kind::Dir) {
            Wanted::Copied | Wanted::Above => self.found(walk.source, (from, found), to, dirs),
            Wanted::Tree => self.leave_out(&from, Why::Tree),
            Wanted::LeftOut => {}
        }
    }

    fn found(
        &mut self,
        source: &Arc<dyn Store>,
        (from, found): (StorePath, Found),
        to: StorePath,
        dirs: &mut VecDeque<(StorePath, StorePath)>,
    ) {
        match found.kind {
            Kind::Dir => {
                if to != StorePath::ROOT {
                    self.dirs.push((to.clone(), DirMeta::of(&found)));
                }
                dirs.push_back((from, to));
            }
            Kind::Link => match source.read_link(&from) {
                Ok(text) => {
                    let modified = found.modified;
                    self.links.push((to, Link { text, modified }));
                }
                Err(error) => self.leave_out(&from, Why::Server(error.kind)),
            },
            Kind::Special => self.leave_out(&from, Why::Special),
            Kind::File if found.size == 0 && has_bytes(source, &from) => {
                self.leave_out(&from, Why::Sizeless);
            }
            Kind::File => match PeerPath::new(from.as_bytes()) {
                Ok(path) => {
                    let (seen, at) = (Seen::from(&found), Vec::new());
                    let content = found.version.map(Into::into);
                    self.files.push(File { path, to, seen, content, mode: found.mode, at });
                }
                Err(_) => self.leave_out(&from, Why::BadName),
            },
        }
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

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.seen.size).sum()
    }
}

/// Whether reading a file gives bytes. A file that cannot be read has none here: it is told when it is sent.
fn has_bytes(source: &Arc<dyn Store>, path: &StorePath) -> bool {
    let open = source.open(path, Access::Read);
    open.is_ok_and(|open| open.read_at(0, &mut [0]).is_ok_and(|length| length > 0))
}

#[cfg(test)]
mod tests;
