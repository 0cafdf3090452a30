//! What was fetched of a file, recorded beside it for a later attempt: `.NAME.hikyaku-get`.
//!
//! A text file. Its lines say which version of the file it is about and what the unfinished file is called; each further
//! line is a range that is on the disk. It is replaced as a whole, and removed when the file is complete.

use crate::ranges::Piece;
use anyhow::{Context, Result};
use hikyaku_fs::{FilePlace, Name, Others, Owners, Replace, trust};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};

/// The first line.
const MAGIC: &str = "hikyaku get 1";
/// The end of its name.
const SUFFIX: &str = ".hikyaku-get";
/// Octets of a journal at most: half a million ranges.
const JOURNAL_BYTES_MAX: u64 = 16 << 20;

/// A source that is not among those of this attempt.
pub(crate) const UNKNOWN_SOURCE: usize = usize::MAX;

/// An earlier attempt, or what this one records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Attempt {
    /// Bytes of the file, if they are known.
    pub(crate) size: Option<u64>,
    /// A strong version of the file, if the server told one.
    pub(crate) version: Option<String>,
    /// What the sources were, as a digest: the numbers in the ranges are about these.
    pub(crate) sources: String,
    /// The name of the unfinished file.
    pub(crate) partial: String,
    /// What is on the disk.
    pub(crate) have: Vec<Piece>,
}

/// The journal of a file.
#[derive(Debug)]
pub(crate) struct Journal {
    spot: FilePlace,
    name: Name,
    attempt: Mutex<Attempt>,
}

impl Journal {
    /// The journal of the file that will be at `spot`.
    pub(crate) fn of(spot: &FilePlace) -> Result<Self> {
        let name = spot.name.as_bytes();
        // Names have 255 octets at most.
        let kept = &name[..name.len().min(255 - 1 - SUFFIX.len())];
        let name = Name::new(&[b".", kept, SUFFIX.as_bytes()].concat())?;
        Ok(Self { spot: spot.clone(), name, attempt: Mutex::default() })
    }

    /// What an earlier attempt of this user has recorded; `None` without one, or if it cannot be read.
    pub(crate) fn earlier(&self) -> Option<Attempt> {
        let file = self.spot.dir.read(&self.name.clone().into()).ok()?;
        // In a directory of several users anybody may have made a file of this name.
        trust(&file, Owners::User, Others::Read).ok()?;
        let mut text = String::new();
        file.take(JOURNAL_BYTES_MAX).read_to_string(&mut text).ok()?;
        parse(&text)
    }

    /// Begins to record.
    pub(crate) fn begin(&self, attempt: Attempt) -> Result<()> {
        let have = attempt.have.clone();
        *self.attempt.lock().unwrap_or_else(PoisonError::into_inner) = attempt;
        self.record(&have)
    }

    /// Records what is on the disk, in place of what was recorded before.
    pub(crate) fn record(&self, have: &[Piece]) -> Result<()> {
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        attempt.have = have.to_vec();
        let text = text(&attempt);
        let draft = self.spot.beside(&self.name)?;
        let written = draft.with(|file| {
            let mut file: &std::fs::File = file;
            let write = file.write_all(text.as_bytes());
            write.map_err(|error| hikyaku_fs::FsError::io("write", self.name.as_bytes(), &error))
        });
        written.context("cannot write the journal")?;
        draft.name(Replace::Allowed).context("cannot write the journal")?;
        Ok(())
    }

    /// The file is complete, or its earlier attempt is of no use.
    pub(crate) fn remove(&self) -> Result<()> {
        if self.spot.dir.meta(&self.name)?.is_some() {
            self.spot.dir.remove_file(&self.name).context("cannot remove the journal")?;
        }
        Ok(())
    }
}

fn text(attempt: &Attempt) -> String {
    let size = attempt.size.map_or_else(|| "-".to_owned(), |size| size.to_string());
    let version = attempt.version.as_deref().unwrap_or("-");
    let (sources, partial) = (&attempt.sources, &attempt.partial);
    let mut text = format!("{MAGIC}\n{size}\n{version}\n{sources}\n{partial}\n");
    for Piece { range, source } in &attempt.have {
        let source = if *source == UNKNOWN_SOURCE { -1 } else { *source as i64 };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {} {source}", range.start, range.end);
    }
    text
}

// fuzz: none, a file that nobody but this user can have written
fn parse(text: &str) -> Option<Attempt> {
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    if lines.next()? != MAGIC {
        return None;
    }
    let mut word = || Some(lines.next()?.to_owned());
    let (size, version, sources, partial) = (word()?, word()?, word()?, word()?);
    let piece = |line: &str| {
        let mut words = line.split(' ');
        let range = words.next()?.parse().ok()?..words.next()?.parse().ok()?;
        let source: i64 = words.next()?.parse().ok()?;
        let source = usize::try_from(source).unwrap_or(UNKNOWN_SOURCE);
        (range.start < range.end).then_some(Piece { range, source })
    };
    Some(Attempt {
        size: match size.as_str() {
            "-" => None,
            size => Some(size.parse().ok()?),
        },
        version: Some(version).filter(|version| version != "-"),
        sources,
        partial,
        have: lines.map(piece).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_read_as_it_was_written() {
        let have = vec![
            Piece { range: 0..10, source: 1 },
            Piece { range: 20..30, source: UNKNOWN_SOURCE },
        ];
        let attempt = Attempt {
            size: Some(30),
            version: Some("\"a b\"".to_owned()),
            sources: "x".to_owned(),
            partial: ".a.hikyaku".to_owned(),
            have,
        };
        assert_eq!(parse(&text(&attempt)), Some(attempt.clone()));
        let unknown = Attempt { size: None, version: None, have: Vec::new(), ..attempt };
        assert_eq!(parse(&text(&unknown)), Some(unknown));
    }

    #[test]
    fn what_is_no_journal_is_not_used() {
        for text in [
            "",
            "hikyaku get 2\n1\n-\nx\ny\n",
            "hikyaku get 1\n1\n-\nx\n",
            "hikyaku get 1\n1\n-\nx\ny\n9 9 0\n",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
