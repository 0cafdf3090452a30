//! Names of unfinished files: `.NAME.TOKEN.hikyaku`, in the directory of the final file `NAME`.
//!
//! TOKEN is eight characters common to all files of one copy, and five for the file. When a
//! receiver resumes a copy, the common part tells it which files an earlier attempt left.

use crate::error::FsError;
use crate::path::Name;
use crate::system::random;

/// The suffix of the names of all unfinished files.
pub const PARTIAL_SUFFIX: &str = ".hikyaku";

/// The common part of the names of all unfinished files of a copy: 40 random bits as eight base-32
/// characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token([u8; COMMON_CHARS]);

const COMMON_CHARS: usize = 8;
const FILE_CHARS: usize = 5;
/// The longest part of a final name that fits, in bytes. The temporary name has a dot, this part, a
/// dot, both parts of the token and the suffix: 255 in all, the limit of Linux.
const KEPT_BYTES_MAX: usize = 255 - 2 - COMMON_CHARS - FILE_CHARS - PARTIAL_SUFFIX.len();
/// Names shorter than this many bytes are kept whole. A temporary name of them stays below the
/// shortest limit known (eCryptfs: 143).
const WHOLE_NAME_BYTES: usize = 100;
const BASE32_DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

impl Token {
    /// Draws a new token from the kernel's random generator. Fails if it has none.
    pub fn random() -> Result<Self, FsError> {
        let mut digits = [0; COMMON_CHARS];
        draw(&mut digits)?;
        Ok(Self(digits))
    }

    /// Reads a token back from its eight characters; `None` if they are not a token.
    // fuzz: names
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let digits: [u8; COMMON_CHARS] = bytes.try_into().ok()?;
        digits.iter().all(|digit| BASE32_DIGITS.contains(digit)).then_some(Self(digits))
    }

    /// Its eight characters.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The token within the name of an unfinished file; `None` for any other name.
    pub fn of(name: &Name) -> Option<Self> {
        Self::split(name).map(|(_, token)| token)
    }

    /// Whether one of the names in a path below some directory is that of an unfinished file. Unfinished files are no part of a tree,
    /// whoever has it.
    // fuzz: names
    pub fn is_in(path: &[u8]) -> bool {
        let mut names = path.split(|&byte| byte == b'/');
        names.any(|name| Name::new(name).is_ok_and(|name| Self::of(&name).is_some()))
    }

    /// Whether `partial` is the name of an unfinished file that will be `name`.
    pub fn is_partial_of(partial: &Name, name: &Name) -> bool {
        Self::split(partial).is_some_and(|(kept, _)| name.as_bytes().starts_with(kept))
    }

    /// What the name of an unfinished file keeps of the final name, and its token.
    fn split(name: &Name) -> Option<(&[u8], Self)> {
        let rest = name.as_bytes().strip_suffix(PARTIAL_SUFFIX.as_bytes())?;
        let begin = rest.len().checked_sub(COMMON_CHARS + FILE_CHARS)?;
        let (named, digits) = rest.split_at(begin);
        let kept = named.strip_prefix(b".")?.strip_suffix(b".").filter(|kept| !kept.is_empty())?;
        let own = digits.get(COMMON_CHARS..)?;
        let is_ours = own.iter().all(|digit| BASE32_DIGITS.contains(digit));
        let token = is_ours.then(|| Self::parse(digits.get(..COMMON_CHARS)?)).flatten()?;
        Some((kept, token))
    }

    /// A temporary name for the unfinished file `name`, with five fresh random characters. If
    /// `name` is long, part of it is dropped so that the result is no longer than `name`: a file
    /// system that accepts `name` may have no room for a longer one.
    pub fn partial(&self, name: &Name) -> Result<Name, FsError> {
        let mut own = [0; FILE_CHARS];
        draw(&mut own)?;
        let length = name.as_bytes().len();
        let kept = if length < WHOLE_NAME_BYTES { length } else { length - (255 - KEPT_BYTES_MAX) };
        let kept = &name.as_bytes()[..kept];
        let bytes = [b".", kept, b".", &self.0, &own, PARTIAL_SUFFIX.as_bytes()].concat();
        Name::new(&bytes).map_err(|error| FsError::Path { path: name.shown().to_string(), error })
    }
}

fn draw(digits: &mut [u8]) -> Result<(), FsError> {
    random(&mut *digits).map_err(|errno| FsError::new("draw a random name", b".", errno))?;
    for digit in digits {
        *digit = BASE32_DIGITS[usize::from(*digit & 31)];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_name_contains_the_token() {
        let token = Token::random().unwrap();
        for name in [&b"a"[..], b".bashrc", b"x.hikyaku", &[b'n'; 255], b"\xff\n"] {
            let partial = token.partial(&Name::new(name).unwrap()).unwrap();
            assert_eq!(Token::of(&partial), Some(token), "{}", partial.shown());
            assert!(Token::is_in(&[b"a/b/", partial.as_bytes()].concat()));
            assert!(Token::is_in(&[partial.as_bytes(), b"/a"].concat()));
            assert!(!Token::is_in(&[b"a/b/", name].concat()));
        }
        assert_eq!(Token::parse(token.as_bytes()), Some(token));
        assert_ne!(Token::random().unwrap(), token);
        for other in [
            ".hikyaku",
            "..abcdefghabcde.hikyaku",
            "a.abcdefghabcde.hikyaku",
            ".a.abcdefghabcd1.hikyaku",
            ".a.abcdefgh.hikyaku",
            ".a.abcdefghabcde.hikyaku2",
            "abcdefghabcde.hikyaku",
        ] {
            assert_eq!(Token::of(&Name::new(other.as_bytes()).unwrap()), None, "{other}");
        }
    }
}
