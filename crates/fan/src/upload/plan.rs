//! What is to be uploaded.

use crate::census::{LeftOut, Why};
use crate::choice::{Link, Selection, Wanted};
use crate::dress::DirMeta;
use hikyaku_remote::Seen;
use hikyaku_store::{Access, ErrorKind, Found, Kind, Store, StoreError, StorePath};
use std::collections::VecDeque;
use std::sync::Arc;

/// Files, directories and links with their places at the servers.
#[derive(Default)]
pub struct UploadPlan {
    /// Directories that have to be there and may not be on each server, such as the one that the user named.
    pub parents: Vec<StorePath>,
    /// The places of the sources.
    pub roots: Vec<StorePath>,
    /// Whether the target is the new name of a directory.
    pub is_new_tree: bool,
    /// Directories, each before those in it.
    pub dirs: Vec<(StorePath, DirMeta)>,
    /// Symbolic links.
    pub links: Vec<(StorePath, Link)>,
    /// Files.
    pub files: Vec<UploadFile>,
    /// What is not uploaded, and why; paths as at the source.
    pub left_out: Vec<LeftOut>,
}

/// A file that is to be uploaded.
pub struct UploadFile {
    /// The store that has it.
    pub source: Arc<dyn Store>,
    /// Its path there.
    pub from: StorePath,
    /// Its path at the servers.
    pub to: StorePath,
    /// Its size and time.
    pub seen: Seen,
    /// Its permission bits.
    pub mode: u32,
}

/// A source while it is looked through.
struct Walk<'a> {
    source: &'a Arc<dyn Store>,
    selection: &'a Selection<'a>,
    /// Bytes of a path before what is below the source.
    skip: usize,
}

/// Names of a directory that are read at once.
const PAGE: usize = 512;

impl UploadPlan {
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
            Kind::File => {
                let (source, seen) = (source.clone(), Seen::from(&found));
                self.files.push(UploadFile { source, from, to, seen, mode: found.mode });
            }
        }
    }

    fn leave_out(&mut self, path: &StorePath, why: Why) {
        self.left_out.push(LeftOut { path: path.as_bytes().to_vec(), why });
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
