//! What was fetched of a file, recorded beside it for a later attempt: `.NAME.hikyaku-get`.
//!
//! A text file. Its lines say which version of the file it is about and what the unfinished file is called; each further
//! line is a range that is on the disk. It is replaced as a whole, by a file whose name is known as well
//! (`.NAME.hikyaku-get.new`). It is there before the unfinished file is made, and until the file has its name: its last line
//! says how the file is recognised that is about to get it. So whenever a process is killed, the next one knows what it has
//! left.

use crate::ranges::Piece;
use anyhow::{Context, Result};
use hikyaku_fs::{
    Draft, FilePlace, FsError, Meta, Name, Others, Owners, Replace, escaped, trust, unescaped,
};
use hikyaku_http::Function;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};

/// The first line.
const MAGIC: &str = "hikyaku get 1";
/// The end of its name.
const SUFFIX: &str = ".hikyaku-get";
/// The end of the name of what replaces it.
const NEW_SUFFIX: &str = ".new";
/// Octets of a name at most.
const NAME_BYTES_MAX: usize = 255;
/// Octets of a journal at most: half a million ranges.
const JOURNAL_BYTES_MAX: u64 = 16 << 20;

/// The first word of the line about the complete file.
const COMPLETE: &str = "complete";

/// A source that is not among those of this attempt.
pub(crate) const UNKNOWN_SOURCE: usize = usize::MAX;

/// An earlier attempt, or what this one records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Attempt {
    /// Bytes of the file, if they are known.
    pub(crate) size: Option<u64>,
    /// A strong version of the file, if the server sends one.
    pub(crate) version: Option<String>,
    /// A digest of the sources, to which the numbers in the ranges refer.
    pub(crate) sources: String,
    /// The name of the unfinished file.
    pub(crate) partial: Vec<u8>,
    /// The ranges that are on the disk.
    pub(crate) have: Vec<Piece>,
    /// The identity of the complete file, once it is about to get its name.
    pub(crate) complete: Option<Complete>,
}

/// A complete file, by what a rename leaves as it is: identity, size and modification time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Complete([u64; 5]);

impl From<&Meta> for Complete {
    fn from(meta: &Meta) -> Self {
        let ((device, inode), (seconds, nanos)) = (meta.identity, meta.modified);
        Self([device, inode, meta.size, seconds.cast_unsigned(), nanos.into()])
    }
}

/// The journal of a file.
#[derive(Debug)]
pub(crate) struct Journal {
    spot: FilePlace,
    name: Name,
    /// The name of what replaces it.
    new: Name,
    attempt: Mutex<Attempt>,
}

impl Journal {
    /// The journal of the file that will be at `spot`.
    pub(crate) fn of(spot: &FilePlace) -> Result<Self> {
        let mut name = spot.name.as_bytes().to_vec();
        if name.len() > NAME_BYTES_MAX - 1 - SUFFIX.len() - NEW_SUFFIX.len() {
            // Another long name may begin with the same octets.
            let mut sum = Function::Sha256.begin();
            sum.update(&name);
            name = escaped(&sum.finish().as_ref()[..16]).into_bytes();
        }
        let named = |suffix: &[&str]| {
            let suffix = suffix.concat();
            Name::new(&[b".", &name[..], suffix.as_bytes()].concat())
        };
        let (name, new) = (named(&[SUFFIX])?, named(&[SUFFIX, NEW_SUFFIX])?);
        Ok(Self { spot: spot.clone(), name, new, attempt: Mutex::default() })
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
        self.write(&text(&attempt)).context("cannot write the journal")
    }

    /// Records that this is the complete file, which is to get its name now.
    pub(crate) fn complete(&self, draft: &Draft) -> Result<()> {
        let meta = draft.with(|file| Meta::of(file))?;
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        attempt.complete = Some((&meta).into());
        self.write(&text(&attempt)).context("cannot write the journal")
    }

    /// Whether the file that has the name is the one that an earlier attempt has completed: that was killed before it could
    /// remove its journal.
    pub(crate) fn has_named(&self, earlier: &Attempt) -> bool {
        let found = self.spot.dir.meta(&self.spot.name).ok().flatten();
        found.is_some_and(|found| earlier.complete == Some((&found).into()))
    }

    fn write(&self, text: &str) -> Result<(), FsError> {
        let dir = &self.spot.dir;
        let mut file = match dir.create(&self.new) {
            // An earlier attempt has left it.
            Err(_) if dir.meta(&self.new)?.is_some() => {
                dir.remove_file(&self.new)?;
                dir.create(&self.new)
            }
            created => created,
        }?;
        let written = file.write_all(text.as_bytes());
        written.map_err(|error| FsError::io("write", self.new.as_bytes(), &error))?;
        dir.rename(&self.new, dir, &self.name, Replace::Allowed)
    }

    /// The file is complete, or its earlier attempt is of no use.
    pub(crate) fn remove(&self) -> Result<()> {
        for name in [&self.new, &self.name] {
            if self.spot.dir.meta(name)?.is_some() {
                self.spot.dir.remove_file(name).context("cannot remove the journal")?;
            }
        }
        Ok(())
    }
}

fn text(attempt: &Attempt) -> String {
    let size = attempt.size.map_or_else(|| "-".to_owned(), |size| size.to_string());
    let version = attempt.version.as_deref().unwrap_or("-");
    let (sources, partial) = (&attempt.sources, escaped(&attempt.partial));
    let mut text = format!("{MAGIC}\n{size}\n{version}\n{sources}\n{partial}\n");
    for Piece { range, source } in &attempt.have {
        let source = if *source == UNKNOWN_SOURCE { -1 } else { *source as i64 };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {} {source}", range.start, range.end);
    }
    if let Some(Complete(numbers)) = attempt.complete {
        let _ = writeln!(text, "{COMPLETE} {}", numbers.map(|number| number.to_string()).join(" "));
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
    let (mut have, mut complete) = (Vec::new(), None);
    for line in lines {
        match line.strip_prefix(COMPLETE) {
            Some(rest) => {
                let numbers = rest.split_whitespace().map(|word| word.parse().ok());
                let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
                complete = Some(Complete(numbers.try_into().ok()?));
            }
            None => have.push(piece(line)?),
        }
    }
    Some(Attempt {
        size: match size.as_str() {
            "-" => None,
            size => Some(size.parse().ok()?),
        },
        version: Some(version).filter(|version| version != "-"),
        sources,
        partial: unescaped(partial.as_bytes())?,
        have,
        complete,
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
            partial: b".\xff.hikyaku".to_vec(),
            have,
            complete: Some(Complete([1, 2, 3, u64::MAX, 5])),
        };
        assert_eq!(parse(&text(&attempt)), Some(attempt.clone()));
        let unknown =
            Attempt { size: None, version: None, have: Vec::new(), complete: None, ..attempt };
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
