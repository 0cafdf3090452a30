//! Takes over a file that another program has left unfinished.
//!
//! The version of its file is unknown. So its last bytes are compared with the server's, before the file is touched.
//! Then it becomes the unfinished file of this program, recorded in the journal as one that was interrupted; a digest of the whole
//! is compared at the end as ever. A file without a whole segment is compared and replaced.

use super::first::tell_waiting;
use super::{Tools, Unfetched};
use crate::run::lasting;
use crate::target::{Existing, Spot, discard};
use crate::unfinished::{ANEW, Unfinished};
use anyhow::{Context, Result, bail, ensure};
use hikyaku_console::with_remedy;
use hikyaku_fs::{Meta, Replace};
use hikyaku_http::{Attempts, Fault, Known, Source, Turn};
use hikyaku_job::Opened;
use hikyaku_transfer::{FileRecord, Geometry, Record, SEGMENT, SegmentHash, SegmentIndex, Version};
use hikyaku_units::DataSize;
use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Segments of an unfinished file that are compared with the server's.
const COMPARED_SEGMENTS: usize = 4;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// An unfinished file that has the server's bytes where they were compared.
pub(super) struct Continued {
    unfinished: Unfinished,
    /// Segments of which all bytes exist, in order.
    segments: Vec<SegmentIndex>,
    geometry: Geometry,
}

/// Finds the unfinished file of a place, and compares it with the file that is known of the server. `None` if there is none, or if
/// nothing of it is of use: the file of that name may be replaced then.
pub(super) fn compared(
    tools: &Tools<'_>,
    spot: &Spot,
    (source, known): (&Source, &Known),
    total: u64,
) -> Result<Option<Continued>, Unfetched> {
    let local = Unfetched::Local;
    let Some(unfinished) = Unfinished::find(&spot.place, total).map_err(local)? else {
        return Ok(None);
    };
    let geometry = Geometry::new(total).context("the file is too large").map_err(local)?;
    let holes = unfinished.parts.iter().filter_map(|part| geometry.hole(part.clone()));
    let segments: Vec<SegmentIndex> =
        holes.flat_map(|run| (run.first.0..).take(run.count as usize).map(SegmentIndex)).collect();
    let is_kept = total > COMPARED_SEGMENTS as u64 * SEGMENT && !segments.is_empty();
    let ranges: Vec<Range<u64>> = match is_kept {
        true => samples(&segments).filter_map(|index| geometry.range(index)).collect(),
        // Less than the least part of a file that is kept.
        false => unfinished.parts.clone(),
    };
    let name = unfinished.name.shown().to_string();
    for range in ranges {
        let at = differs(tools, (source, known), &unfinished, range)?;
        if let Some(at) = at {
            let text = format!("{name} is not the beginning of this file: byte {at} differs");
            return Err(local(with_remedy(lasting(text), Some(ANEW))));
        }
    }
    // The place becomes free, or has a file that was compared or is empty.
    let is_moved = is_kept && unfinished.name == spot.place.name;
    tools.existing.set(if is_moved { Existing::Refused } else { Existing::Replaced });
    Ok(is_kept.then_some(Continued { unfinished, segments, geometry }))
}

/// The segments that are compared: the last one of each of the last parts, and those before the last one.
fn samples(segments: &[SegmentIndex]) -> impl Iterator<Item = SegmentIndex> {
    let is_last =
        |at: &usize| segments.get(at + 1).is_none_or(|next| next.0 != segments[*at].0 + 1);
    let all = || (0..segments.len()).rev();
    let mut chosen = BTreeSet::new();
    for at in all().filter(is_last).chain(all()) {
        if chosen.len() < COMPARED_SEGMENTS {
            chosen.insert(segments[at]);
        }
    }
    chosen.into_iter()
}

/// The first byte of the range that the server has otherwise.
fn differs(
    tools: &Tools<'_>,
    (source, known): (&Source, &Known),
    unfinished: &Unfinished,
    range: Range<u64>,
) -> Result<Option<u64>, Unfetched> {
    let (mut at, mut attempts) = (range.start, Attempts::new(tools.conduct.retry));
    while at < range.end {
        let before = at;
        match read_part(tools, (source, known), at..range.end, unfinished) {
            Ok(Read::Differs(at)) => return Ok(Some(at)),
            Ok(Read::Equal(to)) if to > before => {
                at = to;
                attempts.succeed();
            }
            Ok(Read::Equal(_)) => return Err(Unfetched::Fault(Fault::Closed)),
            Err(Unfetched::Fault(fault)) => {
                let Some(wait) = attempts.next(&fault, tools.conduct.retries) else {
                    return Err(Unfetched::Fault(fault));
                };
                tell_waiting(tools, fault, wait);
                tools.interrupted.sleep(wait);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// How far the bytes of an answer are those of the file.
enum Read {
    Equal(u64),
    Differs(u64),
}

fn read_part(
    tools: &Tools<'_>,
    (source, known): (&Source, &Known),
    range: Range<u64>,
    unfinished: &Unfinished,
) -> Result<Read, Unfetched> {
    let (fault, stop) = (Unfetched::Fault, tools.interrupted);
    let (answer, range) =
        source.part(tools.client, &range, known, (stop, Turn::AtOnce)).map_err(fault)?;
    let (mut connection, mut at) = (answer.connection, range.start);
    let mut ours = vec![0; BUFFER_BYTES];
    while at < range.end {
        let room = usize::try_from(range.end - at).unwrap_or(BUFFER_BYTES).min(BUFFER_BYTES);
        let room = tools.limit.piece_bytes(room);
        let theirs = connection.read(room).map_err(fault)?;
        let length = theirs.len();
        if length == 0 {
            return Err(fault(Fault::Closed));
        }
        let read = unfinished.file.read_exact_at(&mut ours[..length], at);
        read.context("cannot read the unfinished file").map_err(Unfetched::Local)?;
        let pairs = theirs.iter().zip(&ours[..length]);
        if let Some(wrong) = pairs.into_iter().position(|(one, other)| one != other) {
            return Ok(Read::Differs(at + wrong as u64));
        }
        at += length as u64;
        tools.limit.wait(length as u64, || stop.is_set());
    }
    tools.client.keep(connection);
    Ok(Read::Equal(at))
}

impl Continued {
    /// Makes the file the unfinished one of this program, under the version with which the download records it.
    pub(super) fn take_over(
        self,
        tools: &Tools<'_>,
        spot: &Spot,
        (url, version): (&str, Version),
    ) -> Result<()> {
        let (store, opened) = spot.open(url)?;
        ensure!(
            opened.journal.is_open(),
            lasting(
                "nothing can be continued without a folder for the state of this program"
                    .to_owned()
            )
        );
        let (name, token) = (&spot.place.name, opened.journal.token());
        discard(&*store, &opened);
        let partial = token.partial(name)?;
        let record = FileRecord {
            path: name.as_bytes().to_vec(),
            partial: partial.as_bytes().to_vec(),
            size: self.geometry.size(),
            version,
        };
        // Recorded before it has the name, so that a file under that name is known at any moment.
        opened.journal.append(&[Record::File(record)]);
        self.record(tools, &opened, name.as_bytes())?;
        let taken = || -> Result<()> {
            let (dir, from) = (&spot.place.dir, &self.unfinished.name);
            dir.rename(from, dir, &partial, Replace::Refused)?;
            let checked = self.sync(spot, &opened, partial.as_bytes());
            if checked.is_err() {
                dir.rename(&partial, dir, from, Replace::Refused)?;
            }
            checked
        };
        taken().inspect_err(|_| opened.journal.remove())?;
        if let Some(control) = &self.unfinished.control {
            spot.place.dir.remove_file(control)?;
        }
        let bytes = DataSize::from_bytes(self.unfinished.bytes());
        let from = self.unfinished.name.shown();
        tools.show.remark(format!("{bytes} of {from} are continued"));
        Ok(())
    }

    /// Records the hashes of the segments.
    fn record(&self, tools: &Tools<'_>, opened: &Opened, path: &[u8]) -> Result<()> {
        let mut bytes = vec![0; SEGMENT as usize];
        for &first in &self.segments {
            let range = self.geometry.range(first).unwrap_or_default();
            let bytes = &mut bytes[..(range.end - range.start) as usize];
            self.unfinished.file.read_exact_at(bytes, range.start)?;
            let hashes = Vec::from_iter(SegmentHash::new(self.geometry, first, bytes));
            let path = path.to_vec();
            opened.journal.append(&[Record::Segments { path, first, hashes }]);
            if tools.interrupted.is_set() {
                opened.journal.remove();
                bail!(hikyaku_console::Kept::Everything);
            }
        }
        Ok(())
    }

    /// Brings the file to the disk, and records it as synced. The file must be the user's own.
    fn sync(&self, spot: &Spot, opened: &Opened, partial: &[u8]) -> Result<()> {
        let length = opened.journal.length();
        let draft = spot.place.take_up(partial)?.context("the file is not this user's own")?;
        draft.keep();
        draft.sync()?;
        let modified = draft.with(|file| Meta::of(file))?.modified;
        opened.journal.synced(length, vec![(spot.place.name.as_bytes().to_vec(), modified)]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_last_parts_are_compared() {
        let of = |all: &[u32]| {
            let all: Vec<_> = all.iter().copied().map(SegmentIndex).collect();
            samples(&all).map(|index| index.0).collect::<Vec<_>>()
        };
        assert_eq!(of(&[0, 1, 2, 3, 4, 5]), [2, 3, 4, 5]);
        assert_eq!(of(&[0, 1, 4, 5, 8, 9]), [1, 5, 8, 9]);
        assert_eq!(of(&[0, 2, 4, 6, 8]), [2, 4, 6, 8]);
        assert_eq!(of(&[7]), [7]);
    }
}
