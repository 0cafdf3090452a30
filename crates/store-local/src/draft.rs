//! Drafts in a local directory.

use crate::convert::{self, found, set_attributes};
use crate::open::read;
use hikyaku_fs::{Manner, Meta, Zeros};
use hikyaku_store::{
    Ability, Doing, Draft, ErrorKind, Finish, Found, Make, Naming, Note, Result, StoreError,
    StorePath, Time, Token, doing,
};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::sync::{Mutex, PoisonError};

/// A draft: a temporary file in the directory of its final name.
pub(crate) struct LocalDraft {
    pub(crate) inner: hikyaku_fs::Draft,
    pub(crate) path: StorePath,
    new_mode: u32,
    zeros: Zeros,
    /// It is dropped after the draft.
    note: Mutex<Option<Note>>,
}

impl LocalDraft {
    pub(crate) fn new(
        inner: hikyaku_fs::Draft,
        path: StorePath,
        new_mode: u32,
        make: &Make,
    ) -> Self {
        // Holes would be filled by what is reserved.
        let size = make.size.filter(|size| *size > 0 && !make.has_holes());
        if let Some(size) = size.filter(|size| has_room(&inner, *size)) {
            let reserve = |file: &std::fs::File| {
                // Preallocation is optional, so its failure is ignored. The write itself reports a
                // full disk.
                if fallocate(file, FallocateFlags::KEEP_SIZE, 0, size).is_err() {
                    // ext4 keeps what it has allocated before it finds the disk full.
                    let _ = file.metadata().and_then(|meta| file.set_len(meta.len()));
                }
                Ok(())
            };
            let _ = inner.with(reserve);
        }
        let zeros = if make.has_holes() { Zeros::Holes } else { Zeros::Written };
        Self { inner, path, new_mode, zeros, note: Mutex::default() }
    }

    /// The draft of an earlier process. One with holes gets more of them.
    pub(crate) fn taken_up(inner: hikyaku_fs::Draft, path: StorePath, new_mode: u32) -> Self {
        let found = inner.with(|file| Meta::of(file)).ok().map(|meta| found(&meta));
        let has_holes = found.is_some_and(|found| found.allocated < found.size);
        let zeros = if has_holes { Zeros::Holes } else { Zeros::Written };
        Self { zeros, ..Self::new(inner, path, new_mode, &Make::default()) }
    }

    /// The draft, with its record.
    pub(crate) fn noted(self, note: Option<Note>) -> Self {
        Self { note: Mutex::new(note), ..self }
    }

    /// Sets the owner, then the mode (a change of owner clears bits of it, chown(2)), then
    /// attributes and time. A device or FIFO keeps its own.
    pub(crate) fn set_metadata(&self, doing: Doing<'_>, finish: &Finish) -> Result<()> {
        if self.inner.manner() == Manner::Stream {
            return Ok(());
        }
        let mode = finish.mode.unwrap_or(self.new_mode);
        if let Some(owner) = finish.owner {
            doing.or(self.inner.with(|file| Meta::set_owner(file, convert::owner(owner))))?;
        }
        let mut attributes = Ok(());
        doing.or(self.inner.with(|file| {
            attributes = set_attributes(doing, file, &finish.attributes);
            Ok(())
        }))?;
        attributes?;
        doing.or(self.inner.with(|file| Meta::set_mode(file, mode)))?;
        let time = finish.modified.map(convert::time);
        time.map_or(Ok(()), |time| doing.or(self.inner.with(|file| Meta::set_modified(file, time))))
    }

    /// Gives it its name, with the metadata that it has.
    pub(crate) fn rename(&self, doing: Doing<'_>, replace: hikyaku_fs::Replace) -> Result<Found> {
        match doing.or(self.inner.name(replace))? {
            Some(meta) => Ok(found(&meta)),
            // Another process has removed it.
            None => doing.fail(ErrorKind::Gone),
        }
    }

    /// Whether the present file of the name may be replaced under `naming`. Another process may
    /// change it between this check and the rename.
    fn check(&self, naming: Naming, doing: Doing<'_>) -> Result<hikyaku_fs::Replace> {
        match naming {
            Naming::Replace => Ok(hikyaku_fs::Replace::Allowed),
            Naming::IfAbsent => Ok(hikyaku_fs::Replace::Refused),
            Naming::IfVersion(wanted) => {
                let name = self.path.split().map(|(_, name)| name);
                let old = name.map(|name| self.inner.dir().meta(&name));
                let old = doing.or(old.transpose())?.flatten();
                let version = old.and_then(|meta| found(&meta).version);
                match version == Some(wanted) {
                    true => Ok(hikyaku_fs::Replace::Allowed),
                    false => doing.fail(ErrorKind::Changed),
                }
            }
        }
    }
}

impl Draft for LocalDraft {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        doing("write", &self.path).or(self.inner.write_at(at, bytes, self.zeros))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let doing = doing("read", &self.path);
        let mut length = Ok(0);
        doing.or(self.inner.with(|file| {
            length = doing.or(read(file, at, into));
            Ok(())
        }))?;
        length
    }

    fn set_len(&self, length: u64) -> Result<()> {
        doing("set the length", &self.path).or(self.inner.set_length(length))
    }

    fn token(&self) -> Token {
        Token(self.inner.partial().as_bytes().to_vec())
    }

    fn keep(&self) {
        self.inner.keep();
        // The draft will be resumed: it is not abandoned if this process is killed.
        self.note.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn sync(&self) -> Result<()> {
        doing("sync", &self.path).or(self.inner.sync())
    }

    fn modified(&self) -> Result<Option<Time>> {
        let meta = doing("look at", &self.path).or(self.inner.with(|file| Meta::of(file)))?;
        Ok(Some(found(&meta).modified))
    }

    fn forget_cache(&self) -> Result<()> {
        doing("read", &self.path).or(self.inner.forget_cache())
    }

    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        let doing = doing("name", &self.path);
        let checked = self.check(naming, doing);
        let ready = checked.and_then(|replace| {
            self.set_metadata(doing, finish)?;
            Ok(replace)
        });
        match ready.and_then(|replace| self.rename(doing, replace)) {
            Err(StoreError { kind: ErrorKind::System(raw), .. })
                if naming == Naming::IfAbsent && raw == Errno::INVAL.raw_os_error() =>
            {
                self.inner.discard();
                doing.fail(ErrorKind::Unsupported(Ability::NameIfAbsent))
            }
            Err(error) => {
                self.inner.discard();
                Err(error)
            }
            named => named,
        }
    }

    fn discard(self: Box<Self>) {
        self.inner.discard();
    }
}

/// Whether the file system has room for this many bytes. A size may be a claim of a server: a file system that begins to reserve
/// more than it has leaves no room to other programs until it fails.
fn has_room(draft: &hikyaku_fs::Draft, bytes: u64) -> bool {
    draft.dir().space().is_ok_and(|(free, ..)| bytes <= free)
}

#[cfg(test)]
mod tests {
    use crate::{Local, NewModes};
    use hikyaku_fs::{Dir, Draft, Name, Token};
    use hikyaku_store::{Finish, Make, Naming, Store, StorePath};
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    #[test]
    fn room_that_the_file_system_does_not_have_is_not_reserved() {
        let dir = Arc::new(Dir::open(Path::new(".")).unwrap());
        let (name, token) = (Name::new(b"reserved").unwrap(), Token::random().unwrap());
        let draft = Draft::create(dir, &name, &token).unwrap();
        assert!(super::has_room(&draft, 1) && !super::has_room(&draft, 1 << 60));
    }

    #[test]
    fn zeros_of_a_file_with_holes_become_holes_also_after_it_was_taken_up() {
        let root = std::env::temp_dir().join(format!("hikyaku-holes-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        let store = Local::open(&root, NewModes::default()).unwrap();
        const MIB: u64 = 1 << 20;
        let zeros = vec![0; MIB as usize];
        for (name, data) in [("sparse", Some(2 * MIB)), ("dense", None), ("whole", Some(8 * MIB))] {
            let path = StorePath::new(name.as_bytes()).unwrap();
            let make = Make { size: Some(8 * MIB), data, ..Make::default() };
            let mut draft = store.create(&path, &make).unwrap();
            for at in 0..8 {
                let bytes = if at % 4 == 1 { vec![7; MIB as usize] } else { zeros.clone() };
                draft.write_at(at * MIB, &bytes).unwrap();
                if at == 5 {
                    let token = draft.token();
                    draft.keep();
                    drop(draft);
                    draft = store.take_up(&path, &token).unwrap();
                }
            }
            draft.set_len(8 * MIB).unwrap();
            let found = draft.name(Naming::Replace, &Finish::default()).unwrap();
            let is_sparse = found.allocated < 4 * MIB;
            assert_eq!((found.size, is_sparse), (8 * MIB, name == "sparse"), "{name}: {found:?}");
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
