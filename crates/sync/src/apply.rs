//! Doing what the plan says: directories and links before contents, deletions after them, and at last the times of
//! directories.

use crate::each::each;
use crate::plan::{Doomed, End, Link, Plan, parent};
use crate::side::{Done, Kind, Side, Why, shown};
use hikyaku_console::Scope;
use std::collections::BTreeSet;

/// The target, and what could not be done to it.
pub(crate) struct Applying<'a> {
    pub(crate) target: &'a Side,
    pub(crate) scope: &'a Scope,
    /// For the user, a line each.
    pub(crate) failures: Vec<String>,
}

impl Applying<'_> {
    fn failed(&mut self, path: &[u8], why: &Why) {
        self.failures.push(format!("{}: {}", shown(path), why.text));
    }

    /// Calls `work` for each, several at a time.
    fn each<T: Sync>(
        &mut self,
        all: &[T],
        path: impl Fn(&T) -> &[u8],
        work: impl Fn(&Side, &T) -> Done + Sync,
    ) -> Done {
        let target = self.target;
        for (item, why) in each(all, self.scope, |item| work(target, item))? {
            self.failed(path(item), &why);
        }
        Ok(())
    }

    /// Makes what must be there before contents come.
    pub(crate) fn prepare(&mut self, plan: &Plan) -> Done {
        let keep = |target: &Side, (from, to): &(Vec<u8>, Vec<u8>)| target.rename(from, to);
        self.each(&plan.backups, |(from, _)| from, keep)?;
        let clear = |target: &Side, (path, kind): &(Vec<u8>, Kind)| target.remove(path, *kind);
        self.each(&plan.clear, |(path, _)| path, clear)?;
        for level in levels(&plan.dirs, |(path, _)| path) {
            let make = |target: &Side, dir: &&(Vec<u8>, u32)| target.make_dir(&dir.0, dir.1);
            self.each(&level, |dir| &dir.0, make)?;
        }
        self.links(&plan.links)?;
        self.each(
            &plan.set,
            |(path, ..)| path,
            |target, (path, kind, setting)| target.set(path, *kind, *setting),
        )
    }

    /// Makes links.
    pub(crate) fn links(&mut self, links: &[Link]) -> Done {
        self.each(
            links,
            |link| &link.path,
            |target, link| {
                target.make_link(&link.path, &link.text)?;
                match link.setting.is_nothing() {
                    true => Ok(()),
                    false => target.set(&link.path, Kind::Link, link.setting),
                }
            },
        )
    }

    /// Gives copied files metadata that the copy did not keep.
    pub(crate) fn set_copied(&mut self, plan: &Plan) -> Done {
        self.each(
            &plan.set_copied,
            |(path, _)| path,
            |target, (path, setting)| match target.set(path, Kind::File, *setting) {
                // The copy has told of it.
                Err(why) if why.is_absent() => Ok(()),
                done => done,
            },
        )
    }

    /// Deletes names, the innermost first. What has changed since it was listed stays. A name is free before another is
    /// kept under it.
    pub(crate) fn delete(&mut self, doomed: &[Doomed]) -> Done {
        let mut stuck: BTreeSet<Vec<u8>> = BTreeSet::new();
        for mut level in levels(doomed, |doomed| &doomed.path).into_iter().rev() {
            // A directory in which something stays, stays.
            level.retain(|doomed| {
                let is_stuck = stuck.contains(&doomed.path);
                if is_stuck {
                    stuck.insert(parent(&doomed.path).to_vec());
                }
                !is_stuck
            });
            let target = self.target;
            let (removed, renamed): (Vec<_>, Vec<_>) =
                level.into_iter().partition(|doomed| doomed.end == End::Removed);
            for part in [removed, renamed] {
                for (doomed, why) in each(&part, self.scope, |doomed| remove(target, doomed))? {
                    stuck.insert(parent(&doomed.path).to_vec());
                    self.failed(&doomed.path, &why);
                }
            }
        }
        Ok(())
    }

    /// Removes files and links of the source, if they are what was listed, and if the target has the same.
    pub(crate) fn remove_sources(&mut self, source: &Side, plan: &Plan) -> Done {
        let target = self.target;
        let failed = each(&plan.sources, self.scope, |doomed| {
            let there = match target.look(&doomed.path) {
                Err(why) if why.is_absent() => return Ok(()),
                there => there?,
            };
            let is_same = (there.kind, there.size, there.low_secs())
                == (doomed.meta.kind, doomed.meta.size, doomed.meta.low_secs());
            if is_same { remove(source, doomed) } else { Ok(()) }
        })?;
        failed.iter().for_each(|(doomed, why)| self.failed(&doomed.path, why));
        Ok(())
    }

    /// Gives directories their modes and times, the innermost first.
    pub(crate) fn finish(&mut self, plan: &Plan) -> Done {
        let due: Vec<_> = plan.due_dirs().collect();
        for level in levels(&due, |dir| &dir.path).into_iter().rev() {
            self.each(
                &level,
                |dir| &dir.path,
                |target, dir| {
                    let mut setting = dir.setting;
                    if let Some(kept) = dir.kept {
                        setting.mode = Some(target.look(&dir.path)?.mode & (kept | !0o777));
                    }
                    target.set(&dir.path, Kind::Dir, setting)
                },
            )?;
        }
        Ok(())
    }
}

/// Removes a name, if it is still what was listed.
fn remove(target: &Side, doomed: &Doomed) -> Done {
    let found = match target.look(&doomed.path) {
        Err(why) if why.is_absent() => return Ok(()),
        found => found?,
    };
    // The size and the time of a directory change when what is in it is deleted.
    let is_same = match doomed.meta.kind {
        Kind::Dir => found.kind == Kind::Dir,
        _ => found.is_still(&doomed.meta),
    };
    match (is_same, &doomed.end) {
        (true, End::Removed) => target.remove(&doomed.path, doomed.meta.kind),
        (true, End::Renamed(to)) => target.rename(&doomed.path, to),
        (false, _) => Err(Why::of_name("it was changed after it was listed, and stays")),
    }
}

/// Sorts names by the number of their directories, the outermost first. The order within a level stays.
fn levels<T>(all: &[T], path: impl Fn(&T) -> &[u8]) -> Vec<Vec<&T>> {
    let mut levels: Vec<Vec<&T>> = Vec::new();
    for item in all {
        let path = path(item);
        let level = match path {
            b"" => 0,
            path => 1 + path.iter().filter(|&&byte| byte == b'/').count(),
        };
        if levels.len() <= level {
            levels.resize_with(level + 1, Vec::new);
        }
        levels[level].push(item);
    }
    levels
}

#[cfg(test)]
mod tests;
