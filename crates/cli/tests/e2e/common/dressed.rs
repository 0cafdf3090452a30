//! Permission bits and times of a tree that is copied onto another one: with `-p` those of the source, without it what is
//! there keeps its own and new names get the source's without those of the umask.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Names of the tree, with the bits at the source, at the target before, and there after a copy without and with `-p`.
const TREE: [(&str, u32, Option<u32>, [u32; 2]); 6] = [
    ("shared", 0o1777, None, [0o1755, 0o1777]),
    ("shared/new", 0o666, None, [0o644, 0o666]),
    ("closed", 0o555, None, [0o555, 0o555]),
    ("private", 0o755, Some(0o700), [0o700, 0o755]),
    ("private/f", 0o644, Some(0o600), [0o600, 0o644]),
    ("private/set", 0o4755, None, [0o755, 0o755]),
];

/// The time of everything at the source.
const SECONDS: i64 = 1_234_567_890;

fn is_dir(name: &str) -> bool {
    !name.contains('/')
}

fn make(root: &Path, name: &str, mode: u32, content: &str) {
    let path = root.join(name);
    match is_dir(name) {
        true => fs::create_dir_all(&path).unwrap(),
        false => fs::write(&path, content).unwrap(),
    }
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
}

/// Makes the tree of a source.
pub(crate) fn source(root: &Path) {
    fs::create_dir_all(root).unwrap();
    TREE.iter().for_each(|(name, mode, ..)| make(root, name, *mode, "new"));
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(SECONDS as u64);
    for (name, ..) in &TREE {
        File::open(root.join(name)).unwrap().set_modified(old).unwrap();
    }
}

/// Makes what is at the target before.
pub(crate) fn target(root: &Path) {
    fs::create_dir_all(root).unwrap();
    for (name, _, before, _) in &TREE {
        before.iter().for_each(|mode| make(root, name, *mode, "own"));
    }
}

/// Checks what came of a copy without or with `-p`, under a umask of 022.
pub(crate) fn check(root: &Path, is_kept: bool, what: &str) {
    for (name, _, before, after) in &TREE {
        let found = fs::symlink_metadata(root.join(name)).unwrap();
        let mode = found.mode() & 0o7777;
        let wanted = after[usize::from(is_kept)];
        assert_eq!(mode, wanted, "{what}, -p: {is_kept}: {name} has {mode:o} and not {wanted:o}");
        if is_kept {
            assert_eq!(found.mtime(), SECONDS, "{what}: {name}");
        }
        if before.is_some() && !is_dir(name) {
            assert_eq!(fs::read_to_string(root.join(name)).unwrap(), "new", "{what}: {name}");
        }
    }
}
