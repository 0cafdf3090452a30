//! Taking work out of a group: whole files first, so that files get their names early.

use super::{State, Stock};
use crate::segments::{Run, SEGMENT_BYTES};
use alloc::vec;
use alloc::vec::Vec;
use hikyaku_units::DataSize;

/// The largest number of files in one batch. It bounds the message that asks for them.
const BATCH_FILES_MAX: usize = 4096;

/// The largest number of bytes in one batch (16 MiB), which is what the answer to one request may hold.
const BATCH_BYTES_MAX: u64 = 16 << 20;

/// Taken work, all of one group: free before, owned by the taker now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// A run of one file.
    Part(u32, Run),
    /// Small files, whole.
    Batch(Vec<u32>),
}

/// The file that each server is in the middle of.
pub(crate) struct Cursor<'a> {
    /// That of the taking server.
    pub(crate) own: &'a mut Option<u32>,
    /// Those of the others, sorted.
    pub(crate) others: &'a [u32],
    /// The taking server gets files up to this size in batches.
    pub(crate) small: DataSize,
}

impl Stock {
    /// Takes about `bytes` of work out of a group, at least a segment or a small file. `None` if the group has
    /// no free work.
    ///
    /// The order is: the file that the server is in the middle of, small files in a batch, the next untouched
    /// file, a begun file that no other server is in the middle of. Only then a file is shared: the server
    /// takes from the end of the file of which most is free, while its other server goes on at the front.
    pub(crate) fn take(&mut self, group: usize, bytes: DataSize, cursor: Cursor) -> Option<Piece> {
        let lists = &self.groups[group];
        let own = cursor.own.filter(|file| lists.begun.contains(file));
        if own.is_none() && !lists.small.is_empty() {
            return Some(self.take_small(group, bytes.bytes(), cursor.small));
        }
        let is_others = |file: &&u32| cursor.others.binary_search(file).is_ok();
        let fresh = own.or_else(|| lists.whole.first().copied());
        let fresh = fresh.or_else(|| lists.begun.iter().find(|file| !is_others(file)).copied());
        let count = bytes.bytes().saturating_add(SEGMENT_BYTES / 2) / SEGMENT_BYTES;
        let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        if let Some(file) = fresh {
            *cursor.own = Some(file);
            let run = self.begin(file).free.take_front(count)?;
            self.drop_free(file, &[run]);
            return Some(Piece::Part(file, run));
        }
        let free = |file: &&u32| match &self.files[**file as usize].state {
            State::Begun(begun) => begun.free.count(),
            State::Untouched | State::Done => 0,
        };
        let shared = *lists.begun.iter().max_by_key(free)?;
        let run = self.begin(shared).free.take_back(count)?;
        self.drop_free(shared, &[run]);
        Some(Piece::Part(shared, run))
    }

    /// Takes small files in a batch, or the first one by itself if it is too large for a batch of this server.
    fn take_small(&mut self, group: usize, bytes: u64, small: DataSize) -> Piece {
        let (mut files, mut taken) = (Vec::new(), 0);
        let bytes = bytes.clamp(1, BATCH_BYTES_MAX);
        while taken < bytes && files.len() < BATCH_FILES_MAX {
            let Some(&file) = self.groups[group].small.first() else { break };
            let whole = Run::new(0, self.segments(file));
            let is_in_batch = self.is_within(file, small);
            if !is_in_batch && !files.is_empty() {
                break;
            }
            self.begin(file).free.remove(whole);
            self.drop_free(file, &[whole]);
            if !is_in_batch {
                return Piece::Part(file, whole);
            }
            taken += self.bytes(file, whole);
            files.push(file);
        }
        Piece::Batch(files)
    }

    /// One free segment that would be taken last, to be asked for as a copy by a server that gets files up to `small` in
    /// batches. It stays free.
    pub(crate) fn peek(&self, group: usize, small: DataSize) -> Option<Piece> {
        let lists = &self.groups[group];
        if let Some(&file) = lists.whole.last() {
            let end = self.segments(file);
            return Some(Piece::Part(file, Run::new(end - 1, end)));
        }
        for &file in lists.begun.iter().rev() {
            let State::Begun(begun) = &self.files[file as usize].state else { continue };
            let Some(last) = begun.free.runs().last() else { continue };
            return Some(Piece::Part(file, Run::new(last.end - 1, last.end)));
        }
        lists.small.last().map(|&file| match self.is_within(file, small) {
            true => Piece::Batch(vec![file]),
            false => Piece::Part(file, Run::new(0, 1)),
        })
    }
}
