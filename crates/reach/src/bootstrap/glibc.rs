//! Versions of the GNU C library: what a program needs, and what the remote host has.

use std::fmt;

/// A version such as 2.34.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    major: u32,
    minor: u32,
}

/// Asks for the version. Every login shell runs these words alike.
pub(super) const QUESTION: &str = "getconf GNU_LIBC_VERSION";
/// How the answer begins.
const LIBRARY: &str = "glibc";
/// How the name of a version begins in a program.
const SYMBOLS: &[u8] = b"GLIBC_";
/// The name for relative relocations (`DT_RELR`), and the first library that has it.
const RELATIVE: (&[u8], Version) = (b"GLIBC_ABI_DT_RELR", Version { major: 2, minor: 36 });

impl Version {
    /// The version that a symbol of a program belongs to. Names of other libraries, and private ones, have none.
    pub(super) fn of_symbol(name: &[u8]) -> Option<Self> {
        if name == RELATIVE.0 {
            return Some(RELATIVE.1);
        }
        Self::of_numbers(std::str::from_utf8(name.strip_prefix(SYMBOLS)?).ok()?)
    }

    /// The version in the answer of `getconf`. A start-up file of the shell may print lines before it. `None` if the C
    /// library is another one, or the host has no `getconf`.
    // fuzz: lines
    pub fn answered(text: &[u8]) -> Option<Self> {
        let mut lines = text.rsplit(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        lines.find_map(|line| {
            let (library, version) = std::str::from_utf8(line).ok()?.split_once(' ')?;
            Self::of_numbers(version).filter(|_| library == LIBRARY)
        })
    }

    /// Reads `2.34` or `2.2.5`. Nothing depends on the third number: no program is built for libraries of 2001.
    fn of_numbers(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        Some(Self { major: numbers.next()??, minor: numbers.next()?? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
