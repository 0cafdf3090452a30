//! A directory and everything in it, one after the other: the way is a list and no recursion, so that it may
//! be as deep as a tree.

use super::{LONGEST_PATH, Walker};
use crate::read::ReadSource;
use crate::spot::Spot;
use hikyaku_fs::{Folder, Kind, Meta, Name, PeerPath, Token};
use std::vec::IntoIter;

/// Directories within each other that are held open: the others are opened again.
const HELD: usize = 32;

/// Where a walk is.
pub(super) struct Descent {
    top: Spot,
    /// Where it is, beneath the directory that was opened.
    below: Vec<u8>,
    /// The path of that directory at the target.
    path: Vec<u8>,
    /// Bytes of that before what lies beneath the source.
    skip: usize,
    levels: Vec<Level>,
}

/// A directory on the way.
struct Level {
    folder: Option<Folder>,
    identity: (u64, u64),
    names: IntoIter<Name>,
    /// How long its two paths are.
    lengths: (usize, usize),
}

impl Descent {
    pub(super) fn new(top: Spot, path: Vec<u8>) -> Self {
        let below = top.below().map_or_else(Vec::new, |below| below.as_bytes().to_vec());
        let skip = path.len() + usize::from(!path.is_empty());
        Self { top, below, path, skip, levels: Vec::new() }
    }

    /// Visits everything.
    pub(super) fn run(mut self, walker: &mut Walker<'_>) {
        let entered = self.enter(walker);
        self.complain(walker, entered);
        while let Some(level) = self.levels.last_mut()
            && !walker.fault.is_there()
        {
            let (below, path) = level.lengths;
            self.below.truncate(below);
            self.path.truncate(path);
            let Some(name) = level.names.next() else {
                self.levels.pop();
                continue;
            };
            // An unfinished file of a copy into this directory, or of one that was interrupted.
            if Token::of(&name).is_some() {
                continue;
            }
            if let Err(error) = self.reopen() {
                self.complain(walker, Err(error));
                self.levels.pop();
                continue;
            }
            add(&mut self.below, &name);
            add(&mut self.path, &name);
            let visited = self.visit(walker, &name);
            self.complain(walker, visited);
        }
    }

    fn complain(&self, walker: &Walker<'_>, done: Result<(), ReadSource>) {
        if let Err(error) = done {
            walker.complaints.say(None, self.top.base().failure(&self.below, &error));
        }
    }

    fn spot(&self) -> Result<Spot, ReadSource> {
        if self.path.len().max(self.below.len()) > LONGEST_PATH {
            return Err(ReadSource::TooDeep);
        }
        let below = match self.below.as_slice() {
            b"" => None,
            below => Some(PeerPath::new(below).map_err(|_| ReadSource::TooDeep)?),
        };
        Ok(Spot::new(self.top.base().clone(), below))
    }

    /// Sees to it that the innermost directory is open.
    fn reopen(&mut self) -> Result<(), ReadSource> {
        if self.levels.last().is_some_and(|level| level.folder.is_none()) {
            let folder = self.spot()?.folder()?;
            let identity = Meta::of(&folder)?.identity;
            if let Some(level) = self.levels.last_mut() {
                if level.identity != identity {
                    return Err(ReadSource::Changed);
                }
                level.folder = Some(folder);
            }
        }
        Ok(())
    }

    /// The entry of this name in the innermost directory.
    fn visit(&mut self, walker: &mut Walker<'_>, name: &Name) -> Result<(), ReadSource> {
        let Some(folder) = self.levels.last().and_then(|level| level.folder.as_ref()) else {
            return Err(ReadSource::Changed);
        };
        let meta = folder.look(name)?;
        let inside = self.path.get(self.skip..).unwrap_or_default();
        if walker.options.patterns.leaves_out(inside, meta.kind == Kind::Dir) {
            return Ok(());
        }
        let spot = self.spot()?;
        if meta.kind != Kind::Dir {
            return walker.leaf(spot, self.path.clone(), &meta, (folder, name));
        }
        walker.directory(spot, &self.path, &meta)?;
        self.enter(walker)
    }

    /// Goes on in the directory that both paths name.
    fn enter(&mut self, walker: &Walker<'_>) -> Result<(), ReadSource> {
        let folder = self.spot()?.folder()?;
        let identity = Meta::of(&folder)?.identity;
        if self.levels.iter().any(|level| level.identity == identity) {
            return Err(ReadSource::Circle);
        }
        let (names, odd) = folder.names()?;
        if odd > 0 {
            self.complain(walker, Err(ReadSource::Odd(odd)));
        }
        if self.levels.len() >= HELD
            && let Some(level) = self.levels.last_mut()
        {
            level.folder = None;
        }
        let lengths = (self.below.len(), self.path.len());
        self.levels.push(Level {
            folder: Some(folder),
            identity,
            names: names.into_iter(),
            lengths,
        });
        Ok(())
    }
}

fn add(path: &mut Vec<u8>, name: &Name) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_bytes());
}
