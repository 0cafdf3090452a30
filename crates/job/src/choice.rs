//! Which files are left out: `--exclude` and `--include`.

use crate::patterns::{PatternError, compile};
use globset::GlobMatcher;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

/// The names that are left out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Patterns {
    /// Names that are left out (`--exclude`).
    pub exclude: Vec<Pattern>,
    /// Names that are copied all the same (`--include`).
    pub include: Vec<Pattern>,
}

/// One pattern: without a slash it is about a name anywhere, with one about a path from the source
/// on; with one at its end about directories only. In a message it is its text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Pattern {
    text: String,
    matcher: GlobMatcher,
    is_name: bool,
    is_dir: bool,
}

impl Patterns {
    /// Nothing is left out.
    pub const NONE: Self = Self { exclude: Vec::new(), include: Vec::new() };

    /// Whether what has this path beneath the source is left out.
    pub fn leaves_out(&self, path: &[u8], is_dir: bool) -> bool {
        let any = |all: &[Pattern]| all.iter().any(|pattern| pattern.fits(path, is_dir));
        any(&self.exclude) && !any(&self.include)
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        let (rest, is_dir) = match text.strip_suffix('/') {
            Some(rest) => (rest, true),
            None => (&*text, false),
        };
        let is_name = !rest.contains('/');
        let matcher = compile(rest.strip_prefix('/').unwrap_or(rest))?;
        Ok(Self { text, matcher, is_name, is_dir })
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, PatternError> {
        text.to_owned().try_into()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl Pattern {
    fn fits(&self, path: &[u8], is_dir: bool) -> bool {
        if self.is_dir && !is_dir {
            return false;
        }
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        self.matcher.is_match(OsStr::from_bytes(if self.is_name { name } else { path }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_about_names_paths_and_directories() {
        let patterns = Patterns {
            exclude: ["*.tmp", "/logs/", "a/**/b", "cache/"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
            include: vec!["keep.tmp".parse().unwrap()],
        };
        let out = |path: &str, is_dir| patterns.leaves_out(path.as_bytes(), is_dir);
        assert!(out("x.tmp", false) && out("deep/x.tmp", false));
        assert!(!out("deep/keep.tmp", false));
        assert!(out("logs", true) && !out("deep/logs", true) && !out("logs", false));
        assert!(out("a/x/y/b", false) && !out("a/x/c", false));
        assert!(out("deep/cache", true));
        assert!("[".parse::<Pattern>().is_err());
    }
}
