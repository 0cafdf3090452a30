//! The version of a file's content, as one opaque value.

use serde::{Deserialize, Serialize};

/// A hash that identifies the content of one file. Two equal versions of the same path mean equal
/// bytes.
///
/// For a local file it covers device, inode, size, modification time and change time. The change
/// time reveals a writer that has restored the modification time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Version(pub [u8; 32]);

impl Version {
    /// The version of a sequence of numbers, such as those of `hikyaku_fs::Meta::version`.
    pub fn of(parts: &[u64]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&part.to_le_bytes());
        }
        Self(*hasher.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_depends_on_every_number_and_its_position() {
        let base = Version::of(&[1, 2, 3]);
        assert_eq!(base, Version::of(&[1, 2, 3]));
        for other in [&[1, 2, 4][..], &[2, 1, 3], &[1, 2], &[1, 2, 3, 0], &[]] {
            assert_ne!(base, Version::of(other), "{other:?}");
        }
    }
}
