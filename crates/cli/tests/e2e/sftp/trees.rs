//! Trees in a scratch directory, and what they are.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// A scratch directory, which is removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let dir = crate::common::scratch(&format!("sync-{name}"));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes a file and the directories above it. Its time has no fraction, as SFTP tells it.
    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), contents).unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        fs::File::open(self.at(name)).unwrap().set_modified(old).unwrap();
    }

    /// Runs `hikyaku sync`, and gives exit code, standard output and standard error.
    pub(crate) fn sync(&self, words: &[&str]) -> (i32, String, String) {
        self.run(Command::new(env!("CARGO_BIN_EXE_hikyaku")).arg("sync").args(words))
    }

    /// The same of any command, in this directory.
    pub(crate) fn run(&self, command: &mut Command) -> (i32, String, String) {
        command.env("XDG_STATE_HOME", self.at("state")).current_dir(&self.0).stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A name below a root, its mode, its time in seconds and nanoseconds, and its content.
pub(crate) type Entry = (PathBuf, u32, (i64, i64), Vec<u8>);

/// Everything at and below `root`.
pub(crate) fn state(root: &Path) -> Vec<Entry> {
    let mut all = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(root).unwrap().to_path_buf();
        let content = match meta.file_type() {
            kind if kind.is_dir() => {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            }
            kind if kind.is_symlink() => {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            }
            kind if kind.is_file() => fs::read(&path).unwrap(),
            _ => Vec::new(),
        };
        all.push((name, meta.mode(), (meta.mtime(), meta.mtime_nsec()), content));
    }
    all.sort();
    all
}
