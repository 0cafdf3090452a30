//! What is deleted: names that the source does not have, and what is in them.

use super::{LISTED_AT_ONCE, NoPlan, Sink, Walk};
use crate::options::Excluded;
use crate::plan::{Doomed, join};
use crate::side::{Done, Item, Kind, Meta};
use std::collections::BTreeMap;
use std::thread;

/// Listings of directories that may be deleted, by path.
type Listings = BTreeMap<Vec<u8>, Done<Vec<Item>>>;

impl Walk<'_> {
    /// Adds names that the source does not have, and what is in them. Tells of each whether it is deleted: a directory stays
    /// if anything in it does.
    pub(super) fn delete(
        &self,
        extra: &[(Vec<u8>, Meta)],
        sink: &mut Sink<'_>,
    ) -> Result<Vec<bool>, NoPlan> {
        let mut listings = self.listings(extra, sink)?;
        let doomed = extra.iter();
        doomed.map(|(path, meta)| self.doom(path, meta, &mut listings, sink)).collect()
    }

    /// Lists all directories at and below these names that rules do not keep, several at a time.
    fn listings(&self, extra: &[(Vec<u8>, Meta)], sink: &mut Sink<'_>) -> Result<Listings, NoPlan> {
        let mut listings = Listings::new();
        let is_open =
            |path: &[u8], meta: &Meta| meta.kind == Kind::Dir && !self.is_kept(path, meta);
        let open = extra.iter().filter(|(path, meta)| is_open(path, meta));
        let mut open: Vec<Vec<u8>> = open.map(|(path, _)| path.clone()).collect();
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
                    if is_open(&path, &item.meta) {
                        open.push(path);
                    }
                }
                listings.insert(path, listed);
            }
        }
        Ok(listings)
    }

    fn doom(
        &self,
        path: &[u8],
        meta: &Meta,
        listings: &mut Listings,
        sink: &mut Sink<'_>,
    ) -> Result<bool, NoPlan> {
        if self.is_kept(path, meta) {
            return Ok(false);
        }
        if meta.kind == Kind::Dir {
            let inner = match listings.remove(path) {
                Some(Ok(inner)) => inner,
                Some(Err(why)) => return sink.failed(path, why).map(|()| false),
                None => return Ok(false),
            };
            let mut is_empty = true;
            for item in &inner {
                is_empty &= self.doom(&join(path, &item.name), &item.meta, listings, sink)?;
            }
            if !is_empty {
                return Ok(false);
            }
        }
        sink.plan.touch(path);
        sink.plan.delete.push(Doomed { path: path.to_vec(), meta: *meta });
        Ok(true)
    }

    /// Whether rules, or the suffix of backups, keep a name that the source does not have.
    fn is_kept(&self, path: &[u8], meta: &Meta) -> bool {
        let is_dir = meta.kind == Kind::Dir;
        let suffix = self.options.backup.as_deref();
        let is_backup = suffix.is_some_and(|suffix| !is_dir && path.ends_with(suffix.as_bytes()));
        let may_delete = match self.options.deletion.map(|deletion| deletion.excluded) {
            Some(Excluded::Deleted) => self.rules.may_delete_excluded(path, is_dir),
            _ => self.rules.may_delete(path, is_dir),
        };
        is_backup || !may_delete
    }
}
