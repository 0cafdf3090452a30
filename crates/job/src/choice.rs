//! Which files are left out: `--exclude` and `--include`.

use crate::patterns::{PatternError, compile};
use globset::GlobMatcher;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The patterns as they were written.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Patterns {
    /// Names that are left out (`--exclude`).
    pub exclude: Vec<String>,
    /// Names that are copied all the same (`--include`).
    pub include: Vec<String>,
}

/// The patterns, compiled.
pub struct Choice {
    exclude: Vec<Pattern>,
    include: Vec<Pattern>,
}

/// One pattern: without a slash it is about a name anywhere, with one about a path from the source
/// on; with one at its end about directories only.
struct Pattern {
    matcher: GlobMatcher,
    is_name: bool,
    is_dir: bool,
}

impl Choice {
    /// Compiles the patterns.
    ///
    /// # Errors
    ///
    /// One of them is not a pattern.
    pub fn new(patterns: &Patterns) -> Result<Self, PatternError> {
        let all = |texts: &[String]| {
            texts.iter().map(|text| Pattern::new(text)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self { exclude: all(&patterns.exclude)?, include: all(&patterns.include)? })
    }

    /// Whether what has this path beneath the source is left out.
    pub fn leaves_out(&self, path: &[u8], is_dir: bool) -> bool {
        let any = |all: &[Pattern]| all.iter().any(|pattern| pattern.fits(path, is_dir));
        any(&self.exclude) && !any(&self.include)
    }
}

impl Pattern {
    fn new(text: &str) -> Result<Self, PatternError> {
        let (rest, is_dir) = match text.strip_suffix('/') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let is_name = !rest.contains('/');
        let matcher = compile(rest.strip_prefix('/').unwrap_or(rest))?;
        Ok(Self { matcher, is_name, is_dir })
    }

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
        let choice = Choice::new(&Patterns {
            exclude: ["*.tmp", "/logs/", "a/**/b", "cache/"].map(String::from).to_vec(),
            include: vec!["keep.tmp".to_owned()],
        })
        .unwrap();
        let out = |path: &str, is_dir| choice.leaves_out(path.as_bytes(), is_dir);
        assert!(out("x.tmp", false) && out("deep/x.tmp", false));
        assert!(!out("deep/keep.tmp", false));
        assert!(out("logs", true) && !out("deep/logs", true) && !out("logs", false));
        assert!(out("a/x/y/b", false) && !out("a/x/c", false));
        assert!(out("deep/cache", true));
        assert!(Choice::new(&Patterns { exclude: vec!["[".to_owned()], include: vec![] }).is_err());
    }
}
