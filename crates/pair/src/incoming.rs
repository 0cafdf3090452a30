//! A large file as it arrives: which segments are written, which are proven, and when the file is complete.

use super::in_order::InOrder;
use super::slots::Slot;
use hikyaku_fs::{Dir, Draft, FsError, Manner, Name, Owner, PeerPath, Stream, Token, Zeros};
use hikyaku_transfer::{
    Attribute, EntryId, FileHash, FileRecord, Geometry, Hole, Proven, SegmentHash, SegmentIndex,
    Version,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Name, metadata and manner of a file at the destination, small files included.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) path: PeerPath,
    pub(crate) dir: Arc<Dir>,
    /// The number of the device that the directory is on.
    pub(crate) device: u64,
    pub(crate) name: Name,
    pub(crate) mode: u32,
    /// The owner, if the user asked to keep it.
    pub(crate) owner: Option<Owner>,
    /// Modification time of the source.
    pub(crate) modified: (i64, u32),
    /// Version of the source's content.
    pub(crate) version: Version,
    pub(crate) size: u64,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) manner: Manner,
}

/// A file under way.
pub(crate) struct Incoming {
    pub(crate) id: EntryId,
    pub(crate) plan: Plan,
    pub(crate) file: Geometry,
    pub(crate) draft: Arc<Draft>,
    state: Mutex<State>,
    /// Held by the thread that writes. The kernel locks a file while it copies bytes to its cache (ext4, XFS, Btrfs and tmpfs
    /// do), and threads that wait for that lock spin: four threads without a lock of their own wrote a file at half the speed
    /// of four with one, in twice the processor time. One thread writes 2.4 to 4.5 GB/s, and the others hash meanwhile. For a
    /// destination that takes bytes in order, it contains segments that arrived early.
    writing: Mutex<Option<InOrder>>,
    /// Its place among the open files, until the place is taken away or the file is closed.
    slot: Mutex<Option<Slot>>,
}

struct State {
    stage: Stage,
    /// The file has contents from before this copy, so holes must be punched.
    is_old: bool,
    zeros: Zeros,
    proven: Proven,
    /// Hashes from the sender of segments that have not arrived.
    expected: HashMap<SegmentIndex, SegmentHash>,
    /// Hashes of segments that arrived before the hashes from the sender.
    arrived: HashMap<SegmentIndex, SegmentHash>,
    /// The sender has read the whole file.
    is_read: bool,
    /// Number of segments that were requested again.
    repeated: u32,
}

/// Whether a file takes more bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Bytes are missing.
    Open,
    /// The file is complete or was given up: further bytes are discarded.
    Over,
}

/// Consequences of a segment or a message of the sender.
#[derive(Default)]
pub(crate) struct News {
    pub(crate) proven: Vec<(SegmentIndex, SegmentHash)>,
    pub(crate) again: Vec<SegmentIndex>,
    /// The segment that arrived was not proven before.
    pub(crate) is_new: bool,
    /// The file cannot become equal to the source.
    pub(crate) is_damaged: bool,
    /// The file is complete and can get its name. Reported once.
    pub(crate) is_whole: bool,
}

/// A message that no honest sender sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Lie {
    #[error("the sender speaks of holes that are none")]
    Holes,
    #[error("the sender tells hashes of segments that it does not send")]
    Hashes,
}

/// Maximum number of segments of a file that are requested again. Bytes that arrive wrong in an authenticated connection
/// were read wrong, or the source was written to, and further requests would not help.
pub(crate) const MOST_REPEATED: u32 = 16;
/// Maximum number of hashes without segments, and of segments without hashes: more than any window holds, and 3 MB.
const MOST_AHEAD: usize = 1 << 16;

impl Plan {
    /// A lower bound of the memory that a file with this plan takes, in bytes.
    pub(crate) fn held(&self) -> usize {
        // The path is in the journal's records, too, and the name in that of the unfinished file.
        size_of::<Incoming>() + 2 * (self.path.as_bytes().len() + self.name.as_bytes().len())
    }

    /// Opens the destination for writing: `stream` if it is no regular file.
    pub(crate) fn open(&self, token: &Token, stream: Option<Stream>) -> Result<Draft, FsError> {
        let dir = self.dir.clone();
        match (self.manner, stream) {
            (Manner::Stream, Some(stream)) => Ok(Draft::stream(stream, dir, self.name.clone())),
            // A stream takes one file.
            (Manner::Stream, None) => Err(FsError::is_special(self.path.as_bytes())),
            (Manner::InPlace, _) => Draft::in_place(dir, &self.name),
            (Manner::Renamed, _) => Draft::create(dir, &self.name, token),
        }
    }

    /// The journal's record of a file that begins under the name `partial`.
    pub(crate) fn record(&self, partial: &Name) -> FileRecord {
        FileRecord {
            path: self.path.as_bytes().to_vec(),
            partial: partial.as_bytes().to_vec(),
            size: self.size,
            version: self.version,
        }
    }
}

impl Incoming {
    /// A file that begins as `draft`, or is resumed with its `proven` segments.
    pub(crate) fn new(
        id: EntryId,
        plan: Plan,
        file: Geometry,
        (draft, slot): (Draft, Slot),
        proven: Option<Proven>,
    ) -> Self {
        let state = State {
            stage: Stage::Open,
            is_old: proven.is_some() || plan.manner == Manner::InPlace,
            zeros: Zeros::Written,
            proven: proven.unwrap_or_else(|| Proven::nothing(file)),
            expected: HashMap::new(),
            arrived: HashMap::new(),
            is_read: false,
            // Bytes written to a stream cannot be replaced, so no segment is requested again.
            repeated: if plan.manner == Manner::Stream { MOST_REPEATED } else { 0 },
        };
        let in_order = (plan.manner == Manner::Stream).then(|| InOrder::new(file));
        let (state, writing) = (Mutex::new(state), Mutex::new(in_order));
        let slot = Mutex::new(Some(slot));
        Self { id, plan, file, draft: Arc::new(draft), state, writing, slot }
    }

    /// Locks the file for writing.
    pub(crate) fn turn(&self) -> MutexGuard<'_, Option<InOrder>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a segment at its place.
    pub(crate) fn write(&self, index: SegmentIndex, bytes: &[u8]) -> Result<(), FsError> {
        let at = self.file.range(index).map_or(0, |range| range.start);
        let mut turn = self.turn();
        let (stage, zeros) = {
            let state = self.state();
            (state.stage, state.zeros)
        };
        match (stage, &mut *turn) {
            (Stage::Over, _) => Ok(()),
            (Stage::Open, None) => self.draft.write_at(at, bytes, zeros),
            (Stage::Open, Some(in_order)) => self.draft.pour(|to| in_order.put(to, index, bytes)),
        }
    }

    /// Adds the holes of the source.
    pub(crate) fn add_holes(&self, holes: &[Hole]) -> Result<(News, Result<(), FsError>), Lie> {
        let mut turn = self.turn();
        let mut state = self.state();
        state.zeros = Zeros::Holes;
        let mut made = Ok(());
        for &hole in holes {
            if !state.proven.add_hole(hole) {
                return Err(Lie::Holes);
            }
            let last = SegmentIndex(hole.first.0 + (hole.count - 1));
            let (Some(from), Some(to)) = (self.file.range(hole.first), self.file.range(last))
            else {
                continue;
            };
            if state.stage == Stage::Over || made.is_err() {
                continue;
            }
            made = match &mut *turn {
                Some(in_order) => self.draft.pour(|to| in_order.put_hole(to, hole)),
                None if state.is_old => self.draft.punch(from.start..to.end),
                None => Ok(()),
            };
        }
        Ok((state.conclude(News::default()), made))
    }

    /// The file's hash, once all of it is proven.
    pub(crate) fn hash(&self) -> Option<FileHash> {
        self.state().proven.hash()
    }

    /// The file's hash, unless holes would have to be hashed for it.
    pub(crate) fn hash_at_hand(&self) -> Option<FileHash> {
        let state = self.state();
        if state.proven.has_holes() { None } else { state.proven.hash() }
    }

    /// Whether the bytes on the disk have the proven hashes.
    pub(crate) fn is_on_disk_as_it_was(&self) -> Result<bool, FsError> {
        let mut bytes = Vec::new();
        self.draft.forget_cache()?;
        for index in self.file.indices() {
            let range = self.file.range(index).unwrap_or_default();
            bytes.resize((range.end - range.start) as usize, 0);
            let proven = self.state().proven.get(index);
            self.draft.read_exact_at(range.start, &mut bytes)?;
            let is_right = match proven {
                Some(proven) => SegmentHash::new(self.file, index, &bytes) == Some(proven),
                None => bytes.iter().all(|&byte| byte == 0),
            };
            if !is_right {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the file is complete or was given up.
    pub(crate) fn is_over(&self) -> bool {
        self.state().stage == Stage::Over
    }

    /// A segment with this hash has been written.
    pub(crate) fn arrived(&self, index: SegmentIndex, hash: SegmentHash) -> Result<News, Lie> {
        let (mut state, mut news) = (self.state(), News::default());
        if state.stage == Stage::Over {
            return Ok(news);
        }
        news.is_new = state.proven.get(index).is_none();
        match state.expected.remove(&index) {
            Some(expected) => state.compare(index, expected, hash, &mut news),
            None => {
                state.arrived.insert(index, hash);
            }
        }
        if state.arrived.len() > MOST_AHEAD { Err(Lie::Hashes) } else { Ok(state.conclude(news)) }
    }

    /// Adds hashes from the sender, of consecutive segments.
    pub(crate) fn expect(&self, first: SegmentIndex, hashes: &[SegmentHash]) -> Result<News, Lie> {
        let (mut state, mut news) = (self.state(), News::default());
        if state.stage == Stage::Over {
            return Ok(news);
        }
        for (at, &hash) in (u64::from(first.0)..).zip(hashes) {
            let Some(index) = u32::try_from(at).ok().map(SegmentIndex) else { break };
            if self.file.range(index).is_none() {
                break;
            }
            match state.arrived.remove(&index) {
                Some(found) => state.compare(index, hash, found, &mut news),
                None => {
                    state.expected.insert(index, hash);
                }
            }
        }
        // spec: copy-bound-1
        if state.expected.len() > MOST_AHEAD { Err(Lie::Hashes) } else { Ok(state.conclude(news)) }
    }

    /// The sender has read the whole file.
    pub(crate) fn read(&self) -> News {
        let mut state = self.state();
        state.is_read = true;
        state.conclude(News::default())
    }

    /// The number of hashes whose segments have not arrived.
    pub(crate) fn expected(&self) -> usize {
        self.state().expected.len()
    }

    /// The number of runs of holes.
    pub(crate) fn holes(&self) -> usize {
        self.state().proven.holes()
    }

    /// Takes its place among the open files; the caller closes the file.
    pub(crate) fn take_slot(&self) -> Option<Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether a message of the sender is missing before the file can become complete.
    pub(crate) fn awaits_a_word(&self) -> bool {
        let state = self.state();
        state.stage == Stage::Open && !state.is_read
    }

    /// Bytes of the proven segments: when the file begins, those of earlier attempts.
    pub(crate) fn kept(&self) -> u64 {
        self.state().proven.bytes()
    }

    /// Gives the file up: further bytes are discarded. Returns whether it was open.
    pub(crate) fn give_up(&self) -> bool {
        let mut state = self.state();
        let was_open = state.stage == Stage::Open;
        state.end();
        drop(state);
        if was_open {
            self.take_slot();
        }
        was_open
    }
}

/// The `written` segments whose bytes still have their hashes, read from the disk where the page cache can be dropped.
pub(crate) fn still_right(draft: &Draft, written: &Proven) -> Result<Proven, FsError> {
    draft.forget_cache()?;
    let file = written.file();
    let mut right = Proven::nothing(file);
    let mut bytes = Vec::new();
    for (first, hashes) in written.runs() {
        for (index, &hash) in (first.0..).map(SegmentIndex).zip(&hashes) {
            let range = file.range(index).unwrap_or_default();
            bytes.resize((range.end - range.start) as usize, 0);
            // An unreadable segment is sent again.
            if draft.read_exact_at(range.start, &mut bytes).is_ok()
                && SegmentHash::new(file, index, &bytes) == Some(hash)
            {
                right.insert(index, hash);
            }
        }
    }
    Ok(right)
}

impl State {
    // spec: copy-hash-1
    fn compare(
        &mut self,
        index: SegmentIndex,
        wanted: SegmentHash,
        found: SegmentHash,
        news: &mut News,
    ) {
        if wanted == found {
            self.proven.insert(index, found);
            news.proven.push((index, found));
        } else if self.repeated < MOST_REPEATED && self.proven.get(index).is_none() {
            self.repeated += 1;
            // The sender sends its hash again, and reports again that it has read the file.
            self.is_read = false;
            news.again.push(index);
        } else {
            // The proven segment is overwritten, or too many segments were requested again.
            news.is_damaged = true;
        }
    }

    // spec: copy-read-1
    fn conclude(&mut self, mut news: News) -> News {
        if self.stage == Stage::Open && self.is_read && self.proven.is_whole() {
            news.is_whole = true;
            self.end();
        }
        news
    }

    fn end(&mut self) {
        self.stage = Stage::Over;
        (self.expected, self.arrived) = (HashMap::new(), HashMap::new());
    }
}

#[cfg(test)]
mod tests;
