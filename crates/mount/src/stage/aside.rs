//! Bytes that cannot go to the server: each file's in a file of its own, where they would have been, with holes between them.

use hikyaku_store::StorePath;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where such files are kept.
#[derive(Debug)]
pub(crate) struct Aside {
    dir: PathBuf,
    files: HashMap<StorePath, (PathBuf, File)>,
}

/// Which file is which, and why: a line each.
const LIST: &str = "list.txt";
/// Bytes of a path that the name of its file has.
const NAME_BYTES_MAX: usize = 120;

impl Aside {
    pub(crate) fn at(dir: PathBuf) -> Self {
        Self { dir, files: HashMap::new() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Files since the start.
    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// Keeps bytes of a file. Returns the file that has them.
    pub(crate) fn keep(
        &mut self,
        path: &StorePath,
        why: &str,
        (at, bytes): (u64, &[u8]),
    ) -> io::Result<&Path> {
        if !self.files.contains_key(path) {
            let made = self.make(path, why)?;
            self.files.insert(path.clone(), made);
        }
        let (name, file) = &self.files[path];
        file.write_all_at(bytes, at)?;
        Ok(name)
    }

    /// Brings everything to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.files.values().try_for_each(|(_, file)| file.sync_all())?;
        if self.files.is_empty() { Ok(()) } else { File::open(&self.dir)?.sync_all() }
    }

    fn make(&self, path: &StorePath, why: &str) -> io::Result<(PathBuf, File)> {
        fs::create_dir_all(&self.dir)?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let shown = hikyaku_fs::sentence(&String::from_utf8_lossy(path.as_bytes()));
        let plain = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' };
        let name: String = shown.chars().map(plain).collect();
        let name = &name[name.len().saturating_sub(NAME_BYTES_MAX)..];
        let options = File::options().write(true).create_new(true).clone();
        let mut attempt = 0;
        let (name, file) = loop {
            let name = format!("{name}.{time}.{attempt}");
            match options.open(self.dir.join(&name)) {
                Ok(file) => break (name, file),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
                Err(error) => return Err(error),
            }
        };
        let mut list = File::options().append(true).create(true).open(self.dir.join(LIST))?;
        list.write_all(format!("{name}\t{shown}\t{why}\n").as_bytes())?;
        list.sync_all()?;
        Ok((self.dir.join(name), file))
    }
}
