//! Trees that are drawn and changed.

use super::super::beside_rsync::{remove, set_time};
use super::super::trees::state;
use fastrand::Rng;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Names of trees. Those at the end are what backups are called, and only targets have them: rsync may lose a backup that
/// the source has a file for.
const NAMES: [&[u8]; 17] = [
    b"a",
    b"b",
    b"c",
    b"d",
    b"e d",
    b"f.tmp",
    b"g.tmp",
    b"-n",
    b"\xc3\xa9",
    b"n\nl",
    b"\xff",
    b"h\\#101",
    b" i ",
    b"j\\",
    b"a~",
    b"b.bak",
    b"c~",
];
/// How many of the names sources have.
const OF_SOURCES: usize = 14;
const MODES: [u32; 10] = [0o644, 0o644, 0o600, 0o755, 0o444, 0o400, 0o4755, 0o2750, 0o1777, 0o000];
const DIR_MODES: [u32; 6] = [0o755, 0o755, 0o700, 0o1777, 0o2775, 0o555];

/// Which times a tree may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    /// Those that SFTP can set.
    Usual,
    Any,
}

fn time(rng: &mut Rng, times: Times) -> i64 {
    match rng.u8(0..20) {
        0 if times == Times::Any => -rng.i64(1..1_000_000_000),
        1 => rng.i64(1 << 31..1 << 32),
        2 => rng.i64(0..100),
        _ => 1_000_000_000 + rng.i64(0..3),
    }
}

/// Which tree it is: the names and times that it may have.
#[derive(Clone, Copy)]
pub(super) struct Tree<'a> {
    pub(super) root: &'a Path,
    pub(super) is_source: bool,
    pub(super) times: Times,
}

impl Tree<'_> {
    fn name(self, rng: &mut Rng) -> &'static OsStr {
        let count = if self.is_source { OF_SOURCES } else { NAMES.len() };
        OsStr::from_bytes(NAMES[rng.usize(..count)])
    }

    /// The name of its FIFOs. A file of the same name would replace one with rsync, and leave it alone here, as every
    /// other command does.
    const fn fifo(self) -> &'static str {
        if self.is_source { "fifo" } else { "old fifo" }
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A new file, which may be a second name of one that is there.
fn file(path: &Path, tree: Tree<'_>, rng: &mut Rng) {
    remove(path);
    let other = tree.root.join(tree.name(rng));
    let is_link =
        rng.u8(0..12) == 0 && fs::symlink_metadata(&other).is_ok_and(|meta| meta.is_file());
    if is_link {
        fs::hard_link(other, path).unwrap();
        return;
    }
    let length = if rng.u8(0..60) == 0 { (1 << 20) + rng.usize(0..2) } else { rng.usize(0..4) };
    fs::write(path, vec![rng.u8(..); length]).unwrap();
    set_mode(path, MODES[rng.usize(..MODES.len())]);
    set_time(path, time(rng, tree.times));
}

/// Changes a tree. Equal trees and equal generators give equal trees.
pub(super) fn change(tree: Tree<'_>, rng: &mut Rng) {
    let (root, times) = (tree.root, tree.times);
    for _ in 0..rng.usize(5..40) {
        let mut path = root.to_path_buf();
        for _ in 0..rng.usize(0..4) {
            path.push(tree.name(rng));
            if !fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) {
                remove(&path);
                fs::create_dir(&path).unwrap();
            }
        }
        let dir = path.clone();
        path.push(tree.name(rng));
        match rng.u8(0..13) {
            0..5 => file(&path, tree, rng),
            5 | 6 => {
                remove(&path);
                symlink(tree.name(rng), &path).unwrap();
                set_time(&path, time(rng, times));
            }
            9 => set_mode(&dir, DIR_MODES[rng.usize(..DIR_MODES.len())]),
            10 => {
                remove(&path);
                fs::create_dir(&path).unwrap();
            }
            11 if rng.bool() => {
                let path = dir.join(tree.fifo());
                remove(&path);
                mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
            }
            // Only the times or the mode.
            12 if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file()) => {
                match rng.bool() {
                    true => set_mode(&path, MODES[rng.usize(..MODES.len())]),
                    false => set_time(&path, time(rng, times)),
                }
            }
            _ => remove(&path),
        }
    }
}

/// Gives directories times that are long ago.
pub(super) fn settle(Tree { root, times, .. }: Tree<'_>, rng: &mut Rng) {
    let all = state(root).into_iter().rev().filter(|(_, mode, ..)| mode & 0o170_000 == 0o040_000);
    let all: Vec<_> = all.map(|(name, ..)| root.join(name)).collect();
    all.iter().for_each(|path| set_time(path, time(rng, times)));
}

/// Removes from a target what has the name of a directory of the source, and is none.
pub(super) fn clear_ways(target: &Path, source: &Path) {
    for (name, mode, ..) in state(source) {
        let (path, is_dir) = (target.join(&name), mode & 0o170_000 == 0o040_000);
        let is_other = || fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_dir());
        if is_dir && is_other() {
            remove(&path);
        }
    }
}

/// Some names of a tree, some of them unknown, as a list of `--files-from` with zero bytes.
pub(super) fn list(root: &Path, rng: &mut Rng) -> Vec<u8> {
    let all = state(root).into_iter().map(|(name, ..)| name);
    let mut all: Vec<PathBuf> = all.filter(|name| !name.as_os_str().is_empty()).collect();
    all.retain(|_| rng.u8(0..3) == 0);
    if rng.u8(0..4) == 0 {
        all.push("no-such".into());
    }
    all.push("always".into());
    if rng.u8(0..6) == 0 {
        all.push(".".into());
    }
    rng.shuffle(&mut all);
    let mut ended = |name: PathBuf| {
        let end: &[u8] =
            if rng.u8(0..5) == 0 && root.join(&name).is_dir() { b"/\0" } else { b"\0" };
        [name.as_os_str().as_bytes(), end].concat()
    };
    all.into_iter().flat_map(&mut ended).collect()
}
