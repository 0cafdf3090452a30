//! The inode numbers that programs see (st_ino of stat(2)), which are those of the nodes.
//!
//! A file has its number at the server, so that a program that compares numbers finds the same ones after the kernel has
//! forgotten the file, and in the next mount. A file of another file system than the mounted directory's, or of one of
//! several servers, has a number that is computed from what identifies it there.
//!
//! Two nodes never have one number. The second one gets a number of its own for as long as it is known: another hard link of
//! a file, and the changed content of a file that is open.

use super::ROOT;
use hikyaku_store::{Found, StorePath};

/// The identity of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Numbering {
    /// The device and the inode number that the server sends.
    #[default]
    Identity,
    /// Its path: several servers have numbers that know nothing of each other.
    Path,
}

/// Set in numbers that are computed. No file system in use gives such numbers itself.
const COMPUTED: u64 = 1 << 62;
/// Set in numbers of nodes that must not have the number that the file has otherwise.
const ANOTHER: u64 = 1 << 63;
/// The highest numbers are those of the mount's own files.
const OWN: u64 = u64::MAX - 0xff;

impl Numbering {
    /// The number of a file, if no other node has it. `root` is the device of the mounted directory.
    pub(super) fn number(self, path: &StorePath, found: &Found, root: Option<u64>) -> u64 {
        let identity = found.identity;
        match self {
            Self::Identity if Some(identity.device) == root => match identity.number {
                number if number > ROOT && number < COMPUTED => number,
                number => computed(&[&number.to_le_bytes()]) | COMPUTED,
            },
            Self::Identity => {
                let (device, number) =
                    (identity.device.to_le_bytes(), identity.number.to_le_bytes());
                computed(&[&device, &number]) | COMPUTED
            }
            Self::Path => computed(&[path.as_bytes()]) | COMPUTED,
        }
    }

    /// The number that a node of this path gets in place of `number`, at the `attempt`-th time.
    pub(super) fn another(number: u64, path: &StorePath, attempt: u64) -> u64 {
        let parts = [&number.to_le_bytes()[..], &attempt.to_le_bytes(), path.as_bytes()];
        (computed(&parts) | ANOTHER).min(OWN)
    }
}

/// A number below [`COMPUTED`].
fn computed(parts: &[&[u8]]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first) & (COMPUTED - 1)
}
