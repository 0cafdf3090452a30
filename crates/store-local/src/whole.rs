//! Small files that are whole in memory: they are written one after the other, each directory is opened once, and one sync
//! of the file system brings many of them to the disk before they get their names.

use crate::draft::LocalDraft;
use crate::local::Local;
use hikyaku_fs::{Dir, Name, Replace, Token, Volume};
use hikyaku_store::{
    Draft, ErrorKind, Finish, Found, Make, Naming, Op, Put, Reply, Result, StorePath, do_one,
    doing, runs,
};
use hikyaku_transfer::Durable;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of files from which on their file system is synced as a whole.
const SYNCED_TOGETHER_MIN: usize = 8;

/// A directory of a store, which is open.
pub struct Folder<'a> {
    pub(crate) store: &'a Local,
    pub(crate) dir: Arc<Dir>,
    pub(crate) path: StorePath,
    /// Its file system, if a sync of all of it can be believed.
    pub(crate) volume: Option<Arc<Volume>>,
}

/// How far a file gets before it has its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// The memory of the system.
    Kernel,
    /// The disk: it is one of few, and is synced by itself.
    Disk,
    /// The disk, by one sync of the file system for many files.
    DiskWithOthers,
}

/// A file that only lacks its name. If it is dropped, it is removed.
pub struct Whole {
    draft: LocalDraft,
    /// The volume that is synced first.
    volume: Option<Arc<Volume>>,
}

impl Folder<'_> {
    /// Its path.
    pub const fn path(&self) -> &StorePath {
        &self.path
    }

    /// Writes a file with this name, which it gets by [`name_all`].
    ///
    /// # Errors
    ///
    /// It cannot be written, or has the name of an unfinished file.
    pub fn write(
        &self,
        (name, bytes): (&Name, &[u8]),
        finish: &Finish,
        reached: Reached,
    ) -> Result<Whole> {
        let path =
            doing("create", &self.path).or(self.path.join(name).map_err(|_| ErrorKind::BadName))?;
        let creating = doing("create", &path);
        if Token::of(name).is_some() {
            return creating.fail(ErrorKind::BadName);
        }
        let draft = self.store.draft_in((self.dir.clone(), name), (&path, &Make::default()))?;
        if !bytes.is_empty() {
            draft.write_at(0, bytes)?;
        }
        draft.set_metadata(creating, finish)?;
        let volume = self.volume.clone().filter(|_| reached == Reached::DiskWithOthers);
        if reached != Reached::Kernel && volume.is_none() {
            draft.sync()?;
        }
        doing("write", &path).or(draft.inner.close())?;
        Ok(Whole { draft, volume })
    }
}

impl Local {
    /// Operations of a batch. Small files that replace whatever has their names are written one after the other, and get
    /// their names together.
    pub(crate) fn do_all(&self, ops: &[Op<'_>], each: &mut dyn FnMut(usize, Result<Reply>)) {
        for run in runs(ops) {
            let mut puts = Vec::new();
            for index in run {
                match ops[index] {
                    Op::Put(put) if put.naming == Naming::Replace && !self.is_poured(put.path) => {
                        puts.push((index, put));
                    }
                    op => each(index, do_one(self, &op)),
                }
            }
            self.put_all(&puts, each);
        }
    }

    /// Whether the path is that of the target which takes bytes in order only.
    fn is_poured(&self, path: &StorePath) -> bool {
        path.split().is_some_and(|(dir, name)| dir == StorePath::ROOT && self.is_stream(&name))
    }

    fn put_all(&self, puts: &[(usize, Put<'_>)], each: &mut dyn FnMut(usize, Result<Reply>)) {
        let to_disk = puts.iter().filter(|(_, put)| put.durable == Durable::Disk).count();
        let (mut folder, mut indices, mut files) = (None::<Folder<'_>>, Vec::new(), Vec::new());
        for (index, put) in puts {
            let reached = match put.durable {
                Durable::Cache => Reached::Kernel,
                Durable::Disk if to_disk < SYNCED_TOGETHER_MIN => Reached::Disk,
                Durable::Disk => Reached::DiskWithOthers,
            };
            let mut write = || {
                let Some((dir, name)) = put.path.split() else {
                    return doing("create", put.path).fail(ErrorKind::Exists);
                };
                let open = match folder.take().filter(|open| *open.path() == dir) {
                    Some(open) => open,
                    None => self.folder(&dir)?,
                };
                folder.insert(open).write((&name, put.bytes), put.finish, reached)
            };
            match write() {
                Ok(file) => {
                    indices.push(*index);
                    files.push(file);
                }
                Err(error) => each(*index, Err(error)),
            }
        }
        for (index, named) in indices.into_iter().zip(name_all(files)) {
            each(index, named.map(Reply::Found));
        }
    }
}

/// Gives files their names, when they are in the right directories. Existing entries are replaced.
pub fn name_all(files: Vec<Whole>) -> Vec<Result<Found>> {
    let volumes = files.iter().filter_map(|file| file.volume.as_ref());
    let volumes: BTreeMap<u64, &Arc<Volume>> =
        volumes.map(|volume| (volume.device(), volume)).collect();
    let synced: BTreeMap<u64, _> = volumes
        .into_iter()
        .map(|(device, volume)| (device, volume.sync().map_err(ErrorKind::from)))
        .collect();
    let named = files.into_iter().map(|Whole { draft, volume }| {
        let failed =
            volume.and_then(|volume| synced.get(&volume.device())?.as_ref().err().copied());
        match failed {
            // Which of the files the disk has not taken is not known.
            Some(error) => doing("sync", &draft.path).fail(error),
            None => draft.rename(doing("name", &draft.path), Replace::Allowed),
        }
    });
    named.collect()
}

#[cfg(test)]
mod tests;
