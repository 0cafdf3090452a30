//! What is deleted: names that the source does not have, and what is in them.

use super::listings::Listings;
use super::{Backup, NoPlan, Sink, Told, Walk, dir_at};
use crate::options::Excluded;
use crate::plan::{Doomed, End, Plan, Reason, dir_line, join, parent};
use crate::side::{Item, Kind, Meta, shown};
use std::collections::BTreeSet;

/// A name of the target that the source does not have.
pub(super) struct Extra {
    pub(super) path: Vec<u8>,
    pub(super) meta: Meta,
    pub(super) end: End,
}

/// What becomes of a name that is in the way, or of what is in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// It is deleted.
    Free,
    /// It stays, or something in it does.
    Blocked,
}

/// Adds a name that is deleted for this reason, or because that makes way.
fn add(plan: &mut Plan, reason: Reason, doomed: Doomed) {
    let all = if reason.is_of_backup() { &mut plan.early } else { &mut plan.delete };
    all.push(doomed);
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
        let is_open = |extra: &&Extra| {
            extra.meta.kind == Kind::Dir && !self.is_kept(&extra.path, &extra.meta)
        };
        let open = extra.iter().filter(is_open).map(|extra| extra.path.clone()).collect();
        let mut listings = self.listings(open, sink)?;
        self.doom_each((extra, siblings), Reason::Extra, &mut listings, sink).map(drop)
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
        self.frees(path, Backup { path: to, dir: dir_at(to, siblings) }, sink)
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
            false => self.listing(path),
        };
        let inner = match listings.remove(path) {
            Some(Ok(inner)) => inner,
            Some(Err(why)) => return sink.failed(path, why).map(|()| Way::Blocked),
            None => return Ok(Way::Blocked),
        };
        let reason = match reason {
            Reason::Backup if self.is_deleted(path, meta) => Reason::BackupAfterAll,
            reason => reason,
        };
        let copies = sink.copies;
        let way = match is_whole {
            true => self.doom_all((path, meta), inner, reason, &mut listings, sink)?,
            false if inner.is_empty() => Way::Free,
            false => Way::Blocked,
        };
        if way == Way::Free && reason == Reason::BackupAfterAll && sink.copies == copies {
            // Nothing of it had to be kept first: it was deleted as all that the source does not have.
            (sink.tell)(Told::Deletion(&dir_line(path)))?;
        }
        if way == Way::Free {
            let (path, end, reason_of_dir) = (path.to_vec(), End::Removed, Reason::InTheWay);
            sink.plan.touch(&path);
            add(&mut sink.plan, reason, Doomed { path, meta: *meta, end, reason: reason_of_dir });
        }
        Ok(way)
    }

    /// Whether a directory of the target is deleted because the source does not have it, as far as that goes.
    fn is_deleted(&self, path: &[u8], meta: &Meta) -> bool {
        self.options.deletion.is_some()
            && self.names.is_none_or(|names| names.are_all_of(parent(path)))
            && !self.is_kept(path, meta)
    }

    /// What becomes of a name in a directory that the source does not have.
    fn end_of(&self, path: &[u8], meta: &Meta, reason: Reason) -> End {
        match &self.options.backup {
            _ if reason.is_of_backup() => End::Removed,
            Some(suffix) if meta.kind != Kind::Dir && !path.ends_with(suffix.as_bytes()) => {
                End::Renamed([path, suffix.as_bytes()].concat())
            }
            _ => End::Removed,
        }
    }

    /// Adds a name and what is in it. Tells whether the name is free then: a directory stays if anything in it does.
    fn doom(
        &self,
        (path, meta, end): (&[u8], &Meta, End),
        reason: Reason,
        listings: &mut Listings,
        sink: &mut Sink<'_>,
    ) -> Result<Way, NoPlan> {
        if self.is_kept(path, meta) {
            return Ok(Way::Blocked);
        }
        if meta.kind == Kind::Dir {
            let inner = match listings.remove(path) {
                Some(Ok(inner)) => inner,
                Some(Err(why)) => return sink.failed(path, why).map(|()| Way::Blocked),
                None => return Ok(Way::Blocked),
            };
            if self.doom_all((path, meta), inner, reason, listings, sink)? == Way::Blocked {
                return Ok(Way::Blocked);
            }
        }
        if reason != Reason::Extra {
            let line = if meta.kind == Kind::Dir { dir_line(path) } else { path.to_vec() };
            (sink.tell)(Told::Deletion(&line))?;
        }
        if reason == Reason::BackupAfterAll
            && let End::Renamed(kept) = self.end_of(path, meta, Reason::Extra)
        {
            (sink.tell)(Told::Deletion(&kept))?;
            sink.copies += 1;
        }
        let way = if end == End::Removed { Way::Free } else { Way::Blocked };
        sink.plan.touch(path);
        add(&mut sink.plan, reason, Doomed { path: path.to_vec(), meta: *meta, end, reason });
        Ok(way)
    }

    /// Adds all that is in a directory. Tells whether the directory is empty then.
    fn doom_all(
        &self,
        (dir, meta): (&[u8], &Meta),
        inner: Vec<Item>,
        reason: Reason,
        listings: &mut Listings,
        sink: &mut Sink<'_>,
    ) -> Result<Way, NoPlan> {
        let before = sink.plan.doomed().count();
        let all = inner.iter().map(|item| {
            let path = join(dir, &item.name);
            let end = self.end_of(&path, &item.meta, reason);
            Extra { path, meta: item.meta, end }
        });
        let way = self.doom_each((&mut all.collect::<Vec<_>>(), &inner), reason, listings, sink)?;
        if let Some(identity) = meta.identity
            && (way == Way::Free || sink.plan.doomed().count() > before)
        {
            sink.plan.emptied.push((dir.to_vec(), identity));
        }
        Ok(way)
    }

    /// Adds names of one directory and what is in them. Tells whether all of them are free then. A directory with the name
    /// of a backup is deleted for that one.
    fn doom_each(
        &self,
        (all, siblings): (&mut [Extra], &[Item]),
        reason: Reason,
        listings: &mut Listings,
        sink: &mut Sink<'_>,
    ) -> Result<Way, NoPlan> {
        order(all, |one| (&one.path[..], one.meta.kind));
        let is_kept = |one: &Extra| self.is_kept(&one.path, &one.meta);
        let backups = all.iter().filter_map(|one| match &one.end {
            End::Renamed(to) if !is_kept(one) => Some(to.clone()),
            _ => None,
        });
        let (backups, mut way): (BTreeSet<_>, _) = (backups.collect(), Way::Free);
        for Extra { path, meta, end } in all.iter() {
            if meta.kind == Kind::Dir && backups.contains(path) {
                continue;
            }
            let is_gone = self.can_end(path, meta, end, siblings, sink)?
                && self.doom((path, meta, end.clone()), reason, listings, sink)? == Way::Free;
            way = if is_gone { way } else { Way::Blocked };
        }
        Ok(way)
    }

    /// Whether rules keep a name that the source does not have.
    pub(super) fn is_kept(&self, path: &[u8], meta: &Meta) -> bool {
        let is_dir = meta.kind == Kind::Dir;
        match self.options.deletion.map(|deletion| deletion.excluded) {
            Some(Excluded::Deleted) => !self.rules.may_delete_excluded(path, is_dir),
            _ => !self.rules.may_delete(path, is_dir),
        }
    }
}
