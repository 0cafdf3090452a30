//! Creates the source and target of many cases, and reads the target afterwards.

use super::case::{Age, Case, Length, Size, Source, Target};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, mknodat, utimensat};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// The directory of one run: source `s`, target `d`, and beside each the targets of its symbolic
/// links.
pub(crate) struct Ground(PathBuf);

/// What exists under a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    pub(crate) inode: u64,
    pub(crate) kind: NodeKind,
    modified: (i64, i64),
    mode: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NodeKind {
    File(Vec<u8>),
    Link(Vec<u8>),
    Dir,
    Other,
}

/// Names and what exists under them.
pub(crate) type Seen = BTreeMap<String, Node>;

/// Name of the file that a full directory has in addition.
const OWN_FILE: &str = "kept";

impl Ground {
    pub(crate) fn new(path: PathBuf) -> Self {
        let _ = fs::remove_dir_all(&path);
        for name in ["s", "s-links", "d", "d-links", "state"] {
            fs::create_dir_all(path.join(name)).unwrap();
        }
        Self(path)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn make(&self, cases: &[Case]) {
        self.make_in(cases, &self.at("s"), Some(&self.at("d")));
    }

    fn make_in(&self, cases: &[Case], source: &Path, target: Option<&Path>) {
        for case in cases {
            self.make_source(case, &source.join(&case.name));
            if let Some(target) = target {
                self.make_target(case, &target.join(&case.name));
            }
        }
    }

    fn make_source(&self, case: &Case, at: &Path) {
        match case.source {
            Source::File(size) => fs::write(at, content(case.seed, size)).unwrap(),
            Source::LinkToFile(size) => {
                let file = self.link_text(case);
                fs::write(&file, content(case.seed, size)).unwrap();
                set_time(&file, time(case, Age::Same));
                symlink(file, at).unwrap();
            }
            Source::LinkToDir => {
                let dir = self.link_text(case);
                fs::create_dir(&dir).unwrap();
                self.make_in(&case.children, &dir, None);
                symlink(dir, at).unwrap();
            }
            Source::LinkToNothing => symlink(self.link_text(case), at).unwrap(),
            Source::Dir => {
                fs::create_dir(at).unwrap();
                self.make_in(&case.children, at, None);
            }
            Source::Fifo => node(at, FileType::Fifo),
        }
        set_time(at, time(case, Age::Same));
    }

    /// The text of the source's symbolic link. It does not contain the name of the case, because
    /// messages may show it.
    pub(crate) fn link_text(&self, case: &Case) -> PathBuf {
        self.at("s-links").join(format!("{:x}", case.seed))
    }

    fn make_target(&self, case: &Case, at: &Path) {
        let aside = self.at("d-links").join(format!("{:x}", case.seed));
        let other = content(!case.seed, Size::Small);
        match case.target {
            Target::Absent => return,
            Target::File(_, length) => {
                let size = match case.source {
                    Source::File(size) | Source::LinkToFile(size) => size,
                    _ => Size::Small,
                };
                let same = content(!case.seed, size);
                let bytes = if length == Length::Same { same } else { [&same, &b"x"[..]].concat() };
                fs::write(at, bytes).unwrap();
            }
            Target::LinkToFile(_) => {
                fs::write(&aside, other).unwrap();
                set_time(&aside, time(case, case.target.age().unwrap_or(Age::Older)));
                symlink(aside, at).unwrap();
            }
            Target::LinkToDir(_) => {
                fs::create_dir(&aside).unwrap();
                fs::write(aside.join(OWN_FILE), other).unwrap();
                symlink(aside, at).unwrap();
            }
            Target::LinkToNothing(_) => symlink(aside, at).unwrap(),
            Target::SameLink => symlink(self.link_text(case), at).unwrap(),
            Target::EmptyDir => fs::create_dir(at).unwrap(),
            Target::FullDir => {
                fs::create_dir(at).unwrap();
                fs::write(at.join(OWN_FILE), other).unwrap();
                for child in &case.children {
                    self.make_target(child, &at.join(&child.name));
                }
            }
            Target::Fifo => node(at, FileType::Fifo),
            Target::Socket => node(at, FileType::Socket),
        }
        set_time(at, time(case, case.target.age().unwrap_or(Age::Older)));
    }

    /// Everything in the target, and what its symbolic links point to.
    pub(crate) fn see(&self) -> Seen {
        let mut seen = Seen::new();
        for name in ["d", "d-links"] {
            read(&self.at(name), name, &mut seen);
        }
        seen
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // To inspect a failure, the test is run again with its seed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The contents of a file, derived from a seed.
pub(crate) fn content(seed: u64, size: Size) -> Vec<u8> {
    let mut bytes = vec![0; size.bytes()];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

fn node(at: &Path, kind: FileType) {
    mknodat(CWD, at, kind, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Modification time of the source, and one that is earlier or later by a nanosecond, a second or a
/// day.
fn time(case: &Case, age: Age) -> (i64, i64) {
    const SECOND: i64 = 1_000_000_000;
    let step = [1, SECOND, 86_400 * SECOND][(case.seed % 3) as usize];
    let whole = 1_600_000_000 * SECOND + (case.seed % 3_000_000_000) as i64;
    let nanos = match age {
        Age::Older => whole - step,
        Age::Same => whole,
        Age::Newer => whole + step,
    };
    (nanos / SECOND, nanos % SECOND)
}

fn set_time(at: &Path, (seconds, nanos): (i64, i64)) {
    let stamp = Timespec { tv_sec: seconds, tv_nsec: nanos };
    let times = Timestamps { last_access: stamp, last_modification: stamp };
    utimensat(CWD, at, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn read(dir: &Path, prefix: &str, seen: &mut Seen) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}/{}", entry.file_name().display());
        let meta = entry.metadata().unwrap();
        seen.insert(name.clone(), Node::of(&entry.path(), &meta));
        if meta.is_dir() {
            read(&entry.path(), &name, seen);
        }
    }
}

impl Node {
    fn of(at: &Path, meta: &Metadata) -> Self {
        let kind = if meta.is_file() {
            NodeKind::File(fs::read(at).unwrap())
        } else if meta.is_symlink() {
            NodeKind::Link(fs::read_link(at).unwrap().as_os_str().as_bytes().to_vec())
        } else if meta.is_dir() {
            NodeKind::Dir
        } else {
            NodeKind::Other
        };
        let modified = (meta.mtime(), meta.mtime_nsec());
        Self { inode: meta.ino(), kind, modified, mode: meta.mode() }
    }

    /// Whether the entry is untouched. The time of a directory depends on its entries, and that of
    /// a symbolic link may be set.
    pub(crate) fn is_as(&self, before: &Self) -> bool {
        match self.kind {
            NodeKind::Dir | NodeKind::Link(_) => {
                (self.inode, &self.kind) == (before.inode, &before.kind)
            }
            NodeKind::File(_) | NodeKind::Other => self == before,
        }
    }
}
