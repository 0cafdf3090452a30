//! A draft: a destination file while it is being written. Normally it is a new file under a
//! temporary name that is renamed to its final name once it is complete.

use crate::dir::{Dir, Meta, Replace};
use crate::error::FsError;
use crate::lock::lock;
use crate::partial::Token;
use crate::path::Name;
use crate::sparse::{punch, write_sparse};
use crate::stream::{Patience, Pour, Stream};
use crate::system::{drop_cache, sync};
use crate::trust::{Distrust, Others, Owners, trust};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// A destination file while it is being written, by any number of threads.
///
/// It ends in one of three ways. [`Draft::name`] gives it its final name, [`Draft::discard`]
/// removes it, and dropping it removes it as well unless [`Draft::keep`] was called. So only a
/// killed process leaves an unfinished file behind that no journal knows of.
#[derive(Debug)]
pub struct Draft {
    /// The open file; `None` once it is closed.
    file: RwLock<Option<File>>,
    dir: Arc<Dir>,
    name: Name,
    partial: Name,
    manner: Manner,
    /// The error of the first failed sync. Every later sync returns it again, because the kernel
    /// reports a write-back error only once to a descriptor (fsync(2)).
    failed: Mutex<Option<Errno>>,
    is_kept: AtomicBool,
    /// How long a stream waits for its reader.
    patience: Patience,
    /// Bytes that a stream has taken.
    poured: Mutex<u64>,
}

/// How a draft gets its final name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// It is a new file under a random temporary name, beside its final name, and is renamed.
    Renamed,
    /// It is the existing file under its final name, overwritten.
    InPlace,
    /// It is a pipe or a device. What is written cannot be taken back.
    Stream,
}

/// How blocks of zeros are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zeros {
    /// Like all other bytes.
    Written,
    /// As holes, where the file system supports them.
    Holes,
}

const CREATE_RETRIES_MAX: usize = 8;

impl Draft {
    /// Creates the temporary file for `name` in `dir`. Its temporary name contains `token`. Fails with
    /// [`FsError::Special`] if a device, FIFO or socket has the name.
    pub fn create(dir: Arc<Dir>, name: &Name, token: &Token) -> Result<Self, FsError> {
        let mut tries = 0;
        loop {
            match Self::make(Arc::clone(&dir), name, token.partial(name)?) {
                Err(error) if error.errno() == Some(Errno::EXIST) && tries < CREATE_RETRIES_MAX => {
                    tries += 1
                }
                made => return made,
            }
        }
    }

    /// Creates the temporary file `partial` for `name`: a name that [`Token::partial`] has drawn, and that the caller has
    /// recorded, so that the file is known whenever this process ends. Fails as [`create`](Self::create) does.
    pub fn make(dir: Arc<Dir>, name: &Name, partial: Name) -> Result<Self, FsError> {
        spare_special(&dir, name)?;
        let file = dir.create(&partial).map_err(|error| error.about(name.as_bytes()))?;
        Self::new(file, dir, partial, name)
    }

    /// Opens the unfinished file `partial` of an earlier attempt, which will become `name`. Fails
    /// with [`FsError::Special`] unless it is a regular file, with [`FsError::Busy`] while
    /// another process writes to it, and with [`FsError::NotOurs`] if another user can have made or changed it. A file
    /// that has its final name already is opened whoever owns it: the caller reads again what it takes for written.
    pub fn take_up(dir: Arc<Dir>, partial: Name, name: &Name) -> Result<Self, FsError> {
        let opened = dir.write(&partial.clone().into()).map_err(|e| e.about(name.as_bytes()))?;
        if Meta::of(&opened)?.kind != crate::Kind::File {
            return Err(FsError::is_special(name.as_bytes()));
        }
        if partial != *name {
            // While another process writes to it, that is what the caller is to hear.
            lock(&opened, name)?;
            trust_as_new(&opened, &dir, name)?;
        }
        Self::new(opened, dir, partial, name)
    }

    /// Opens the existing file `name` in `dir` to overwrite it. Fails with [`FsError::Busy`] while
    /// another process holds its lock.
    pub fn in_place(dir: Arc<Dir>, name: &Name) -> Result<Self, FsError> {
        Self::take_up(dir, name.clone(), name)
    }

    fn new(file: File, dir: Arc<Dir>, partial: Name, name: &Name) -> Result<Self, FsError> {
        let manner = if partial == *name { Manner::InPlace } else { Manner::Renamed };
        // The advisory lock tells other processes that this file has a writer. They look for it
        // before they remove an unfinished file. If the lock is held elsewhere, this draft is not
        // constructed, so its `Drop` cannot remove the other writer's file.
        lock(&file, name)?;
        Ok(Self::of(file, dir, (partial, name.clone()), manner))
    }

    /// Writes in order to a pipe or device that the local user opened. `name` is used in messages.
    pub fn stream(stream: Stream, dir: Arc<Dir>, name: Name) -> Self {
        let (file, patience) = stream.split();
        let mut draft = Self::of(file, dir, (name.clone(), name), Manner::Stream);
        draft.patience = patience;
        draft
    }

    fn of(file: File, dir: Arc<Dir>, (partial, name): (Name, Name), manner: Manner) -> Self {
        Self {
            file: RwLock::new(Some(file)),
            dir,
            name,
            partial,
            manner,
            failed: Mutex::new(None),
            is_kept: AtomicBool::new(false),
            patience: Patience::endless(),
            poured: Mutex::new(0),
        }
    }

    /// How it gets its final name.
    pub const fn manner(&self) -> Manner {
        self.manner
    }

    /// Its name while it is being written.
    pub const fn partial(&self) -> &Name {
        &self.partial
    }

    /// The directory that holds it.
    pub const fn dir(&self) -> &Arc<Dir> {
        &self.dir
    }

    /// Makes the file survive this value. The caller has recorded its temporary name and will
    /// resume it by [`Draft::take_up`].
    pub fn keep(&self) {
        self.is_kept.store(true, Ordering::Release);
    }

    fn open(&self) -> RwLockReadGuard<'_, Option<File>> {
        self.file.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the open file. Fails with `EBADF` if the file is already closed.
    pub fn with<T>(&self, work: impl FnOnce(&File) -> Result<T, FsError>) -> Result<T, FsError> {
        match &*self.open() {
            Some(file) => work(file),
            None => Err(self.fail("write", Errno::BADF)),
        }
        .map_err(|error| error.about(self.name.as_bytes()))
    }

    fn fail(&self, what: &'static str, errno: Errno) -> FsError {
        FsError::new(what, self.name.as_bytes(), errno)
    }

    fn io<T>(
        &self,
        what: &'static str,
        work: impl FnOnce(&File) -> io::Result<T>,
    ) -> Result<T, FsError> {
        self.with(|file| {
            work(file).map_err(|error| FsError::io(what, self.name.as_bytes(), &error))
        })
    }

    /// Writes all of `bytes` at offset `at`. A stream takes them only behind those that it has taken, and fails with
    /// `ESPIPE` otherwise.
    pub fn write_at(&self, at: u64, bytes: &[u8], zeros: Zeros) -> Result<(), FsError> {
        if self.manner == Manner::Stream {
            let mut poured = self.poured.lock().unwrap_or_else(PoisonError::into_inner);
            if at != *poured {
                return Err(self.fail("write", Errno::SPIPE));
            }
            self.pour(|to| to.write_all(bytes))?;
            *poured += bytes.len() as u64;
            return Ok(());
        }
        self.io("write", |file| match zeros {
            Zeros::Written => file.write_all_at(bytes, at),
            Zeros::Holes => write_sparse(file, bytes, at),
        })
    }

    /// Calls `work` with the end of a stream, to which it writes the next bytes.
    pub fn pour(&self, work: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), FsError> {
        self.io("write", |file| work(&mut Pour { file, patience: &self.patience }))
    }

    /// Deallocates a range of bytes, which then reads as zeros.
    pub fn punch(&self, range: Range<u64>) -> Result<(), FsError> {
        self.io("write", |file| punch(file, range))
    }

    /// Fills `bytes` from offset `at`. Fails if the file ends before.
    pub fn read_exact_at(&self, at: u64, bytes: &mut [u8]) -> Result<(), FsError> {
        self.io("read", |file| file.read_exact_at(bytes, at))
    }

    /// Asks the kernel to drop its cached pages of this file, so that the next read comes from the
    /// disk.
    pub fn forget_cache(&self) -> Result<(), FsError> {
        self.with(|file| {
            drop_cache(file);
            Ok(())
        })
    }

    /// Sets the length of the file. Needed when it ends in a hole, which no write extends, or when
    /// an overwritten file was longer. Does nothing on a pipe or device.
    pub fn set_length(&self, length: u64) -> Result<(), FsError> {
        match self.manner {
            Manner::Stream => Ok(()),
            Manner::Renamed | Manner::InPlace => {
                self.io("set the length", |file| file.set_len(length))
            }
        }
    }

    /// Makes everything written so far durable (fsync(2)). After the first failure every further
    /// call fails, because the kernel may have dropped any page written before it. On a
    /// closed file the call does nothing.
    pub fn sync(&self) -> Result<(), FsError> {
        // The lock serialises calls: the kernel reports a write-back error to the first fsync only,
        // and the others must see it too.
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_none()
            && let Some(file) = &*self.open()
        {
            *failed = match sync(file) {
                Ok(()) => None,
                // fsync(2) returns `EINVAL` or `EROFS` for a device or FIFO without storage.
                Err(Errno::INVAL | Errno::ROFS) if self.manner == Manner::Stream => None,
                Err(errno) => Some(errno),
            };
        }
        failed.map_or(Ok(()), |errno| Err(self.fail("sync", errno)))
    }

    /// Closes the file, renames it to its final name and returns its metadata, or `None` if it
    /// could not be read. Closing comes first because network file systems report some write errors
    /// only from close(2). The caller must sync the directory to make the name durable. A device, FIFO or socket that has
    /// got the name meanwhile stays ([`FsError::Special`]). On failure the temporary file is removed; an overwritten file
    /// remains as it is.
    pub fn name(&self, replace: Replace) -> Result<Option<Meta>, FsError> {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let synced = failed.map_or(Ok(()), |errno| Err(self.fail("sync", errno)));
        let named = synced.and_then(|()| self.close()).and_then(|()| match self.manner {
            Manner::Renamed => spare_special(&self.dir, &self.name)
                .and_then(|()| self.dir.rename(&self.partial, &self.dir, &self.name, replace))
                .map_err(|error| error.about(self.name.as_bytes())),
            Manner::InPlace | Manner::Stream => Ok(()),
        });
        if let Err(error) = named {
            self.discard();
            return Err(error);
        }
        self.keep();
        // The caller uses the metadata to recognise the file later. Without it the file counts as
        // changed, so an error here is not fatal.
        Ok(self.dir.meta(&self.name).ok().flatten())
    }

    /// Closes the file, which is only to be named or discarded then; many that wait for their names need no descriptors.
    pub fn close(&self) -> Result<(), FsError> {
        let file = self.file.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some(file) = file else { return Ok(()) };
        match nix::unistd::close(file) {
            // Linux has closed the descriptor even if close(2) returns `EINTR`.
            Ok(()) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(errno) => Err(self.fail("close", Errno::from_raw_os_error(errno as i32))),
        }
    }

    /// Closes the file and removes it. A file that was overwritten in place remains as it is.
    pub fn discard(&self) {
        self.file.write().unwrap_or_else(PoisonError::into_inner).take();
        if self.manner == Manner::Renamed {
            // Best effort: another process may have removed it already.
            let _ = self.dir.remove_file(&self.partial);
        }
        self.keep();
    }
}

/// Fails if a rename to `name` would destroy a device, a FIFO or a socket. Another process may still make one between this
/// look and the rename.
fn spare_special(dir: &Dir, name: &Name) -> Result<(), FsError> {
    match dir.meta(name)? {
        Some(found) if found.kind == crate::Kind::Special => {
            Err(FsError::is_special(name.as_bytes()))
        }
        _ => Ok(()),
    }
}

/// Fails if another user can have made or changed an unfinished file. Some file systems show the same owner and mode for
/// all files (vfat, CIFS, an NFS export that takes root for nobody), so a new file is the measure there.
fn trust_as_new(file: &File, dir: &Dir, name: &Name) -> Result<(), FsError> {
    let Err(reason) = trust(file, Owners::User, Others::Read) else { return Ok(()) };
    if matches!(reason, Distrust::Owner(_) | Distrust::Writable(_)) {
        let probe = Token::random()?.partial(name)?;
        let new = dir.create(&probe).and_then(Meta::of);
        // Best effort: it has the name of an unfinished file, which a later attempt removes.
        let _ = dir.remove_file(&probe);
        let (new, found) = (new?, Meta::of(file)?);
        if found.owner.user == new.owner.user && found.mode & 0o022 & !new.mode == 0 {
            return Ok(());
        }
    }
    Err(FsError::not_ours(name.as_bytes(), reason))
}

/// Removes the unfinished file `partial` and returns the bytes that it occupied on the disk. Fails
/// with [`FsError::Busy`] if another process is writing to it.
pub fn remove_unfinished(dir: &Dir, partial: &Name) -> Result<u64, FsError> {
    let path = partial.clone().into();
    let file = match dir.write(&path) {
        // The file may have its final mode already, which can forbid writing. Reading is enough for
        // the lock.
        Err(error) if error.errno() == Some(Errno::ACCESS) => dir.read(&path),
        opened => opened,
    }
    .map_err(|error| error.about(partial.as_bytes()))?;
    let meta = Meta::of(&file)?;
    if meta.kind != crate::Kind::File {
        return Err(FsError::is_special(partial.as_bytes()));
    }
    lock(&file, partial)?;
    dir.remove_file(partial)?;
    Ok(meta.blocks * STAT_BLOCK_BYTES)
}

/// The unit of `st_blocks` in bytes (stat(3type)).
const STAT_BLOCK_BYTES: u64 = 512;

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_kept.load(Ordering::Acquire) {
            self.discard();
        }
    }
}

#[cfg(test)]
mod tests;
