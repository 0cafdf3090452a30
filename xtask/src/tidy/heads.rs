//! Every Rust file begins by saying what it is.

use super::Finding;
use crate::source::Source;

/// The first line of a file is a `//!` with words behind it.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| {
            let head = source.text.lines().next().and_then(|line| line.strip_prefix("//!"));
            head.is_none_or(|words| words.trim().is_empty())
        })
        .map(|source| Finding::error(&source.path, 1, "does not begin with a `//!` head"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_head_is_seen() {
        for text in ["use a;\n", "", "//!\n//! late", "// plain\n"] {
            assert_eq!(check(&[Source::new("a.rs", text)]).len(), 1, "{text:?}");
        }
        assert!(check(&[Source::new("a.rs", "//! What this is.\n")]).is_empty());
    }
}
