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
mod tests {
    use super::*;
    use crate::local::NewModes;
    use hikyaku_store::{Store, Time};
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn small_files_of_a_batch_fail_by_themselves() {
        let root = std::env::temp_dir().join(format!("hikyaku-put-all-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("d/taken")).unwrap();
        fs::create_dir_all(root.join("e")).unwrap();
        fs::write(root.join("d/0"), "old").unwrap();
        let store = Local::open(&root, NewModes::default()).unwrap();
        let path = |text: &str| StorePath::new(text.as_bytes()).unwrap();
        let finish = Finish { mode: Some(0o640), ..Finish::default() };
        for (durable, count) in [(Durable::Disk, 3), (Durable::Disk, 20), (Durable::Cache, 20)] {
            let files: Vec<StorePath> = (0..count)
                .map(|n| path(&format!("{}/{n}", if n % 3 == 0 { "e" } else { "d" })))
                .chain([path("d/taken"), path("none/x")])
                .collect();
            let (naming, finish) = (Naming::Replace, &finish);
            let put = |path| Op::Put(Put { path, bytes: b"new", naming, finish, durable });
            let ops: Vec<Op<'_>> = files.iter().map(put).collect();
            let mut results = vec![None; ops.len()];
            store.batch(&ops, &mut |index, result| {
                assert!(results[index].replace(result.map_err(|error| error.kind)).is_none());
            });
            for (number, result) in results.into_iter().enumerate() {
                let result = result.unwrap();
                match number.checked_sub(count) {
                    None => assert!(matches!(result, Ok(Reply::Found(_))), "{result:?}"),
                    Some(0) => assert_eq!(result, Err(ErrorKind::IsDir)),
                    Some(_) => assert_eq!(result, Err(ErrorKind::NotFound)),
                }
            }
            for file in &files[..count] {
                let at = root.join(file.to_string());
                assert_eq!(fs::read(&at).unwrap(), b"new");
                assert_eq!(fs::metadata(&at).unwrap().mode() & 0o7777, 0o640);
                fs::write(&at, "old").unwrap();
            }
            let is_draft = |dir: &str| {
                let mut names = fs::read_dir(root.join(dir)).unwrap();
                names.any(|entry| entry.unwrap().path().extension().is_some())
            };
            assert!(!is_draft("d") && !is_draft("e"));
        }
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn whole_files_get_their_names_together_and_leave_nothing_else() {
        let root = std::env::temp_dir().join(format!("hikyaku-whole-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("d/taken")).unwrap();
        let store = Local::open(&root, NewModes::default()).unwrap();
        let name = |text: &str| Name::new(text.as_bytes()).unwrap();
        let dir = StorePath::new(b"d").unwrap();
        let folder = store.folder(&dir).unwrap();
        let modified = Some(Time { secs: -5, nanos: 0 });
        let finish = Finish { mode: Some(0o440), modified, ..Finish::default() };
        let cases = [
            ("kernel", &b"one"[..], Reached::Kernel),
            ("disk", b"", Reached::Disk),
            ("others", b"three", Reached::DiskWithOthers),
            ("taken", b"no", Reached::DiskWithOthers),
        ];
        let write =
            |(at, bytes, reached)| folder.write((&name(at), bytes), &finish, reached).unwrap();
        let whole: Vec<Whole> = cases.map(write).into();
        drop(write(("dropped", b"x", Reached::Kernel)));
        let listed = || {
            let names = fs::read_dir(root.join("d")).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name != "taken").collect::<Vec<_>>()
        };
        assert_eq!(listed().len(), 4);
        assert!(listed().iter().all(|name| name.ends_with(".hikyaku")), "one has its name");
        let named = name_all(whole);
        assert!(named[..3].iter().all(Result::is_ok), "{named:?}");
        assert_eq!(named[3].as_ref().unwrap_err().kind, ErrorKind::IsDir);
        let mut names = listed();
        names.sort();
        assert_eq!(names, ["disk", "kernel", "others"]);
        for (at, bytes, _) in &cases[..3] {
            let path = root.join("d").join(at);
            let meta = fs::metadata(&path).unwrap();
            assert_eq!((meta.mode() & 0o7777, meta.mtime()), (0o440, -5), "{at}");
            assert_eq!(fs::read(&path).unwrap(), *bytes, "{at}");
        }
        let draft = name(".a.abcdefghabcde.hikyaku");
        let refused = folder.write((&draft, b""), &finish, Reached::Kernel);
        assert_eq!(refused.err().map(|error| error.kind), Some(ErrorKind::BadName));
        assert!(store.folder(&StorePath::new(b"none").unwrap()).is_err());
        assert!(store.look(&dir).is_ok());
        fs::remove_dir_all(&root).unwrap();
    }
}
