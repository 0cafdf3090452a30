//! What is copied in a run: sources, what stands at the target already, options.

use crate::place::{Area, Place};
use crate::tree::{Closeness, set_attribute};
use anyhow::Result;
use std::ffi::OsString;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A copy that is made again and again.
pub struct Scene {
    /// Its name.
    pub name: &'static str,
    /// Options of `hikyaku cp`.
    pub(crate) options: &'static [&'static str],
    /// What is named as the source, below the source's area.
    pub(crate) source: &'static str,
    /// What is named as the target, below the target's area.
    pub(crate) target: &'static str,
    /// Makes sources, and what stands at the target.
    build: fn(&Path, &Path) -> Result<()>,
    /// What goes wrong in the run before the one that is judged, if there is one.
    pub(crate) before: Option<&'static str>,
    /// Each read of a source takes so long, so that the copy lasts longer than a step of the syncing.
    pub(crate) pace: Duration,
    /// What must be the same at the end.
    pub(crate) closeness: Closeness,
    /// What a failed copy may leave under a final name.
    pub(crate) manner: Manner,
    /// Whether the disk must have what was told done.
    pub(crate) durable: Durable,
}

/// How files come to their names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// Under another name until they are whole.
    Renamed,
    /// Old files are written over.
    InPlace,
}

/// Whether the copy waits for the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Durable {
    /// It does.
    Yes,
    /// It was told not to.
    No,
}

const PLAIN: Scene = Scene {
    name: "",
    options: &["-r"],
    source: "tree",
    target: "",
    build: small,
    before: None,
    pace: Duration::ZERO,
    closeness: Closeness::Content,
    manner: Manner::Renamed,
    durable: Durable::Yes,
};

/// All of them.
pub const SCENES: &[Scene] = &[
    Scene { name: "small", ..PLAIN },
    Scene {
        name: "large",
        options: &[],
        source: "big",
        target: "big",
        build: large,
        pace: Duration::from_millis(10),
        ..PLAIN
    },
    Scene {
        name: "inplace",
        options: &["-r", "--inplace"],
        build: inplace,
        pace: Duration::from_millis(30),
        manner: Manner::InPlace,
        ..PLAIN
    },
    Scene {
        name: "archive",
        options: &["-a"],
        build: archive,
        closeness: Closeness::Dressed,
        ..PLAIN
    },
    Scene {
        name: "resumed",
        build: mixed,
        before: Some("write@target#15=killed"),
        pace: Duration::from_millis(20),
        ..PLAIN
    },
    Scene { name: "new", options: &["-a"], build: new, closeness: Closeness::Dressed, ..PLAIN },
    Scene { name: "nofsync", options: &["-r", "--no-fsync"], durable: Durable::No, ..PLAIN },
    Scene {
        name: "mix",
        options: &["-a", "--verify"],
        build: everything,
        pace: Duration::from_millis(5),
        closeness: Closeness::Dressed,
        ..PLAIN
    },
];

impl Scene {
    /// The one of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        SCENES.iter().find(|scene| scene.name == name)
    }

    /// Makes all that stands before the copy.
    pub(crate) fn set(&self, place: &Place) -> Result<()> {
        place.clear()?;
        (self.build)(&place.area(Area::Source), &place.area(Area::Target))
    }

    /// The command.
    pub(crate) fn command(&self, program: &Path, place: &Place) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec![program.into(), "cp".into(), "-q".into()];
        command.extend(self.options.iter().map(OsString::from));
        command.push(place.area(Area::Source).join(self.source).into());
        command.push(place.area(Area::Target).join(self.target).into());
        command
    }
}

/// When sources were written, so that nobody takes the time of a copy for theirs.
const WRITTEN: Duration = Duration::from_secs(1_600_000_000);
const MEBIBYTE: usize = 1 << 20;

fn put(path: &Path, seed: u64, length: usize) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    fs::write(path, bytes)?;
    age(path, seed)
}

fn age(path: &Path, seed: u64) -> Result<()> {
    let at = SystemTime::UNIX_EPOCH + WRITTEN + Duration::new(seed, 123_456_789);
    Ok(File::open(path)?.set_times(FileTimes::new().set_modified(at))?)
}

/// Twenty small files in three directories, of which every third stands there in an older form.
fn small(source: &Path, target: &Path) -> Result<()> {
    for number in 0..20 {
        let dir = ["tree", "tree/one", "tree/one/two"][number % 3];
        let name = format!("{dir}/file{number}");
        put(&source.join(&name), number as u64, number * 311)?;
        if number % 3 == 0 {
            put(&target.join(&name), 1000 + number as u64, number * 100 + 50)?;
        }
    }
    Ok(())
}

fn large(source: &Path, target: &Path) -> Result<()> {
    put(&source.join("big"), 1, 20 * MEBIBYTE + 4567)?;
    put(&target.join("big"), 2, 3 * MEBIBYTE + 17)
}

fn inplace(source: &Path, target: &Path) -> Result<()> {
    for (number, length) in [6 * MEBIBYTE + 99, 2 * MEBIBYTE, 3000, 100, 0].into_iter().enumerate()
    {
        let name = format!("tree/file{number}");
        put(&source.join(&name), number as u64, length)?;
        if number != 1 {
            put(&target.join(&name), 50 + number as u64, (2 * MEBIBYTE) >> (4 * number.min(4)))?;
        }
    }
    Ok(())
}

fn mixed(source: &Path, target: &Path) -> Result<()> {
    for number in 0..8 {
        put(&source.join(format!("tree/file{number}")), number, 700 * number as usize)?;
    }
    put(&target.join("tree/file3"), 70, 999)?;
    put(&source.join("tree/large"), 20, 12 * MEBIBYTE + 5)?;
    put(&source.join("tree/zlast"), 21, 2 * MEBIBYTE)
}

/// Links, directories with modes and times of their own, attributes, holes; at the target a link where
/// a file is to be and a file where a link is to be.
fn archive(source: &Path, target: &Path) -> Result<()> {
    for number in 0..8 {
        let dir = ["tree", "tree/open", "tree/shut"][number % 3];
        let path = source.join(format!("{dir}/file{number}"));
        put(&path, number as u64, number * 900)?;
        fs::set_permissions(&path, Permissions::from_mode([0o644, 0o600, 0o755][number % 3]))?;
        if number % 2 == 0 {
            set_attribute(&path, "user.colour", format!("green {number}").as_bytes())?;
            age(&path, number as u64)?;
        }
    }
    put(&source.join("tree/wide"), 30, 2 * MEBIBYTE + 1)?;
    let sparse = File::create(source.join("tree/sparse"))?;
    sparse.set_len(4 * MEBIBYTE as u64)?;
    sparse.write_all_at(&[7; 5000], MEBIBYTE as u64 + 100)?;
    symlink("open/file1", source.join("tree/link"))?;
    symlink("nowhere", source.join("tree/shut/broken"))?;
    symlink("new", source.join("tree/open/changed"))?;
    fs::create_dir(source.join("tree/empty"))?;
    put(&target.join("tree/link"), 40, 500)?;
    put(&target.join("tree/file3"), 41, 800)?;
    fs::create_dir(target.join("tree/open"))?;
    symlink("old", target.join("tree/open/changed"))?;
    symlink("../file3", target.join("tree/open/file1"))?;
    for (dir, mode) in [("empty", 0o700), ("open", 0o775), ("shut", 0o555), ("", 0o755)] {
        let dir = source.join("tree").join(dir);
        age(&dir, 77)?;
        fs::set_permissions(&dir, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Nothing stands at the target, and some directories hold only directories and links.
fn new(source: &Path, _: &Path) -> Result<()> {
    for dir in ["tree/links", "tree/deep/deeper/deepest", "tree/files"] {
        fs::create_dir_all(source.join(dir))?;
    }
    symlink("../files/one", source.join("tree/links/one"))?;
    symlink("nowhere", source.join("tree/links/two"))?;
    put(&source.join("tree/files/one"), 1, 5000)?;
    put(&source.join("tree/files/two"), 2, 0)?;
    put(&source.join("tree/deep/deeper/deepest/three"), 3, MEBIBYTE + 1)?;
    for dir in ["tree/links", "tree/deep/deeper", "tree/deep", "tree/files", "tree"] {
        age(&source.join(dir), 79)?;
    }
    Ok(())
}

fn everything(source: &Path, target: &Path) -> Result<()> {
    small(source, target)?;
    put(&source.join("tree/large"), 31, 5 * MEBIBYTE + 1)?;
    put(&source.join("tree/one/large"), 32, 2 * MEBIBYTE)?;
    put(&target.join("tree/one/large"), 33, MEBIBYTE)?;
    symlink("large", source.join("tree/one/link"))?;
    for dir in ["tree/one/two", "tree/one", "tree"] {
        age(&source.join(dir), 78)?;
    }
    Ok(())
}
