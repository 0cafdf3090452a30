//! What was transferred of a file, recorded for a later attempt.
//!
//! A text file in the user's state folder. Its name is a hash of source and target. The first lines say which version of
//! the source it is about and what the unfinished target is called; each further line is a range that is on the disk of
//! the receiver. It is removed when the file is complete.

use anyhow::{Context, Result};
use hikyaku_console::{At, Folder};
use hikyaku_fs::{escaped, unescaped};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::path::PathBuf;

/// The first line.
const MAGIC: &str = "hikyaku guc 1";

/// What was recorded by earlier attempts, and where to record more.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
}

/// An earlier attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Earlier {
    /// The version of the source.
    pub(crate) version: String,
    /// The name of the unfinished target; its path if it is a server's.
    pub(crate) partial: Vec<u8>,
    /// What is on the disk.
    pub(crate) have: Vec<Range<u64>>,
}

/// Records ranges.
#[derive(Debug)]
pub(crate) struct Recorder(File);

impl Journal {
    /// The journal of a file that is copied from `source` to `target`.
    pub(crate) fn of(source: &str, target: &str) -> Result<Self> {
        let folder = Folder::State.of_user()?.join("guc");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let name = blake3::hash(format!("{source}\0{target}").as_bytes()).to_hex();
        Ok(Self { path: folder.join(&name[..32]) })
    }

    /// What an earlier attempt has recorded; `None` without one, or if it cannot be read.
    pub(crate) fn earlier(&self) -> Option<Earlier> {
        parse(&fs::read_to_string(&self.path).ok()?)
    }

    /// Begins to record.
    pub(crate) fn begin(&self, earlier: &Earlier) -> Result<Recorder> {
        let mut text = format!("{MAGIC}\n{}\n{}\n", earlier.version, escaped(&earlier.partial));
        for range in &earlier.have {
            text.push_str(&line(range));
        }
        // What was recorded before stays until this is there.
        let new = self.path.with_extension("new");
        let write = || {
            fs::write(&new, text)?;
            fs::rename(&new, &self.path)?;
            OpenOptions::new().append(true).open(&self.path)
        };
        write().map(Recorder).at(self.path.display())
    }

    /// The file is complete, or its earlier attempt is of no use.
    pub(crate) fn remove(&self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Nothing of the file is kept. That the journal cannot be removed does no harm: it lists nothing.
    pub(crate) fn forget(&self) {
        let _ = self.remove();
    }
}

impl Recorder {
    /// Records a range that is on the disk.
    pub(crate) fn record(&mut self, range: &Range<u64>) -> Result<()> {
        self.0.write_all(line(range).as_bytes()).context("cannot write the journal")
    }
}

fn line(range: &Range<u64>) -> String {
    format!("{} {}\n", range.start, range.end)
}

// fuzz: none, the user's own file
fn parse(text: &str) -> Option<Earlier> {
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    if lines.next()? != MAGIC {
        return None;
    }
    let (version, partial) = (lines.next()?.to_owned(), unescaped(lines.next()?.as_bytes())?);
    let range = |line: &str| {
        let (start, end) = line.split_once(' ')?;
        let range = start.parse().ok()?..end.parse().ok()?;
        (range.start < range.end).then_some(range)
    };
    Some(Earlier { version, partial, have: lines.map(range).collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_short_does_not_count() {
        let text = "hikyaku guc 1\n5 20260101\n.a.hikyaku\n0 10\n10 20\n20 3";
        let earlier = parse(text).unwrap();
        assert_eq!(earlier.have, [0..10, 10..20]);
        assert_eq!(
            (earlier.version.as_str(), earlier.partial.as_slice()),
            ("5 20260101", &b".a.hikyaku"[..])
        );
    }

    #[test]
    fn what_is_no_journal_is_not_used() {
        for text in
            ["", "hikyaku guc 2\na\nb\n", "hikyaku guc 1\na\n", "hikyaku guc 1\na\nb\n9 9\n"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
