//! The keys of clients that may come in.

use anyhow::{Context, Result, anyhow};
use hikyaku_crypto::Fingerprint;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A list of keys: a fingerprint a line, then a comment.
#[derive(Debug, Default)]
pub(crate) struct Authorized {
    keys: BTreeSet<Fingerprint>,
}

impl Authorized {
    /// Reads a list.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| {
                format!("try: put the keys of clients into {}, a line each", path.display())
            })
            .with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).map_err(|(line, error)| anyhow!("{}:{line}: {error}", path.display()))
    }

    // fuzz: none, the administrator's own file
    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut keys = BTreeSet::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = line.split_whitespace().next().unwrap_or_default();
            let key: Fingerprint = key.parse().map_err(|error| (number, format!("{error}")))?;
            keys.insert(key);
        }
        Ok(Self { keys })
    }

    /// Whether the holder of this key may come in.
    pub(crate) fn has(&self, key: &Fingerprint) -> bool {
        self.keys.contains(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_key_and_a_comment() {
        let key = Fingerprint::of(b"");
        let text = format!("# clients\n\n  {key} anna@lab\n");
        let list = Authorized::parse(&text).unwrap();
        assert!(list.has(&key));
        assert!(!list.has(&Fingerprint::of(b"x")));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        assert_eq!(Authorized::parse("\nnonsense\n").unwrap_err().0, 2);
    }
}
