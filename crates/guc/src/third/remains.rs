//! What was copied of a file between two servers, recorded in the journal of the copy for a later attempt. The data do not
//! pass here, so that a segment counts when the receiving server has stored all of it, and its hash is not known.

use anyhow::Result;
use hikyaku_fs::Token;
use hikyaku_gridftp::{Facts, Kind};
use hikyaku_job::{Base, JournalFile, Opened, Place};
use hikyaku_transfer::{
    FileRecord, Geometry, Part, Record, Remains, SEGMENT, SegmentHash, SegmentIndex, Version,
};
use std::ops::Range;

/// In place of a hash.
const UNKNOWN: SegmentHash = SegmentHash([0; 32]);

/// The journal of a file.
pub(super) struct Journal {
    opened: Opened,
    version: Version,
    /// The path of the file below the root of the server.
    path: Vec<u8>,
}

/// An unfinished file at a server.
pub(super) struct Begun {
    /// Its path.
    pub(super) partial: Vec<u8>,
    /// The ranges that are in it.
    pub(super) have: Vec<Range<u64>>,
}

/// What an earlier attempt has left at a server.
pub(super) enum Left {
    Usable(Begun),
    /// The path of an unfinished file of another version of the source, or of one in which something is missing.
    Stale(Vec<u8>),
    Nothing,
}

/// Records ranges.
pub(super) struct Recorder<'j> {
    journal: &'j Journal,
    geometry: Geometry,
    /// The stored ranges, in order. They do not touch.
    have: Vec<Range<u64>>,
}

impl Journal {
    /// Of a file of this version that is copied from `source` to `target`, which has this path at its server.
    pub(super) fn of(
        (source, target): (&str, &str),
        (path, version): (&[u8], &str),
    ) -> Result<Self> {
        let place = Place::of(source, Base::Address(target), None);
        let opened = JournalFile::open_at_once(&place, source)?;
        let version = Version(*blake3::hash(version.as_bytes()).as_bytes());
        let path = path.strip_prefix(b"/").unwrap_or(path).to_vec();
        Ok(Self { opened, version, path })
    }

    /// What an earlier attempt has left. `ask` asks the server for facts.
    pub(super) fn left(
        &self,
        (dir, size): (&[u8], u64),
        ask: impl FnOnce(&[u8]) -> Result<Option<Facts>>,
    ) -> Result<Left> {
        let part = match self.opened.remains.get(&self.path) {
            Some(Remains::Part(part)) if Token::is_in(&part.record.partial) => part,
            _ => return Ok(Left::Nothing),
        };
        let partial = [dir, &part.record.partial].concat();
        let have = ranges(part);
        let end = have.last().map_or(0, |range| range.end);
        let has_all = |facts: &Facts| facts.kind == Kind::File && facts.size >= Some(end);
        let is_same = part.record.version == self.version && part.record.size == size;
        if is_same && ask(&partial)?.as_ref().is_some_and(has_all) {
            return Ok(Left::Usable(Begun { partial, have }));
        }
        Ok(Left::Stale(partial))
    }

    /// Begins to record a file of this size, of which the server has `have` under the temporary name `partial`. `None` if the
    /// file is larger than any.
    pub(super) fn begin(
        &self,
        (partial, size): (&[u8], u64),
        have: &[Range<u64>],
    ) -> Option<Recorder<'_>> {
        let geometry = Geometry::new(size)?;
        let (path, partial) = (self.path.clone(), partial.to_vec());
        let record = FileRecord { path, partial, size, version: self.version };
        self.opened.journal.append(&[Record::File(record)]);
        let mut recorder = Recorder { journal: self, geometry, have: Vec::new() };
        have.iter().for_each(|range| recorder.record(range));
        Some(recorder)
    }

    /// The file is complete, or nothing of it is kept.
    pub(super) fn remove(&self) {
        self.opened.journal.remove();
    }
}

impl Recorder<'_> {
    /// Records a range that the server has stored, as far as it makes segments whole.
    pub(super) fn record(&mut self, range: &Range<u64>) {
        let mut all = range.clone();
        self.have.retain(|other| {
            let touches = other.start <= all.end && all.start <= other.end;
            if touches {
                all = all.start.min(other.start)..all.end.max(other.end);
            }
            !touches
        });
        self.have.push(all.clone());
        let size = self.geometry.size();
        let whole = |at: u64| if at == size { at.div_ceil(SEGMENT) } else { at / SEGMENT };
        // Segments that touch the range and are whole by now.
        let first = (range.start / SEGMENT).max(all.start.div_ceil(SEGMENT));
        let last = whole(all.end).min(range.end.div_ceil(SEGMENT));
        let count = usize::try_from(last.saturating_sub(first)).unwrap_or(0);
        if let Ok(first) = u32::try_from(first)
            && count > 0
        {
            let (path, first) = (self.journal.path.clone(), SegmentIndex(first));
            let hashes = vec![UNKNOWN; count];
            self.journal.opened.journal.append(&[Record::Segments { path, first, hashes }]);
        }
    }
}

/// The ranges of a file that were recorded, in order.
fn ranges(part: &Part) -> Vec<Range<u64>> {
    let file = part.claimed.file();
    let run = |(first, hashes): (SegmentIndex, Vec<SegmentHash>)| {
        let last = SegmentIndex(first.0 + (hashes.len() as u32).saturating_sub(1));
        Some(file.range(first)?.start..file.range(last)?.end)
    };
    let runs = part.proven.runs().into_iter().chain(part.claimed.runs());
    let mut ranges: Vec<_> = runs.filter_map(run).collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_job::Attempt;
    use std::path::Path;

    fn journal(folder: &Path) -> Journal {
        let place = Place::of("ftp://a/f", Base::Address("ftp://b/f"), None);
        let opened = JournalFile::open_in(folder, &place, "ftp://a/f").unwrap();
        assert_ne!(opened.attempt, Attempt::Beside);
        Journal { opened, version: Version([7; 32]), path: b"f".to_vec() }
    }

    #[expect(clippy::single_range_in_vec_init, reason = "one range of bytes is meant")]
    #[test]
    fn whole_segments_are_recorded_however_the_ranges_lie() {
        let folder = std::env::temp_dir().join(format!("guc-remains-{}", std::process::id()));
        let size = 5 * SEGMENT + 100;
        let half = SEGMENT / 2;
        let partial = b".f.0123456789abcdef0123456789abcdef.hikyaku";
        for (recorded, wanted) in [
            (vec![0..half], Vec::new()),
            (vec![0..half, half..2 * SEGMENT + 1], vec![0..2 * SEGMENT]),
            (vec![half..SEGMENT, 3 * SEGMENT..size, 0..half], vec![0..SEGMENT, 3 * SEGMENT..size]),
            (vec![0..size], vec![0..size]),
        ] {
            let first = journal(&folder);
            let mut recorder = first.begin((partial, size), &[]).unwrap();
            recorded.iter().for_each(|range| recorder.record(range));
            drop(first);
            let later = journal(&folder);
            let Some(Remains::Part(part)) = later.opened.remains.get(&b"f"[..]) else {
                panic!("nothing is recorded")
            };
            assert_eq!(ranges(part), wanted, "{recorded:?}");
            later.remove();
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
