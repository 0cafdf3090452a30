//! Open files in a local directory.

use crate::convert::found;
use hikyaku_fs::Meta;
use hikyaku_store::{Access, ErrorKind, Extent, Found, Open, Result, StorePath, SyncScope, doing};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io::ErrorKind as IoKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// An open file.
pub(crate) struct LocalOpen {
    file: File,
    path: StorePath,
    access: Access,
    before: Meta,
}

impl LocalOpen {
    pub(crate) const fn new(file: File, path: StorePath, access: Access, before: Meta) -> Self {
        Self { file, path, access, before }
    }

    /// Checks whether a read that ended early reached the end of the file as it was when opened.
    /// (The change time is not compared, because it also changes when a name of the file is
    /// removed: a program may read such a file to its end. A copy calls [`Open::is_unchanged`].)
    fn ends_at(&self, end: u64) -> Result<()> {
        let doing = doing("read", &self.path);
        let now = doing.or(Meta::of(&self.file))?;
        let is_same = match self.access {
            Access::Read => (now.size, now.modified) == (self.before.size, self.before.modified),
            Access::Update => true,
        };
        if is_same && end >= now.size { Ok(()) } else { doing.fail(ErrorKind::Changed) }
    }
}

impl Open for LocalOpen {
    fn found(&self) -> Result<Found> {
        doing("look at", &self.path).or(Meta::of(&self.file)).map(|meta| found(&meta))
    }

    fn is_unchanged(&self) -> Result<bool> {
        let now = doing("read", &self.path).or(Meta::of(&self.file))?;
        Ok(self.access == Access::Update || self.before.is_unchanged(&now))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let length = doing("read", &self.path).or(read(&self.file, at, into))?;
        if length < into.len() {
            self.ends_at(at.saturating_add(length as u64))?;
        }
        Ok(length)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        doing("write", &self.path).or(self.file.write_all_at(bytes, at))
    }

    fn set_len(&self, length: u64) -> Result<()> {
        doing("set the length", &self.path).or(self.file.set_len(length))
    }

    fn extents(&self, range: Range<u64>) -> Result<Vec<Extent>> {
        let doing = doing("read", &self.path);
        let end = range.end.min(doing.or(Meta::of(&self.file))?.size);
        let mut extents = Vec::new();
        let mut at = range.start;
        while at < end {
            let data = match seek(&self.file, SeekFrom::Data(at)) {
                // ENXIO: only a hole follows.
                Err(Errno::NXIO) => end,
                // The file system does not report holes.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
                data => doing.or(data)?.min(end),
            };
            if data > at {
                extents.push(Extent::Hole(at..data));
            }
            if data == end {
                break;
            }
            at = match seek(&self.file, SeekFrom::Hole(data)) {
                Err(Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP) => end,
                hole => doing.or(hole)?.clamp(data + 1, end),
            };
            extents.push(Extent::Data(data..at));
        }
        Ok(extents)
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        doing("sync", &self.path).or(match scope {
            SyncScope::Data => self.file.sync_data(),
            SyncScope::All => self.file.sync_all(),
        })
    }
}

/// Reads until the buffer is full or the file ends.
pub(crate) fn read(file: &File, at: u64, into: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < into.len() {
        match file.read_at(&mut into[length..], at.saturating_add(length as u64)) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == IoKind::Interrupted => {}
            // EINVAL: the offset is beyond the kernel's maximum, so there is no data.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use crate::{Local, NewModes};
    use hikyaku_store::{Access, Store, StorePath};
    use std::fs;

    #[test]
    fn a_file_whose_old_time_was_set_again_is_told_to_be_changed() {
        let root = std::env::temp_dir().join(format!("hikyaku-open-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("a"), "one").unwrap();
        let store = Local::open(&root, NewModes::default()).unwrap();
        let open = store.open(&StorePath::new(b"a").unwrap(), Access::Read).unwrap();
        assert!(open.is_unchanged().unwrap());
        let file = fs::File::options().write(true).open(root.join("a")).unwrap();
        let time = file.metadata().unwrap().modified().unwrap();
        // A clock that has gone on since: the change time is the kernel's.
        while !open_time_has_passed(&root) {}
        std::os::unix::fs::FileExt::write_all_at(&file, b"two", 0).unwrap();
        file.set_modified(time).unwrap();
        assert!(!open.is_unchanged().unwrap());
        // A program may still read it to its end.
        assert_eq!(open.read_at(0, &mut [0; 9]).unwrap(), 3);
        fs::remove_dir_all(&root).unwrap();
    }

    /// Whether a new file has another change time than `a`.
    fn open_time_has_passed(root: &std::path::Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        fs::write(root.join("b"), "").unwrap();
        let time = |name: &str| {
            let meta = fs::metadata(root.join(name)).unwrap();
            (meta.ctime(), meta.ctime_nsec())
        };
        time("a") != time("b")
    }
}
