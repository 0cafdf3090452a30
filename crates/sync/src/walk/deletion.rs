//! What is deleted: names that the source does not have, and what is in them.

use super::{Backup, LISTED_AT_ONCE, NoPlan, Sink, Told, Walk, dir_at};
use crate::options::Excluded;
use crate::plan::{Doomed, End, Plan, Reason, dir_line, join};
use crate::side::{Done, Item, Kind, Meta, shown};
use std::collections::{BTreeMap, BTreeSet};
use std::thread;

/// Listings of directories that may be deleted, by path.
type Listings = BTreeMap<Vec<u8>, Done<Vec<Item>>>;

/// A name of the target that the source does not have.
pub(super) struct Extra {
    pub(super) path: Vec<u8>,
    pub(super) meta: Meta,
    pub(super) end: End,
}

/// What becomes of a directory that is in the way of a file or link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// It is deleted.
    Free,
    /// Something in it stays.
    Blocked,
}

/// Names of one directory in the order in which rsync deletes them: from the last one to the first, and directories before
/// all others.
pub(super) fn order<T>(all: &mut [T], of: impl Fn(&T) -> (&[u8], Kind)) {
    all.sort_by_cached_key(|one| match of(one) {
        (name, Kind::Dir) => (1, dir_line(name)),
        (name, _) => (0, name.to_vec()),
    });
    all.reverse();
}

impl Walk<'_> {
    /// Adds names that the source does not have, and what is in them.
    pub(super) fn delete(
        &self,
        extra: &mut [Extra],
        siblings: &[Item],
        sink: &mut Sink<'_>,
    ) -> Result<(), NoPlan> {
        order(extra, |extra| (&extra.path[..], extra.meta.kind));
        let is_open = |extra: &&Extra| {
            extra.meta.kind == Kind::Dir && !self.is_kept(&extra.path, &extra.meta)
        };
        let open = extra.iter().filter(is_open).map(|extra| extra.path.clone()).collect();
        let mut listings = self.listings(open, sink)?;
        for extra in extra.iter() {
            if !self.can_end(&extra.path, &extra.meta, &extra.end, siblings, sink)? {
                continue;
            }
            let doomed = (&extra.path[..], &extra.meta, extra.end.clone());
            self.doom(doomed, Reason::Extra, &mut listings, sink)?;
        }
        Ok(())
    }

    /// Takes those out of which the names are those of backups of this run, from `first` on: they go before that.
    pub(super) fn replaced(&self, extra: &mut Vec<Extra>, first: usize, sink: &mut Sink<'_>) {
        let Plan { backups, early, .. } = &mut sink.plan;
        let taken: BTreeSet<&[u8]> = backups[first..].iter().map(|(_, to)| &to[..]).collect();
        extra.retain(|extra| {
            let is_taken = taken.contains(&extra.path[..]);
            if is_taken && extra.meta.kind != Kind::Dir && !self.is_kept(&extra.path, &extra.meta) {
                let (path, meta, end) = (extra.path.clone(), extra.meta, End::Removed);
                early.push(Doomed { path, meta, end, reason: Reason::Extra });
            }
            !is_taken
        });
    }

    /// Whether a name that is deleted can be kept as it is to be.
    fn can_end(
        &self,
        path: &[u8],
        meta: &Meta,
        end: &End,
        siblings: &[Item],
        sink: &mut Sink<'_>,
    ) -> Result<bool, NoPlan> {
        let End::Renamed(to) = end else { return Ok(true) };
        if self.is_kept(path, meta) {
            return Ok(true);
        }
        // If rules do not keep the directory, it is deleted before.
        let dir = dir_at(to, siblings).filter(|dir| self.is_kept(to, dir));
        self.frees(path, Backup { path: to, dir }, sink)
    }

    /// Frees the name of a backup: as in rsync, a directory that has it is deleted with all that is in it.
    pub(super) fn frees(
        &self,
        path: &[u8],
        to: Backup<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<bool, NoPlan> {
        let Some(dir) = to.dir else { return Ok(true) };
        let is_free = self.make_way((to.path, dir), Reason::Backup, sink)? == Way::Free;
        if !is_free {
            let text = "the directory with the name of its backup cannot be deleted, so it stays";
            sink.plan.failures.push(format!("{}: {text}", shown(path)));
        }
        Ok(is_free)
    }

    /// A directory is in the way of a file, a link or a backup: it is deleted if nothing in it stays. Without `--delete`
    /// it must be empty, but in the way of a backup.
    pub(super) fn make_way(
        &self,
        (path, meta): (&[u8], &Meta),
        reason: Reason,
        sink: &mut Sink<'_>,
    ) -> Result<Way, NoPlan> {
        let is_whole = self.options.deletion.is_some() || reason == Reason::Backup;
        let mut listings = match is_whole {
            true => self.listings(vec![path.to_vec()], sink)?,
            false => Listings::from([(path.to_vec(), self.target.list(path))]),
        };
        let mut inner = match listings.remove(path) {
            Some(Ok(inner)) => inner,
            Some(Err(why)) => return sink.failed(path, why).map(|()| Way::Blocked),
            None => return Ok(Way::Blocked),
        };
        let mut way = Way::Free;
        order(&mut inner, |item| (&item.name[..], item.meta.kind));
        for item in &inner {
            let is_gone = is_whole && {
                let path = join(path, &item.name);
                let end = self.end_of(&path, &item.meta, reason);
                self.can_end(&path, &item.meta, &end, &inner, sink)?
                    && self.doom((&path, &item.meta, end), reason, &mut listings, sink)?
            };
            way = if is_gone { way } else { Way::Blocked };
        }
        let (is_free, path) = (way == Way::Free, path.to_vec());
        if let Some(identity) = meta.identity.filter(|_| is_free || !inner.is_empty()) {
            sink.plan.emptied.push((path.clone(), identity));
        }
        if is_free {
            sink.plan.touch(&path);
            let doomed = Doomed { path, meta: *meta, end: End::Removed, reason: Reason::InTheWay };
            match reason {
                Reason::Backup => sink.plan.early.push(doomed),
                _ => sink.plan.delete.push(doomed),
            }
        }
        Ok(way)
    }

    /// What becomes of a name in a directory that the source does not have.
    fn end_of(&self, path: &[u8], meta: &Meta, reason: Reason) -> End {
        match &self.options.backup {
            _ if reason == Reason::Backup => End::Removed,
            Some(suffix) if meta.kind != Kind::Dir && !path.ends_with(suffix.as_bytes()) => {
                End::Renamed([path, suffix.as_bytes()].concat())
            }
            _ => End::Removed,
        }
    }

    /// Lists all directories at and below these that rules do not keep, several at a time.
    fn listings(&self, mut open: Vec<Vec<u8>>, sink: &mut Sink<'_>) -> Result<Listings, NoPlan> {
        let mut listings = Listings::new();
        while !open.is_empty() {
            let wave = open.split_off(open.len().saturating_sub(LISTED_AT_ONCE));
            let listed = thread::scope(|scope| {
                let mut threads = Vec::new();
                for path in &wave {
                    threads.push(scope.spawn(move || self.target.list(path)));
                }
                threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
            });
            for (path, listed) in wave.into_iter().zip(listed) {
                // A thread that has panicked has listed nothing: the directory stays.
                let Ok(listed) = listed else { continue };
                for item in listed.iter().flatten() {
                    let path = join(&path, &item.name);
                    sink.hold(&path)?;
                    if item.meta.kind == Kind::Dir && !self.is_kept(&path, &item.meta) {
                        open.push(path);
                    }
                }
                listings.insert(path, listed);
            }
        }
        Ok(listings)
    }

    /// Adds a name and what is in it. Tells whether the name is free then: a directory stays if anything in it does.
    fn doom(
        &self,
        (path, meta, end): (&[u8], &Meta, End),
        reason: Reason,
        listings: &mut Listings,
        sink: &mut Sink<'_>,
    ) -> Result<bool, NoPlan> {
        if self.is_kept(path, meta) {
            return Ok(false);
        }
        if meta.kind == Kind::Dir {
            let mut inner = match listings.remove(path) {
                Some(Ok(inner)) => inner,
                Some(Err(why)) => return sink.failed(path, why).map(|()| false),
                None => return Ok(false),
            };
            let (mut is_empty, before) = (true, sink.plan.early.len() + sink.plan.delete.len());
            order(&mut inner, |item| (&item.name[..], item.meta.kind));
            for item in &inner {
                let path = join(path, &item.name);
                let end = self.end_of(&path, &item.meta, reason);
                is_empty &= self.can_end(&path, &item.meta, &end, &inner, sink)?
                    && self.doom((&path, &item.meta, end), reason, listings, sink)?;
            }
            if let Some(identity) = meta.identity
                && (is_empty || sink.plan.early.len() + sink.plan.delete.len() > before)
            {
                sink.plan.emptied.push((path.to_vec(), identity));
            }
            if !is_empty {
                return Ok(false);
            }
        }
        if matches!(reason, Reason::Within | Reason::Backup) {
            let line = if meta.kind == Kind::Dir { dir_line(path) } else { path.to_vec() };
            (sink.tell)(Told::Deletion(&line))?;
        }
        let is_gone = end == End::Removed;
        sink.plan.touch(path);
        let doomed = Doomed { path: path.to_vec(), meta: *meta, end, reason };
        match reason {
            Reason::Backup => sink.plan.early.push(doomed),
            _ => sink.plan.delete.push(doomed),
        }
        Ok(is_gone)
    }

    /// Whether rules keep a name that the source does not have.
    fn is_kept(&self, path: &[u8], meta: &Meta) -> bool {
        let is_dir = meta.kind == Kind::Dir;
        match self.options.deletion.map(|deletion| deletion.excluded) {
            Some(Excluded::Deleted) => !self.rules.may_delete_excluded(path, is_dir),
            _ => !self.rules.may_delete(path, is_dir),
        }
    }
}
