//! Patterns in the last part of a source: `*`, `?`, `[a-z]`, `{a,b}`.

use crate::outcome::lasting;
use crate::paths::split;
use anyhow::Result;
use globset::{GlobBuilder, GlobMatcher};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A folder and which of its entries are meant.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// With a slash at its end, or empty.
    pub(crate) folder: Vec<u8>,
    matcher: GlobMatcher,
}

impl Pattern {
    /// Whether the last part of a path may be meant as a pattern.
    pub(crate) fn may_be(path: &[u8]) -> bool {
        split(path).1.iter().any(|byte| b"*?[{".contains(byte))
    }

    /// The pattern in a path; `None` if its last part has none, or if something has that very name, which `is_there` tells.
    ///
    /// # Errors
    /// It is not a pattern, such as one with an open bracket.
    // fuzz: none, the user's own words
    pub(crate) fn parse(
        path: &[u8],
        is_there: impl FnOnce() -> Result<bool>,
    ) -> Result<Option<Self>> {
        if !Self::may_be(path) || is_there()? {
            return Ok(None);
        }
        let (folder, name) = split(path);
        let text = String::from_utf8_lossy(name);
        let glob = GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| lasting(error.to_string()))?;
        Ok(Some(Self { folder: folder.to_vec(), matcher: glob.compile_matcher() }))
    }

    /// Whether an entry of the folder is meant. As in a shell, a name with a leading dot is not, unless the pattern
    /// begins with a dot.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        let is_hidden = name.starts_with(b".") && !self.matcher.glob().glob().starts_with('.');
        !is_hidden && self.matcher.is_match(OsStr::from_bytes(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_part_is_a_pattern() {
        let parse = |path: &str| Pattern::parse(path.as_bytes(), || Ok(false)).unwrap();
        assert!(parse("/a*/b").is_none() && parse("/a/").is_none());
        let pattern = parse("/a*/b?.{tar,gz}").unwrap();
        assert_eq!(pattern.folder, b"/a*/");
        for (name, want) in [("b1.tar", true), ("b2.gz", true), ("b.tar", false), ("b1.zip", false)]
        {
            assert_eq!(pattern.matches(name.as_bytes()), want, "{name}");
        }
        assert!(!parse("*").unwrap().matches(b".a") && parse(".*").unwrap().matches(b".a"));
        assert!(Pattern::parse(b"/a[", || Ok(false)).is_err());
        assert!(Pattern::parse(b"/a[", || Ok(true)).unwrap().is_none());
    }
}
