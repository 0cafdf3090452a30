//! The stock of work: every file, what of it is free to be asked for, and what is proven.
//!
//! Each segment of a file is in exactly one of three places: free, proven, or owned by a part of an ask (see
//! [`crate::ask`]). Files with the same set of replicas form a group. A file costs about 50 bytes while
//! nothing of it has been asked for and after it is done; only files in between have lists of segments.

use crate::ids::{FileId, ServerSet};
use crate::segments::{Run, SEGMENT_BYTES, Segments};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use hikyaku_units::DataSize;

mod take;

pub(crate) use take::{Cursor, Piece};

/// A file.
#[derive(Debug)]
struct File {
    size: DataSize,
    group: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Everything is free.
    Untouched,
    /// Something is asked for or proven.
    Begun(Box<Begun>),
    /// Everything is proven.
    Done,
}

#[derive(Debug)]
struct Begun {
    free: Segments,
    proven: Segments,
    /// Segments from here on are not free, even if an ask returns them.
    reach: u32,
}

/// The files with one set of replicas.
#[derive(Debug)]
pub(crate) struct Group {
    replicas: ServerSet,
    free_bytes: u64,
    /// Untouched small files.
    small: BTreeSet<u32>,
    /// Other untouched files.
    whole: BTreeSet<u32>,
    /// Begun files of which something is free.
    begun: BTreeSet<u32>,
}

impl Group {
    /// The servers with a replica, alive or not.
    pub(crate) const fn replicas(&self) -> &ServerSet {
        &self.replicas
    }

    /// The bytes that are free to be asked for.
    pub(crate) const fn free_bytes(&self) -> u64 {
        self.free_bytes
    }
}

/// The effect of a proof on its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Proof {
    /// The file has unproven segments, or had none before.
    Part,
    /// These were the last unproven segments.
    Whole,
}

/// All files.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    files: Vec<File>,
    groups: Vec<Group>,
    by_replicas: BTreeMap<ServerSet, u32>,
    /// Files up to this size are in the lists of small files: some server takes them in batches.
    small_file: DataSize,
    unfinished: usize,
    free_bytes: u64,
    /// The sum of all sizes. `free_bytes` never exceeds it, so it does not overflow either.
    total_bytes: u64,
}

impl Stock {
    /// A server takes files up to `size` in batches.
    pub(crate) fn allow_small(&mut self, size: DataSize) {
        self.small_file = self.small_file.max(size);
    }

    /// Adds a file. An empty one is done from the start. `None`: the file has more than 2^32 - 1 segments, there
    /// are as many files, or all files together have more than 2^64 - 1 bytes.
    pub(crate) fn add(&mut self, size: DataSize, replicas: ServerSet) -> Option<FileId> {
        u32::try_from(size.bytes().div_ceil(SEGMENT_BYTES)).ok()?;
        let index = u32::try_from(self.files.len()).ok()?;
        self.total_bytes = self.total_bytes.checked_add(size.bytes())?;
        let group = self.group_of(replicas);
        let is_empty = size == DataSize::ZERO;
        let state = if is_empty { State::Done } else { State::Untouched };
        self.files.push(File { size, group, state });
        if !is_empty {
            self.unfinished += 1;
            self.list(index);
            self.count_free(group, size.bytes());
        }
        Some(FileId(index))
    }

    fn group_of(&mut self, replicas: ServerSet) -> u32 {
        *self.by_replicas.entry(replicas).or_insert_with(|| {
            let (small, whole, begun) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            self.groups.push(Group { replicas, free_bytes: 0, small, whole, begun });
            // There are at most as many groups as files, and files fit a u32.
            (self.groups.len() - 1) as u32
        })
    }

    /// All groups, by their index.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The number of files that are not done.
    pub(crate) const fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// The bytes of all groups that are free to be asked for.
    pub(crate) const fn free_bytes(&self) -> u64 {
        self.free_bytes
    }

    /// Whether the file is there and not done.
    pub(crate) fn is_unfinished(&self, file: u32) -> bool {
        self.files.get(file as usize).is_some_and(|file| !matches!(file.state, State::Done))
    }

    /// Whether the file is there and empty.
    pub(crate) fn is_empty_file(&self, file: FileId) -> bool {
        self.files.get(file.0 as usize).is_some_and(|file| file.size == DataSize::ZERO)
    }

    /// The group of a file, which must be there.
    pub(crate) fn group(&self, file: u32) -> &Group {
        &self.groups[self.files[file as usize].group as usize]
    }

    /// The index of the group of a file, which must be there.
    pub(crate) fn group_index(&self, file: u32) -> usize {
        self.files[file as usize].group as usize
    }

    /// Whether the file, which must be there, has at most this size.
    pub(crate) fn is_within(&self, file: u32, size: DataSize) -> bool {
        self.files[file as usize].size <= size
    }

    /// The unproven parts of a run of a file, which must exist.
    pub(crate) fn unproven(&self, file: u32, run: Run) -> Vec<Run> {
        match &self.files[file as usize].state {
            State::Untouched => vec![run],
            State::Begun(begun) => begun.proven.missing(run),
            State::Done => Vec::new(),
        }
    }

    /// The files that are not done, with their replicas.
    pub(crate) fn open_files(&self) -> impl Iterator<Item = (FileId, &ServerSet)> {
        let open = (0u32..).zip(&self.files).filter(|(_, file)| !matches!(file.state, State::Done));
        open.map(|(index, file)| (FileId(index), &self.groups[file.group as usize].replicas))
    }

    /// The bytes of a run of a file, which must be there.
    pub(crate) fn bytes(&self, file: u32, run: Run) -> u64 {
        run.bytes(self.files[file as usize].size)
    }

    /// The byte range of a run of a file, which must be there.
    pub(crate) fn range(&self, file: u32, run: Run) -> Range<u64> {
        let from = u64::from(run.first) * SEGMENT_BYTES;
        from..from + self.bytes(file, run)
    }

    /// The segments that lie completely within a range of bytes; the last one ends with its file.
    fn run(&self, file: u32, bytes: &Range<u64>) -> Run {
        let size = self.files[file as usize].size.bytes();
        let first = bytes.start.div_ceil(SEGMENT_BYTES);
        let is_to_end = bytes.end >= size;
        let end = if is_to_end { size.div_ceil(SEGMENT_BYTES) } else { bytes.end / SEGMENT_BYTES };
        // `end` fits, because `add` has checked the size; a `first` beyond it makes the run empty.
        Run::new(first.min(end) as u32, end as u32)
    }

    /// Bytes of a file are proven. Unknown files and parts of segments are ignored.
    pub(crate) fn prove(&mut self, file: u32, bytes: &Range<u64>) -> Proof {
        if !self.is_unfinished(file) {
            return Proof::Part;
        }
        let run = self.run(file, bytes);
        let segments = self.segments(file);
        let begun = self.begin(file);
        let taken = begun.free.remove(run);
        begun.proven.insert(run);
        let is_whole = begun.proven.count() == segments;
        self.drop_free(file, &taken);
        if !is_whole {
            return Proof::Part;
        }
        self.files[file as usize].state = State::Done;
        self.unfinished -= 1;
        Proof::Whole
    }

    /// A part of a file goes back to what is free, without what is proven. Files that are done are ignored.
    pub(crate) fn give_back(&mut self, file: u32, run: Run) {
        let State::Begun(begun) = &mut self.files[file as usize].state else { return };
        let run = Run::new(run.first.min(begun.reach), run.end.min(begun.reach));
        let unproven = begun.proven.missing(run);
        let missing: Vec<Run> =
            unproven.into_iter().flat_map(|run| begun.free.missing(run)).collect();
        missing.iter().for_each(|&run| begun.free.insert(run));
        let bytes = missing.iter().map(|&run| self.bytes(file, run)).sum();
        self.count_free(self.files[file as usize].group, bytes);
        self.list(file);
    }

    /// Nothing behind `end` is free. The first call precedes all requests for the file, and later `end` only grows.
    pub(crate) fn reach(&mut self, file: u32, end: DataSize) {
        if !self.is_unfinished(file) {
            return;
        }
        let all = self.segments(file);
        let is_first = matches!(self.files[file as usize].state, State::Untouched);
        let begun = self.begin(file);
        // The number fits: `all` is the number of the file's segments.
        let end = end.bytes().div_ceil(SEGMENT_BYTES).min(all.into()) as u32;
        let before = core::mem::replace(&mut begun.reach, end);
        if is_first {
            let taken = begun.free.remove(Run::new(end, all));
            self.drop_free(file, &taken);
        } else if end > before {
            self.give_back(file, Run::new(before, end));
        } else {
            begun.reach = before;
        }
    }

    /// Everything of the file is free, and nothing is proven. Its parts in asks must not own anything any more.
    pub(crate) fn void(&mut self, file: u32) {
        let Some(found) = self.files.get(file as usize).filter(|file| file.size > DataSize::ZERO)
        else {
            return;
        };
        let (size, group) = (found.size.bytes(), found.group);
        let (free, was_done) = match &found.state {
            State::Untouched => return,
            State::Begun(begun) => {
                (begun.free.runs().iter().map(|&run| self.bytes(file, run)).sum(), false)
            }
            State::Done => (0u64, true),
        };
        self.unlist(file);
        self.files[file as usize].state = State::Untouched;
        self.unfinished += usize::from(was_done);
        self.count_free(group, size - free);
        self.list(file);
    }

    /// The server has no replica of the file.
    pub(crate) fn remove_replica(&mut self, file: u32, server: usize) {
        if self.files.get(file as usize).is_none() || !self.group(file).replicas.contains(server) {
            return;
        }
        let free = match &self.files[file as usize].state {
            State::Untouched => self.files[file as usize].size.bytes(),
            State::Begun(begun) => begun.free.runs().iter().map(|&run| self.bytes(file, run)).sum(),
            State::Done => 0,
        };
        self.unlist(file);
        let old = self.files[file as usize].group;
        self.groups[old as usize].free_bytes -= free;
        let mut replicas = self.groups[old as usize].replicas;
        replicas.remove(server);
        let new = self.group_of(replicas);
        self.groups[new as usize].free_bytes += free;
        self.files[file as usize].group = new;
        self.list(file);
    }

    /// The number of segments of a file, which must be there.
    fn segments(&self, file: u32) -> u32 {
        // `add` has checked that it fits.
        self.files[file as usize].size.bytes().div_ceil(SEGMENT_BYTES) as u32
    }

    /// The lists of a file that is not done.
    fn begin(&mut self, file: u32) -> &mut Begun {
        if matches!(self.files[file as usize].state, State::Untouched) {
            self.unlist(file);
            let free = Segments::up_to(self.segments(file));
            let (proven, reach) = (Segments::default(), self.segments(file));
            let begun = Begun { free, proven, reach };
            self.files[file as usize].state = State::Begun(Box::new(begun));
            self.list(file);
        }
        match &mut self.files[file as usize].state {
            State::Begun(begun) => begun,
            State::Untouched | State::Done => unreachable!("the file is begun above or before"),
        }
    }

    /// These runs were removed from what is free.
    fn drop_free(&mut self, file: u32, runs: &[Run]) {
        let bytes: u64 = runs.iter().map(|&run| self.bytes(file, run)).sum();
        let group = &mut self.groups[self.files[file as usize].group as usize];
        group.free_bytes -= bytes;
        self.free_bytes -= bytes;
        if let State::Begun(begun) = &self.files[file as usize].state
            && begun.free.is_empty()
        {
            group.begun.remove(&file);
        }
    }

    fn count_free(&mut self, group: u32, bytes: u64) {
        self.groups[group as usize].free_bytes += bytes;
        self.free_bytes += bytes;
    }

    /// Puts the file into the list of its group that fits its state.
    fn list(&mut self, index: u32) {
        let file = &self.files[index as usize];
        let group = &mut self.groups[file.group as usize];
        match &file.state {
            State::Untouched if file.size <= self.small_file => group.small.insert(index),
            State::Untouched => group.whole.insert(index),
            State::Begun(begun) if !begun.free.is_empty() => group.begun.insert(index),
            State::Begun(_) | State::Done => false,
        };
    }

    /// Takes the file out of all lists of its group.
    fn unlist(&mut self, index: u32) {
        let group = &mut self.groups[self.files[index as usize].group as usize];
        group.small.remove(&index);
        group.whole.remove(&index);
        group.begun.remove(&index);
    }
}

#[cfg(test)]
mod tests;
