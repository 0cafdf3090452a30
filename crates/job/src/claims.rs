//! Names at the target that sources of several machines have. A file that came from one of them is not replaced by a file of
//! another one. Within a machine the walk sees to that.

use hikyaku_fs::Kind;
use hikyaku_transfer::{Failure, FailureKind};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, PoisonError};

/// Maximum number of names, of 40 bytes each.
const NAMES_MAX: usize = 1 << 21;
/// Bytes of a name's BLAKE3 hash that stand for the name.
const KEY_BYTES: usize = 16;

/// The names that the parts of a copy have made.
pub struct Claims {
    made: Mutex<HashMap<[u8; KEY_BYTES], Made>>,
    most: usize,
}

/// The first entry of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Made {
    part: usize,
    kind: Kind,
}

/// One part of a copy.
#[derive(Clone, Copy)]
pub struct Claimant<'a> {
    claims: Option<&'a Claims>,
    part: usize,
}

/// Whether a part may have a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// It may.
    Free,
    /// Another part has made a file of that name, or a directory where this part has a file.
    Taken,
}

/// Sources of several machines have too many names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("sources of several machines have more than {names_max} names that may meet")]
pub struct ClaimsFull {
    names_max: usize,
}

impl ClaimsFull {
    /// The remedy for the user.
    pub const REMEDY: &str = "try: one command for each machine";
}

impl Default for Claims {
    fn default() -> Self {
        Self { made: Mutex::default(), most: NAMES_MAX }
    }
}

impl Claims {
    /// The part with this number.
    pub const fn part(&self, part: usize) -> Claimant<'_> {
        Claimant { claims: Some(self), part }
    }
}

impl Claimant<'_> {
    /// The only part.
    pub const fn only() -> Self {
        Self { claims: None, part: 0 }
    }

    /// Whether this part may make an entry of this kind at `path`. From then on no other part may, unless both are
    /// directories, which become one.
    ///
    /// # Errors
    ///
    /// There is no room for another name.
    pub fn claim(&self, path: &[u8], kind: Kind) -> Result<Claim, ClaimsFull> {
        let Some(claims) = self.claims else { return Ok(Claim::Free) };
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(&blake3::hash(path).as_bytes()[..KEY_BYTES]);
        let mut made = claims.made.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = made.len() >= claims.most;
        match made.entry(key) {
            Entry::Occupied(other) => {
                let Made { part, kind: other } = *other.get();
                let is_free = part == self.part || (kind, other) == (Kind::Dir, Kind::Dir);
                Ok(if is_free { Claim::Free } else { Claim::Taken })
            }
            Entry::Vacant(_) if is_full => Err(ClaimsFull { names_max: claims.most }),
            Entry::Vacant(free) => {
                free.insert(Made { part: self.part, kind });
                Ok(Claim::Free)
            }
        }
    }
}

/// The reason that a source is not copied whose name another one has.
pub const JUST_MADE: &str =
    "would overwrite the just-created one of another source, and is not copied";

/// The failure of a source that would be `path` at the target.
pub fn just_made(path: &[u8]) -> Failure {
    Failure { place: path.to_vec(), kind: FailureKind::Exists, text: JUST_MADE.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_firsts_and_directories_are_everybodys() {
        let claims = Claims::default();
        let cases = [
            (0, "a", Kind::File, Claim::Free),
            (0, "d", Kind::Dir, Claim::Free),
            // A second attempt at the same part.
            (0, "a", Kind::File, Claim::Free),
            (1, "a", Kind::File, Claim::Taken),
            (1, "a", Kind::Dir, Claim::Taken),
            (1, "d", Kind::Dir, Claim::Free),
            (1, "d", Kind::Link, Claim::Taken),
            (1, "d/x", Kind::File, Claim::Free),
            (2, "d/x", Kind::File, Claim::Taken),
        ];
        for (part, path, kind, wanted) in cases {
            let claim = claims.part(part).claim(path.as_bytes(), kind).unwrap();
            assert_eq!(claim, wanted, "{part} {path} {kind:?}");
        }
        assert_eq!(Claimant::only().claim(b"a", Kind::File).unwrap(), Claim::Free);
    }

    #[test]
    fn a_far_side_cannot_have_any_number_of_names_kept() {
        let claims = Claims { most: 3, ..Claims::default() };
        let far = claims.part(0);
        let claimed = (0..9u8).take_while(|n| far.claim(&[*n], Kind::File).is_ok()).count();
        assert_eq!(claimed, 3);
        assert_eq!(far.claim(&[0], Kind::File).unwrap(), Claim::Free, "it is known");
    }
}
