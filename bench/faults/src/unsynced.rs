//! What of each file the disk has not been asked to keep, and what is lost when it could not.
//!
//! Linux says of a page that could not be written back once that there was an error, and takes it for
//! clean: it may be dropped at any time, and the next sync succeeds. So whatever was written between
//! the last good sync and a failed one is doomed, until it is written anew. What is doomed reads well
//! as long as the page is in memory, and becomes garbage here: at once, or when the program has ended.

use anyhow::Result;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// When doomed pages are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    /// As soon as they are doomed.
    AtOnce,
    /// When the program has ended.
    AtEnd,
}

/// Inodes are known by their numbers: all of a run lies on one file system.
type Number = u64;

/// All files that were written to.
#[derive(Default)]
pub(crate) struct Unsynced {
    files: HashMap<Number, State>,
}

struct State {
    /// Whatever its name is by then.
    file: File,
    dirty: Ranges,
    doomed: Ranges,
}

impl Unsynced {
    /// `range` of the file that can be opened as `link` has been written.
    pub(crate) fn written(&mut self, link: &Path, range: Range<u64>) -> Result<()> {
        let number = std::fs::metadata(link)?.ino();
        let state = match self.files.entry(number) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                let file = File::options().read(true).write(true).open(link)?;
                new.insert(State { file, dirty: Ranges::default(), doomed: Ranges::default() })
            }
        };
        state.doomed.remove(&range);
        state.dirty.insert(range);
        Ok(())
    }

    /// The disk has it.
    pub(crate) fn synced(&mut self, link: &Path) -> Result<()> {
        let number = std::fs::metadata(link)?.ino();
        // What was never written to has nothing to sync. A number may be another file's later.
        if let Some(state) = self.files.get_mut(&number) {
            state.dirty = Ranges::default();
        }
        Ok(())
    }

    /// The disk has everything.
    pub(crate) fn all_synced(&mut self) {
        self.files.values_mut().for_each(|state| state.dirty = Ranges::default());
    }

    /// The disk could not keep what was written to it.
    pub(crate) fn failed(&mut self, link: &Path, loss: Loss) -> Result<()> {
        let number = std::fs::metadata(link)?.ino();
        self.files.get_mut(&number).map_or(Ok(()), |state| state.fail(loss))
    }

    /// The disk could not keep anything.
    pub(crate) fn all_failed(&mut self, loss: Loss) -> Result<()> {
        self.files.values_mut().try_for_each(|state| state.fail(loss))
    }

    /// The program has ended, and the kernel has dropped what it could not write.
    pub(crate) fn drop_pages(&mut self) -> Result<()> {
        self.files.values_mut().try_for_each(State::spoil)
    }
}

impl State {
    fn fail(&mut self, loss: Loss) -> Result<()> {
        for range in std::mem::take(&mut self.dirty).all() {
            self.doomed.insert(range);
        }
        if loss == Loss::AtOnce { self.spoil() } else { Ok(()) }
    }

    fn spoil(&mut self) -> Result<()> {
        let length = self.file.metadata()?.len();
        for range in std::mem::take(&mut self.doomed).all() {
            let end = range.end.min(length);
            let mut bytes = vec![0; end.saturating_sub(range.start) as usize];
            self.file.read_exact_at(&mut bytes, range.start.min(end))?;
            // Other bytes in every place, and never the ones that were there.
            bytes.iter_mut().for_each(|byte| *byte ^= 0xa5);
            self.file.write_all_at(&bytes, range.start.min(end))?;
        }
        Ok(())
    }
}

/// Ranges that do not touch each other.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let touching: Vec<_> = self.0.range(..=range.end).map(|(&from, &to)| (from, to)).collect();
        let (mut start, mut end) = (range.start, range.end);
        for (from, to) in touching.into_iter().filter(|&(_, to)| to >= range.start) {
            self.0.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.0.insert(start, end);
    }

    fn remove(&mut self, range: &Range<u64>) {
        let touching: Vec<_> = self.0.range(..range.end).map(|(&from, &to)| (from, to)).collect();
        for (from, to) in touching.into_iter().filter(|&(_, to)| to > range.start) {
            self.0.remove(&from);
            self.insert(from..range.start.max(from));
            self.insert(range.end.min(to)..to);
        }
    }

    fn all(&self) -> Vec<Range<u64>> {
        self.0.iter().map(|(&from, &to)| from..to).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_grow_together_and_are_cut() {
        let mut ranges = Ranges::default();
        [0..4, 8..12, 4..6, 20..30].into_iter().for_each(|range| ranges.insert(range));
        assert_eq!(ranges.all(), [0..6, 8..12, 20..30]);
        ranges.remove(&(5..22));
        assert_eq!(ranges.all(), [0..5, 22..30]);
        ranges.remove(&(24..26));
        assert_eq!(ranges.all(), [0..5, 22..24, 26..30]);
    }

    #[test]
    fn what_a_failed_sync_has_not_kept_is_lost() {
        let path = std::env::temp_dir().join(format!("hikyaku-unsynced-{}", std::process::id()));
        std::fs::write(&path, [1; 12]).unwrap();
        let mut unsynced = Unsynced::default();
        unsynced.written(&path, 0..4).unwrap();
        unsynced.synced(&path).unwrap();
        unsynced.written(&path, 4..12).unwrap();
        unsynced.failed(&path, Loss::AtEnd).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [1; 12], "the page is still there");
        // A second sync says that all is well; what is written anew is kept by it.
        unsynced.written(&path, 8..12).unwrap();
        unsynced.synced(&path).unwrap();
        unsynced.drop_pages().unwrap();
        let found = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((&found[..4], &found[8..]), (&[1; 4][..], &[1; 4][..]));
        assert_eq!(found[4..8], [1 ^ 0xa5; 4]);
    }
}
