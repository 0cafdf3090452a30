//! The directories of a case: a source that is the same each time, and a target.

use super::Begin;
use crate::common::{random, scratch};
use std::fs::{self, FileTimes, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// The time of all files of the source, in whole seconds, since that is all that SFTP has.
const TIME: u64 = 1_600_000_000;
/// Several segments.
const LARGE_BYTES: usize = 3_000_001;

/// A folder with `from`, `to` and the state of the program. It is removed on drop.
pub(super) struct Ground {
    root: PathBuf,
    from: PathBuf,
    to: PathBuf,
    names: Vec<(String, &'static str)>,
}

impl Ground {
    pub(super) fn new(name: &str) -> Self {
        let root = scratch(name);
        fs::create_dir_all(&root).unwrap();
        fs::set_permissions(&root, Permissions::from_mode(0o755)).unwrap();
        let (from, to) = (root.join("from"), root.join("to"));
        let names = vec![(root.display().to_string(), "$ROOT")];
        Self { root, from, to, names }
    }

    /// Replaces a name that differs from run to run in all messages.
    pub(super) fn name(&mut self, name: impl ToString, shown: &'static str) {
        self.names.insert(0, (name.to_string(), shown));
    }

    pub(super) fn names(&self) -> Vec<(&str, &str)> {
        self.names.iter().map(|(name, shown)| (name.as_str(), *shown)).collect()
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    /// Lets a command keep its state, and look for the user's settings, in this folder.
    pub(super) fn is_home_of(&self, command: &mut Command) {
        let folders = [
            ("HOME", "home"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_CACHE_HOME", "cache"),
        ];
        for (name, folder) in folders {
            command.env(name, self.at(folder));
        }
    }

    /// Other directories as the source and the target, for servers that have their own.
    pub(super) fn lies(&mut self, from: PathBuf, to: PathBuf) {
        (self.from, self.to) = (from, to);
    }

    /// A file of the source.
    pub(super) fn source(&self, name: &str) -> PathBuf {
        self.from.join(name)
    }

    /// Makes the source, and an empty target.
    pub(super) fn fill(&self) {
        for dir in [&self.from, &self.to] {
            let _ = fs::remove_dir_all(dir);
            fs::create_dir_all(dir).unwrap();
        }
        fs::create_dir_all(self.from.join("t/d/empty")).unwrap();
        let files = [
            ("f", random(1, LARGE_BYTES), 0o600),
            ("t/a", b"a text\n".to_vec(), 0o640),
            ("t/d/b", random(2, 70_000), 0o755),
            ("t/none", Vec::new(), 0o644),
        ];
        for (name, bytes, mode) in files {
            let path = self.from.join(name);
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            old(&path);
        }
        symlink("a", self.from.join("t/link")).unwrap();
        fs::set_permissions(self.from.join("t/d"), Permissions::from_mode(0o750)).unwrap();
        for dir in ["t/d/empty", "t/d", "t", ""] {
            old(&self.from.join(dir));
        }
        old(&self.to);
    }

    /// Makes a directory where the command makes the file `f`.
    pub(super) fn take(&self) {
        fs::create_dir_all(self.to.join("f")).unwrap();
        fs::write(self.to.join("f/own"), "own").unwrap();
    }

    /// Adds a line for each entry at the target: kind, mode, size, the start of its hash, whether it has the time of the
    /// source, and its name.
    pub(super) fn add_tree(&self, text: &mut String, begin: Begin) {
        let mut open = vec![self.to.clone()];
        let mut lines = Vec::new();
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&self.to).unwrap().display().to_string();
                // A server removes the file only when it finds the connection lost.
                let is_partial = name.ends_with(".hikyaku");
                if is_partial && matches!(begin, Begin::Killed(_)) {
                    continue;
                }
                lines.push((if is_partial { "$PARTIAL".to_owned() } else { name }, shown(&path)));
                if path.is_dir() && !path.is_symlink() {
                    open.push(path);
                }
            }
        }
        lines.sort();
        for (name, shown) in lines {
            *text += &format!("tree {shown} {name}\n");
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn old(path: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(TIME);
    let times = FileTimes::new().set_modified(time).set_accessed(time);
    fs::File::open(path).unwrap().set_times(times).unwrap();
}

/// Kind, mode, time, size and hash of an entry.
fn shown(path: &Path) -> String {
    let meta = fs::symlink_metadata(path).unwrap();
    let time = if meta.mtime().cast_unsigned() == TIME { "kept" } else { "new" };
    let mode = meta.mode() & 0o7777;
    if meta.is_dir() {
        return format!("d {mode:04o} {time}");
    }
    if meta.is_symlink() {
        return format!("l {}", fs::read_link(path).unwrap().display());
    }
    let hash = blake3::hash(&fs::read(path).unwrap()).to_hex();
    format!("f {mode:04o} {time} {} {}", meta.size(), &hash[..8])
}
