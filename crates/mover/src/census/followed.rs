//! Links of a census that are followed: the name of a link gets what the link leads to, if that is in what the servers
//! offer. Its bytes are read from their own place.

use super::{Census, File, LeftOut, Why};
use crate::above::{Above, is_within};
use crate::choice::{Choice, Selection, Wanted};
use crate::dress::DirMeta;
use hikyaku_fs::PeerPath;
use hikyaku_store::{End, ErrorKind, Last, Led, Root, Step, StorePath, lead};
use hikyaku_transfer::Links;
use std::mem;

/// Entries that one census may have with those behind links. Links can multiply the entries of a small tree without end.
const ENTRIES_MAX: usize = 10_000_000;

/// How a census learns what is behind its links.
pub struct Behind<'a> {
    /// The place to which a path leads, without links.
    pub lead: &'a mut dyn FnMut(&StorePath) -> Result<StorePath, ErrorKind>,
    /// Everything at and below a place.
    pub census: &'a mut dyn FnMut(&StorePath) -> Result<Census, ErrorKind>,
}

/// A place and everything at and below it.
struct Tree {
    root: StorePath,
    all: Census,
}

/// An entry of a tree.
enum At {
    File,
    Dir(DirMeta),
}

/// A link that is to be followed.
struct Follow {
    /// Its path as the user sees it, below links.
    shown: Vec<u8>,
    /// Its place.
    from: StorePath,
    /// The directories above it.
    above: Above,
}

struct Follower<'a, 'b> {
    /// The source, and what links have led to.
    trees: Vec<Tree>,
    /// The entries that are added under the names of links.
    added: Census,
    entries: usize,
    selection: Selection<'a>,
    /// Bytes of a path before the part that is below the source.
    skip: usize,
    behind: Behind<'b>,
}

impl Census {
    /// Follows the links below the source `root`, as far as they are wanted. One that leads nowhere, out of what the servers
    /// offer, or back to a directory above it is left out.
    pub fn follow(&mut self, root: &StorePath, choice: &Choice<'_>, behind: Behind<'_>) {
        if choice.links == Links::Kept || self.links.is_empty() {
            return;
        }
        let all = mem::take(self);
        let follow = |path: &PeerPath| {
            let (shown, from) = (path.as_bytes().to_vec(), StorePath::from(path.clone()));
            Follow { shown, from, above: Above::of(root) }
        };
        let mut links: Vec<Follow> = all.links.iter().map(|(path, _)| follow(path)).collect();
        let mut follower = Follower {
            entries: all.dirs.len() + all.files.len(),
            trees: vec![Tree { root: root.clone(), all }],
            added: Self::default(),
            selection: Selection::new(choice),
            skip: if *root == StorePath::ROOT { 0 } else { root.as_bytes().len() + 1 },
            behind,
        };
        while let Some(link) = links.pop() {
            follower.link(link, &mut links);
        }
        let added = follower.added;
        *self = follower.trees.swap_remove(0).all;
        self.links.clear();
        self.dirs.extend(added.dirs);
        self.dirs.sort_by(|(one, _), (other, _)| one.as_bytes().cmp(other.as_bytes()));
        self.files.extend(added.files);
        self.files.sort_by(|one, other| one.to.as_bytes().cmp(other.to.as_bytes()));
        self.left_out.extend(added.left_out);
        for lost in added.lost {
            if self.lost.iter().all(|(server, _)| *server != lost.0) {
                self.lost.push(lost);
            }
        }
    }
}

impl Follower<'_, '_> {
    /// Follows a link. Those in a directory behind it come into `links`.
    fn link(&mut self, link: Follow, links: &mut Vec<Follow>) {
        let below = link.shown.get(self.skip..).unwrap_or_default();
        let is_wanted = self.selection.of(below, false) == Wanted::Copied
            || self.selection.of(below, true) == Wanted::Above;
        if !is_wanted {
            return;
        }
        let shown = link.shown.clone();
        if let Err(why) = self.followed(link, links) {
            self.added.left_out.push(LeftOut { path: shown, why });
        }
    }

    fn followed(&mut self, link: Follow, links: &mut Vec<Follow>) -> Result<(), Why> {
        let real = self.lead(&link.from).map_err(Why::of_link)?;
        let dir = link.from.split().map_or(StorePath::ROOT, |(dir, _)| dir);
        if link.above.has(&dir, &real) {
            return Err(Why::Circle);
        }
        let (tree, at) = self.find(&real)?;
        match at {
            At::File => self.file(&link.shown, (tree, &real)),
            At::Dir(meta) => {
                let above = link.above.behind_link(&dir, &real);
                self.dir((link.shown, meta), (tree, &real, above), links)
            }
        }
    }

    /// The place to which a path leads. Known trees are not asked for.
    fn lead(&mut self, path: &StorePath) -> Result<StorePath, ErrorKind> {
        let step = |at: &StorePath| self.trees.iter().find_map(|tree| tree.step(at)).ok_or(());
        match lead(path, (Root::Somewhere, Last::Followed), step) {
            Ok(Led { path, end: End::There }) => Ok(path),
            _ => (self.behind.lead)(path),
        }
    }

    /// The entry at a place, and the number of the tree that has it. An unknown tree is requested.
    fn find(&mut self, real: &StorePath) -> Result<(usize, At), Why> {
        let mut known = self.trees.iter().map(|tree| tree.at(real)).enumerate();
        if let Some((number, at)) = known.find_map(|(number, at)| Some((number, at?))) {
            return at.map(|at| (number, at));
        }
        let mut all = (self.behind.census)(real).map_err(Why::Server)?;
        self.added.lost.append(&mut all.lost);
        self.trees.push(Tree { root: real.clone(), all });
        let number = self.trees.len() - 1;
        let at = self.trees[number].at(real).unwrap_or(Err(Why::Server(ErrorKind::NotFound)))?;
        Ok((number, at))
    }

    fn file(&mut self, shown: &[u8], (tree, real): (usize, &StorePath)) -> Result<(), Why> {
        let to = StorePath::new(shown).map_err(|_| Why::BadName)?;
        let files = &self.trees[tree].all.files;
        let file = exact(files, |file| file.path.as_bytes(), real.as_bytes());
        let file = file.ok_or(Why::Server(ErrorKind::NotFound))?;
        self.added.files.push(File { to, ..file.clone() });
        self.count(1)
    }

    /// Gives a name all that a directory has.
    fn dir(
        &mut self,
        (shown, meta): (Vec<u8>, DirMeta),
        (tree, real, above): (usize, &StorePath, Above),
        links: &mut Vec<Follow>,
    ) -> Result<(), Why> {
        let path = PeerPath::new(&shown).map_err(|_| Why::BadName)?;
        let Tree { root, all } = &self.trees[tree];
        let within = if real == root { b"".to_vec() } else { below(real.as_bytes()) };
        let (dirs, files) = (&all.dirs, &all.files);
        let dirs = range(dirs, |(path, _)| path.as_bytes(), &within);
        let files = range(files, |file| file.path.as_bytes(), &within);
        let (more, skip) = (dirs.len() + files.len() + 1, real.as_bytes().len());
        let name = |path: &[u8]| {
            let path = path.get(skip..).unwrap_or_default();
            let path = path.strip_prefix(b"/").unwrap_or(path);
            [&below(&shown), path].concat()
        };
        let mut left_out = Vec::new();
        let mut bad = |path| left_out.push(LeftOut { path, why: Why::BadName });
        self.added.dirs.push((path, meta));
        for (path, meta) in dirs.iter().filter(|(path, _)| path.as_bytes() != real.as_bytes()) {
            match PeerPath::new(&name(path.as_bytes())) {
                Ok(path) => self.added.dirs.push((path, *meta)),
                Err(_) => bad(name(path.as_bytes())),
            }
        }
        for file in files {
            match StorePath::new(&name(file.path.as_bytes())) {
                Ok(to) => self.added.files.push(File { to, ..file.clone() }),
                Err(_) => bad(name(file.path.as_bytes())),
            }
        }
        for (path, _) in range(&all.links, |(path, _)| path.as_bytes(), &within) {
            let (from, above) = (StorePath::from(path.clone()), above.clone());
            links.push(Follow { shown: name(path.as_bytes()), from, above });
        }
        let unread = all.left_out.iter().filter(|left| left.path.starts_with(&within));
        left_out.extend(unread.map(|left| LeftOut { path: name(&left.path), ..left.clone() }));
        self.added.left_out.append(&mut left_out);
        self.count(more)
    }

    fn count(&mut self, more: usize) -> Result<(), Why> {
        self.entries += more;
        if self.entries > ENTRIES_MAX { Err(Why::Server(ErrorKind::TooLarge)) } else { Ok(()) }
    }
}

impl Tree {
    /// The entry at a place; `None` if the tree does not have it.
    fn at(&self, place: &StorePath) -> Option<Result<At, Why>> {
        let path = place.as_bytes();
        if *place == StorePath::ROOT && self.root == StorePath::ROOT {
            return Some(Ok(At::Dir(DirMeta::unknown())));
        }
        if exact(&self.all.files, |file| file.path.as_bytes(), path).is_some() {
            return Some(Ok(At::File));
        }
        if let Some((_, meta)) = exact(&self.all.dirs, |(path, _)| path.as_bytes(), path) {
            return Some(Ok(At::Dir(*meta)));
        }
        let left = self.all.left_out.iter().find(|left| left.path == path)?;
        Some(Err(left.why))
    }

    /// The kind of an entry, as far as the tree has it.
    fn step(&self, at: &StorePath) -> Option<Step> {
        let path = at.as_bytes();
        if is_within(&self.root, at) && self.root != *at {
            return Some(Step::Other);
        }
        if let Some((_, link)) = exact(&self.all.links, |(path, _)| path.as_bytes(), path) {
            return Some(Step::Link(link.text.clone()));
        }
        let is_dir = exact(&self.all.dirs, |(path, _)| path.as_bytes(), path).is_some();
        let is_file = exact(&self.all.files, |file| file.path.as_bytes(), path).is_some();
        (is_dir || is_file).then_some(Step::Other)
    }
}

/// The beginning of the paths of all that is in a directory.
fn below(dir: &[u8]) -> Vec<u8> {
    if dir.is_empty() { Vec::new() } else { [dir, b"/"].concat() }
}

/// The number of the first item whose path is not before `path`. The items are in the order of their paths.
fn from<T>(items: &[T], of: impl Fn(&T) -> &[u8], path: &[u8]) -> usize {
    items.partition_point(|item| of(item) < path)
}

/// The item with a path.
fn exact<'t, T>(items: &'t [T], of: impl Fn(&T) -> &[u8], path: &[u8]) -> Option<&'t T> {
    items.get(from(items, &of, path)).filter(|item| of(item) == path)
}

/// The items whose paths begin so.
fn range<'t, T>(items: &'t [T], of: impl Fn(&T) -> &[u8], start: &[u8]) -> &'t [T] {
    let items = items.get(from(items, &of, start)..).unwrap_or_default();
    let count = items.partition_point(|item| of(item).starts_with(start));
    items.get(..count).unwrap_or_default()
}
