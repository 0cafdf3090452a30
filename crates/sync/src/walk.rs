//! The walk through both trees: what is to be made, changed, copied and deleted.
//!
//! Directories are listed ahead, several at a time, and compared one after the other: first what is in a directory and is
//! none, then each directory in it with all below, as rsync does. What is to be deleted is found only in directories that
//! were listed whole at both ends.

mod chosen;
mod contents;
mod deletion;
mod listings;
mod name;

use crate::filter::Rules;
use crate::item::{Change, Comparison, Known, Way, change};
use crate::names::Names;
use crate::options::{Existing, Options};
use crate::plan::{End, Plan, SetDir, dir_line, join};
use crate::side::{Done, Item, Kind, Meta, Side, Why, shown};
use deletion::Extra;
use hikyaku_store::Descent;
use std::collections::BTreeSet;
use std::io;
use std::thread;

/// Directories that are listed at once at each end.
const LISTED_AT_ONCE: usize = 32;

/// What a name in a plan takes beside its path, in bytes, on all lists together.
const NAME_BYTES: u64 = 256;

/// Why there is no plan.
#[derive(Debug)]
pub(crate) enum NoPlan {
    /// An end cannot be used.
    End(Why),
    /// What was found cannot be printed.
    Output(io::Error),
}

impl From<io::Error> for NoPlan {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// What the walk tells while it goes.
pub(crate) enum Told<'a> {
    /// A change: its letters, and the name as it is shown.
    Change(&'a str, &'a [u8]),
    /// A name that is deleted because it is in a directory that makes way.
    Deletion(&'a [u8]),
    /// A name that takes no part: what it is.
    Skipped(Skipped, &'a [u8]),
}

/// What takes no part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Skipped {
    /// A directory, without `-r`.
    Directory,
    /// A FIFO, a socket or a device, or a link that is not kept.
    NoFile,
}

/// Takes what the walk tells.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(Told<'_>) -> io::Result<()>;

/// Where what is found goes.
struct Sink<'a> {
    plan: Plan,
    tell: Tell<'a>,
    /// Names of a list that the walk has not come to so far.
    missing: BTreeSet<Vec<u8>>,
    /// The bytes that the plan may still take.
    room: u64,
    /// Names that rsync keeps, and deletes then: they are told twice.
    copies: u64,
}

impl Sink<'_> {
    /// A directory is not entered: the names of a list that are in it are not missing.
    fn left_out(&mut self, path: &[u8]) {
        if self.missing.is_empty() {
            return;
        }
        let inner = [path, b"/"].concat();
        let within: Vec<_> = self
            .missing
            .range(inner.clone()..)
            .take_while(|name| name.starts_with(&inner))
            .cloned()
            .collect();
        within.iter().for_each(|name| {
            self.missing.remove(name);
        });
    }

    /// A name comes into the plan.
    fn hold(&mut self, path: &[u8]) -> Result<(), NoPlan> {
        let text = "there are more names than the memory of this process holds";
        let left = self.room.checked_sub(path.len() as u64 + NAME_BYTES);
        self.room = left.ok_or_else(|| NoPlan::End(Why::of_name(text)))?;
        Ok(())
    }

    /// A name failed; a lost connection ends the walk.
    fn failed(&mut self, path: &[u8], why: Why) -> Result<(), NoPlan> {
        if why.is_end() {
            return Err(NoPlan::End(why));
        }
        let shown = shown(path);
        if why.is_absent() {
            self.plan.vanished.push(shown.to_string());
        } else {
            self.plan.failures.push(format!("{shown}: {}", why.text));
        }
        Ok(())
    }
}

/// Both ends, and what is wanted of them.
pub(crate) struct Walk<'a> {
    pub(crate) source: &'a Side,
    pub(crate) target: &'a Side,
    pub(crate) rules: &'a Rules,
    pub(crate) options: &'a Options,
    pub(crate) way: Way,
    /// The only names of the source that take part, if not all do.
    pub(crate) names: Option<&'a Names>,
    /// The bytes that a plan may take.
    pub(crate) plan_max: u64,
}

/// What the target has of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// A directory.
    There,
    /// Nothing: the directory is made before anything in it.
    Absent,
    /// Nothing but the root, which was made for this run.
    New,
}

/// A directory that is to be compared.
struct Pending {
    path: Vec<u8>,
    target: Target,
    /// What differs of the directory itself.
    change: Option<Change>,
    /// Metadata that it gets at the end.
    set: Option<SetDir>,
    /// Permission bits with which it is made, if it is.
    made: Option<u32>,
}

/// The entries of a directory at the source and at the target.
type Listed = [Done<Vec<Item>>; 2];

/// A name of the source with its path and what the target has.
#[derive(Clone, Copy)]
struct Pair<'a> {
    path: &'a [u8],
    source: &'a Item,
    target: Option<&'a Item>,
    /// How what the target has is kept, if it is to be.
    backup: Option<Backup<'a>>,
    /// The result of the comparison of the contents, if there was one.
    content: Option<&'a Done<Comparison>>,
}

/// How a name of the target is kept.
#[derive(Clone, Copy)]
struct Backup<'a> {
    path: &'a [u8],
    /// A directory that has this path.
    dir: Option<&'a Meta>,
}

impl Walk<'_> {
    /// Compares the trees. Changes are told to `tell`, but for deletions of names that the source does not have.
    pub(crate) fn plan(&self, root: Target, tell: Tell<'_>) -> Result<Plan, NoPlan> {
        let (plan, missing) = (Plan::default(), BTreeSet::new());
        let mut sink = Sink { plan, tell, missing, room: self.plan_max, copies: 0 };
        let Some(names) = self.names else { return self.walk(root, sink) };
        let chosen = self.chosen(names, &mut sink)?;
        sink.missing = chosen.wanted();
        if sink.missing.is_empty() {
            return Ok(sink.plan);
        }
        Walk { names: Some(&chosen), ..*self }.walk(root, sink)
    }

    fn walk(&self, root: Target, mut sink: Sink<'_>) -> Result<Plan, NoPlan> {
        self.walk_ahead(root);
        let mut dirs = Descent::new(LISTED_AT_ONCE);
        dirs.enter(self.root(root, &mut sink)?);
        while let Some((dir, listed)) = dirs.next(|dir| self.listed_at_both(dir)) {
            let inner = self.directory(dir, listed, &mut sink)?;
            inner.into_iter().for_each(|dir| dirs.enter(dir));
        }
        for name in std::mem::take(&mut sink.missing) {
            sink.failed(&name, Why::of_name("it was gone before it was read"))?;
        }
        Ok(sink.plan)
    }

    /// Has storages list their trees at once, if rules leave out no part of them.
    fn walk_ahead(&self, root: Target) {
        let top = match self.names {
            None => b"",
            Some(names) => match names.source() {
                Some(name) => name,
                None => return,
            },
        };
        if self.options.is_recursive && self.rules.is_empty() {
            thread::scope(|scope| {
                scope.spawn(|| self.source.walk_ahead(top));
                if root == Target::There {
                    scope.spawn(|| self.target.walk_ahead(top));
                }
            });
        }
    }

    fn root(&self, target: Target, sink: &mut Sink<'_>) -> Result<Pending, NoPlan> {
        let path = Vec::new();
        sink.missing.remove(&path);
        // As in rsync, a root that would be new is no part of what is there already.
        let is_left_out = target == Target::Absent && self.options.existing == Existing::OnlyThese;
        if is_left_out || self.names.is_some_and(|names| !names.has_root()) {
            return Ok(Pending { path, target, change: None, set: None, made: None });
        }
        let look = |side: &Side| side.entry(b"").map_err(NoPlan::End);
        let source = look(self.source)?;
        let there = match target {
            Target::There => Some(look(self.target)?),
            Target::Absent | Target::New => None,
        };
        sink.plan.source_dirs.extend(source.meta.identity);
        let target_item = there.as_ref();
        let pair =
            Pair { path: b"", source: &source, target: target_item, backup: None, content: None };
        let there = there.as_ref().map(|there| &there.meta);
        let found = change(&source.meta, there, self.known(Comparison::None), self.options);
        Ok(self.pending(pair, found, target))
    }

    const fn known(&self, content: Comparison) -> Known {
        Known { way: self.way, content }
    }

    fn listed_at_both(&self, dir: &Pending) -> Listed {
        let ahead = self.source.kept(&dir.path);
        let source = ahead.map_or_else(|| self.list(self.source, &dir.path), Ok);
        let target = match dir.target {
            Target::There | Target::New => self.list(self.target, &dir.path),
            Target::Absent => Ok(Vec::new()),
        };
        [source, target]
    }

    /// The entries of a directory that may take part. Where one name is the source, its directory need not be readable.
    fn list(&self, side: &Side, dir: &[u8]) -> Done<Vec<Item>> {
        let Some(name) = self.names.and_then(Names::source).filter(|_| dir.is_empty()) else {
            return side.list(dir);
        };
        match side.entry(name) {
            Err(why) if why.is_absent() => Ok(Vec::new()),
            entry => Ok(vec![entry?]),
        }
    }

    /// Decides on a directory and on the names in it; gives the directories in it.
    fn directory(
        &self,
        dir: Pending,
        [source, target]: Listed,
        sink: &mut Sink<'_>,
    ) -> Result<Vec<Pending>, NoPlan> {
        let (is_unread, is_listed) = (source.is_err(), source.is_ok() && target.is_ok());
        if let Some(change) = dir.change.filter(|_| is_listed || dir.made.is_some()) {
            (sink.tell)(Told::Change(&change.letters, &dir_line(&dir.path)))?;
        }
        if let Some(mode) = dir.made {
            sink.plan.touch(&dir.path);
            sink.plan.dirs.push((dir.path.clone(), mode));
        }
        let (source, target) = match (source, target) {
            (Ok(source), Ok(target)) => (source, target),
            (Err(why), _) | (_, Err(why)) if dir.path.is_empty() => return Err(NoPlan::End(why)),
            (Err(why), _) | (_, Err(why)) => {
                sink.plan.unread += u64::from(is_unread && !why.is_absent());
                // Nothing is deleted here or below. The target does not get a mode that closes its directory, too.
                sink.failed(&dir.path, why)?;
                sink.left_out(&dir.path);
                return Ok(Vec::new());
            }
        };
        sink.plan.set_dirs.extend(dir.set);
        let (mut inner, mut is_matched) = (Vec::new(), vec![false; target.len()]);
        let backups = sink.plan.backups.len();
        let contents = self.contents(&dir.path, &source, &target);
        for item in &source {
            let path = join(&dir.path, &item.name);
            if !self.takes_part(&path, item) {
                continue;
            }
            sink.missing.remove(&path);
            let at = target.binary_search_by(|other| other.name.cmp(&item.name)).ok();
            at.iter().for_each(|&at| is_matched[at] = true);
            let there = at.map(|at| &target[at]);
            let kept = there.and_then(|there| self.backup(&dir.path, (there, Some(item)), &source));
            let backup = kept.as_deref().map(|path| Backup { path, dir: dir_at(path, &target) });
            let content = contents.get(&item.name[..]);
            let pair = Pair { path: &path, source: item, target: there, backup, content };
            match self.name(pair, sink)? {
                Some(entered) => inner.push(entered),
                None if item.meta.kind == Kind::Dir => sink.left_out(&path),
                None => {}
            }
        }
        if self.options.deletion.is_some()
            && self.names.is_none_or(|names| names.are_all_of(&dir.path))
        {
            let extra = target.iter().zip(is_matched).filter(|(_, is_matched)| !is_matched);
            let extra = extra.map(|(item, _)| {
                let backup = self.backup(&dir.path, (item, None), &source);
                let end = backup.map_or(End::Removed, End::Renamed);
                Extra { path: join(&dir.path, &item.name), meta: item.meta, end }
            });
            let mut extra: Vec<_> = extra.collect();
            extra.iter().try_for_each(|extra| sink.hold(&extra.path))?;
            self.replaced(&mut extra, backups, sink);
            self.delete(&mut extra, &target, sink)?;
        }
        // As rsync sorts directories: with a slash behind each name.
        inner.sort_by_cached_key(|dir| dir_line(&dir.path));
        Ok(inner)
    }

    fn takes_part(&self, path: &[u8], item: &Item) -> bool {
        let is_dir = item.meta.kind == Kind::Dir;
        match self.names {
            Some(names) => names.takes_part(path, is_dir, self.rules),
            None => self.rules.copies(path, is_dir),
        }
    }

    /// The path under which a name of the target is kept, if it is to be. It is none that the source has for another.
    fn backup(
        &self,
        dir: &[u8],
        (there, new): (&Item, Option<&Item>),
        source: &[Item],
    ) -> Option<Vec<u8>> {
        let suffix = self.options.backup.as_ref()?.as_bytes();
        if there.meta.kind == Kind::Dir {
            return None;
        }
        // What was kept by an earlier run is not kept again, unless a file takes the place of a file, or a link that of any.
        let is_taken =
            new.is_some_and(|new| new.meta.kind == Kind::Link || new.meta.kind == there.meta.kind);
        if there.name.ends_with(suffix) && !is_taken {
            return None;
        }
        let mut name = [&there.name[..], suffix].concat();
        while let Ok(at) = source.binary_search_by(|other| other.name.cmp(&name))
            && self.takes_part(&join(dir, &name), &source[at])
        {
            name.extend_from_slice(suffix);
        }
        Some(join(dir, &name))
    }
}

/// The directory that has this path, of the names of its parent.
fn dir_at<'a>(path: &[u8], all: &'a [Item]) -> Option<&'a Meta> {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let at = all.binary_search_by(|item| item.name[..].cmp(name)).ok()?;
    Some(&all[at].meta).filter(|meta| meta.kind == Kind::Dir)
}

#[cfg(test)]
mod tests;
