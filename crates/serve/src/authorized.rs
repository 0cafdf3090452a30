//! The keys of clients that may come in.

use anyhow::{Context, Result, anyhow};
use hikyaku_crypto::Fingerprint;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The file with the keys. It is read again whenever it has changed, so that a key that is removed from it is refused from
/// then on.
#[derive(Debug)]
pub(crate) struct Authorized {
    path: PathBuf,
    state: Mutex<(Option<Stamp>, Keys)>,
}

/// A file's time and size.
type Stamp = (SystemTime, u64);

/// A list of keys: a fingerprint a line, then a comment.
#[derive(Debug, Default)]
struct Keys(BTreeSet<Fingerprint>);

impl Authorized {
    /// Reads a list.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let (stamp, keys) = (stamp(path), Keys::read(path)?);
        Ok(Self { path: path.to_owned(), state: Mutex::new((stamp, keys)) })
    }

    /// Whether the holder of this key may come in. If the file was changed and cannot be read any more, the last list
    /// holds, and standard error tells why.
    pub(crate) fn has(&self, key: &Fingerprint) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamp(&self.path);
        if now != state.0 {
            match Keys::read(&self.path) {
                Ok(keys) => state.1 = keys,
                Err(error) => eprintln!("hikyaku: {error:#}; the last list of keys holds"),
            }
            state.0 = now;
        }
        state.1.0.contains(key)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

impl Keys {
    fn read(path: &Path) -> Result<Self> {
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
        Ok(Self(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_key_and_a_comment() {
        let key = Fingerprint::of(b"");
        let keys = Keys::parse(&format!("# clients\n\n  {key} anna@lab\n")).unwrap();
        assert!(keys.0.contains(&key) && keys.0.len() == 1);
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        assert_eq!(Keys::parse("\nnonsense\n").unwrap_err().0, 2);
    }

    #[test]
    fn a_change_of_the_file_counts_at_once() {
        let path = std::env::temp_dir().join(format!("hikyaku-authorized-{}", std::process::id()));
        let (one, two) = (Fingerprint::of(b"1"), Fingerprint::of(b"2"));
        fs::write(&path, format!("{one}\n")).unwrap();
        let list = Authorized::read(&path).unwrap();
        assert!(list.has(&one) && !list.has(&two));
        fs::write(&path, format!("{two} and a comment\n")).unwrap();
        assert!(!list.has(&one) && list.has(&two));
        fs::write(&path, "nonsense").unwrap();
        assert!(list.has(&two), "the last list holds");
        fs::remove_file(&path).unwrap();
        assert!(list.has(&two));
    }
}
