//! What of the sources is copied, and what becomes of a file whose name is taken at the target. Downloads and uploads of
//! daemons, Gfarm file systems and buckets decide both here.

use crate::dress::Times;
use crate::fetch::{Expected, Hashes, Writing};
use crate::layout::Meant;
use crate::session::Origin;
use hikyaku_fs::dirs_above;
use hikyaku_job::{Content, Patterns, Taken, file_action, link_action};
pub(crate) use hikyaku_job::{FileAction as Action, LinkAction};
pub use hikyaku_job::{InTheWay, Same};
use hikyaku_remote::Seen;
use hikyaku_store::{Clock, Found, Last, StorePath, Time};
use hikyaku_transfer::{Depth, Durable, Existing, Links, Pass, Resume, Verify, Write};
use std::collections::BTreeSet;
use std::fmt;

/// What of the sources is copied, and how.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// Whether directories are copied.
    pub depth: Depth,
    /// Names below a source that are not copied, and directories with everything below them. A source that is a file is known by
    /// its own name.
    pub patterns: &'a Patterns,
    /// The only paths below each source that are copied, into the target itself; everything if there are none.
    pub listed: &'a [Vec<u8>],
    /// Paths of servers, of sources or of the target, that were written as directories: no other file is meant.
    pub dirs: &'a [StorePath],
    /// Sources that were written as what is in a directory, as `dir/.`: they have no name of their own at the target.
    pub contents: &'a [StorePath],
    /// Whether a source that is a symbolic link is followed. A target is followed.
    pub named_links: Links,
    /// Whether links below a source are followed.
    pub links: Links,
    /// What happens to files of the same name at the target.
    pub existing: Existing,
    /// When a file of the same name counts as copied already.
    pub same: Same,
    /// Which modification times files get.
    pub times: Times,
    /// Whether anything is written.
    pub pass: Pass,
    /// The use of what an earlier run has left; `None` if no run leaves anything unfinished.
    pub resume: Option<Resume>,
    /// How files are written.
    pub writing: Writing,
    /// Whether the hashes of the files are wanted.
    pub hashes: Hashes,
    /// A condition for each file before it gets its name.
    pub expected: Option<&'a dyn Expected>,
}

impl Choice<'_> {
    /// Whether the last name of a source is followed if it is a link. One that was written as a directory is.
    pub fn last(&self, source: &StorePath) -> Last {
        match self.named_links {
            Links::Kept if !self.dirs.contains(source) => Last::Kept,
            Links::Kept | Links::Followed => Last::Followed,
        }
    }

    /// The source that the next run of the same command continues, by its name.
    pub fn origin<'b>(&self, name: &'b str) -> Option<Origin<'b>> {
        self.resume.map(|resume| Origin { name, resume })
    }

    /// What of a source of servers is meant.
    pub fn meant(&self, source: &StorePath) -> Meant {
        match () {
            () if !self.listed.is_empty() => Meant::List,
            () if self.contents.contains(source) => Meant::Contents,
            () => Meant::Itself,
        }
    }

    /// Files only, all of them, which replace what is there.
    pub const FILES: Self = Self {
        depth: Depth::File,
        patterns: &Patterns::NONE,
        listed: &[],
        dirs: &[],
        contents: &[],
        named_links: Links::Followed,
        links: Links::Kept,
        existing: Existing::Replaced,
        same: Same::SizeAndTime,
        times: Times::Kept,
        pass: Pass::Copy,
        resume: None,
        writing: Writing { write: Write::Beside, durable: Durable::Disk, verify: Verify::Arrived },
        hashes: Hashes::Dropped,
        expected: None,
    };
    /// The same with directories.
    pub const TREES: Self = Self { depth: Depth::Tree, ..Self::FILES };
}

impl fmt::Debug for Choice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choice")
            .field("depth", &self.depth)
            .field("listed", &self.listed.len())
            .field("existing", &self.existing)
            .field("pass", &self.pass)
            .finish_non_exhaustive()
    }
}

/// A symbolic link that is copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// What it says.
    pub text: Vec<u8>,
    /// When it was made.
    pub modified: Time,
}

/// Decides what becomes of a file where `found` has its name, in a store with this clock.
pub(crate) fn action(
    new: Seen,
    found: Option<&Found>,
    rules: (Existing, Same),
    clock: Clock,
) -> Action {
    let modified = clock.kept(new.modified).unwrap_or(new.modified);
    let new = Content { size: new.size, modified };
    file_action(new, found.map(Taken::from), rules)
}

/// Decides what becomes of a symbolic link where `found` has its name, and says `text` if it is a link.
pub(crate) fn action_of_link(
    new: &Link,
    (found, text): (&Found, Option<&[u8]>),
    existing: Existing,
) -> LinkAction {
    link_action((&new.text, new.modified), Some((Taken::from(found), text)), existing)
}

/// What becomes of a name below a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// It is copied; of a directory also what is in it, as far as that is wanted.
    Copied,
    /// A directory above something that is listed.
    Above,
    /// It is not copied.
    LeftOut,
    /// A listed directory, and directories are not copied.
    Tree,
}

/// A choice, ready for many questions.
pub(crate) struct Selection<'a> {
    choice: &'a Choice<'a>,
    listed: BTreeSet<&'a [u8]>,
    above: BTreeSet<&'a [u8]>,
}

impl<'a> Selection<'a> {
    pub(crate) fn new(choice: &'a Choice<'a>) -> Self {
        let listed: BTreeSet<&[u8]> = choice.listed.iter().map(Vec::as_slice).collect();
        let above = listed.iter().flat_map(|path| dirs_above(path)).collect();
        Self { choice, listed, above }
    }

    /// Whether only what is listed is copied.
    pub(crate) fn is_list(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Whether links below the source are followed.
    pub(crate) const fn links(&self) -> Links {
        self.choice.links
    }

    pub(crate) const fn depth(&self) -> Depth {
        self.choice.depth
    }

    pub(crate) fn listed(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.listed.iter().copied()
    }

    /// What becomes of the name with this path below a source; a source that is a file has its own name.
    pub(crate) fn of(&self, below: &[u8], is_dir: bool) -> Wanted {
        if !self.is_list() {
            return self.inside(below, 0, is_dir);
        }
        if self.listed.contains(below) {
            return match is_dir {
                true if self.depth() == Depth::File => Wanted::Tree,
                true => Wanted::Copied,
                false if self.choice.patterns.leaves_out(below, false) => Wanted::LeftOut,
                false => Wanted::Copied,
            };
        }
        let mut tops = dirs_above(below).filter(|dir| self.listed.contains(dir));
        let is_copied = |top: &[u8]| self.inside(below, top.len() + 1, is_dir) == Wanted::Copied;
        match self.depth() {
            Depth::Tree if tops.any(is_copied) => Wanted::Copied,
            _ if is_dir && self.above.contains(below) => Wanted::Above,
            _ => Wanted::LeftOut,
        }
    }

    /// The same by the patterns only, which are about what follows the first `skip` bytes.
    fn inside(&self, path: &[u8], skip: usize, is_dir: bool) -> Wanted {
        let Some(path) = path.get(skip..).filter(|path| !path.is_empty()) else {
            return Wanted::Copied;
        };
        let patterns = self.choice.patterns;
        let is_out = dirs_above(path).any(|dir| patterns.leaves_out(dir, true))
            || patterns.leaves_out(path, is_dir);
        if is_out { Wanted::LeftOut } else { Wanted::Copied }
    }
}

#[cfg(test)]
mod tests;
