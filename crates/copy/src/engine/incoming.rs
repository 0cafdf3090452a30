//! A large file as it arrives: what is written, what is proven, when it is whole.

use super::in_order::InOrder;
use super::slots::Slot;
use hikyaku_fs::{Dir, Draft, FsError, Manner, Name, Owner, PeerPath, Stream, Token, Zeros};
use hikyaku_transfer::{
    Attribute, EntryId, FileHash, FileRecord, Geometry, Hole, Proven, SegmentHash, SegmentIndex,
    Version,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a file is to be, however large.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) path: PeerPath,
    pub(crate) dir: Arc<Dir>,
    /// The number of the device that the directory is on.
    pub(crate) device: u64,
    pub(crate) name: Name,
    pub(crate) mode: u32,
    /// Whom it is given to, if that is asked for.
    pub(crate) owner: Option<Owner>,
    /// When the source was last written.
    pub(crate) modified: (i64, u32),
    /// Which content the source has.
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
    /// Whoever writes: the kernel lets one at a time write to a file, and others spin meanwhile. A target
    /// that takes bytes in order keeps here what came early.
    writing: Mutex<Option<InOrder>>,
    /// Its place among the open files, until somebody else has it or nobody needs it.
    slot: Mutex<Option<Slot>>,
}

struct State {
    stage: Stage,
    /// What was there before is in it: holes have to be made.
    is_old: bool,
    zeros: Zeros,
    proven: Proven,
    /// What the sender said of segments that have not arrived.
    expected: HashMap<SegmentIndex, SegmentHash>,
    /// Segments that arrived before the sender said how they were.
    arrived: HashMap<SegmentIndex, SegmentHash>,
    /// The sender has read all of it.
    is_read: bool,
    /// Segments that had to be asked for again.
    repeated: u32,
}

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Bytes are missing.
    Open,
    /// It is whole, or was given up: what still comes is not wanted.
    Over,
}

/// What follows from a segment or a word of the sender.
#[derive(Default)]
pub(crate) struct News {
    pub(crate) proven: Vec<(SegmentIndex, SegmentHash)>,
    pub(crate) again: Vec<SegmentIndex>,
    /// The segment that arrived was not proven before.
    pub(crate) is_new: bool,
    /// It cannot become what it is to be.
    pub(crate) is_damaged: bool,
    /// The file is whole: it can get its name. This is said once.
    pub(crate) is_whole: bool,
}

/// The sender says what no honest one says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Lie {
    #[error("the sender speaks of holes that are none")]
    Holes,
    #[error("the sender tells hashes of segments that it does not send")]
    Hashes,
}

/// Bytes that arrive wrong inside an authenticated connection were read wrong or written to meanwhile:
/// asking for them for ever would be no help.
pub(crate) const MOST_REPEATED: u32 = 16;
/// Hashes without their segments, and the other way round: more than any window holds, and 3 MB.
const MOST_AHEAD: usize = 1 << 16;

impl Plan {
    /// Bytes of memory that a file with this plan takes, whatever has come of it, or somewhat less.
    pub(crate) fn held(&self) -> usize {
        // The path is in the journal's records, too, and the name in that of the unfinished file.
        size_of::<Incoming>() + 2 * (self.path.as_bytes().len() + self.name.as_bytes().len())
    }

    /// What is written into; `stream` is there if the target is no plain file.
    pub(crate) fn open(&self, token: &Token, stream: Option<Stream>) -> Result<Draft, FsError> {
        let dir = self.dir.clone();
        match (self.manner, stream) {
            (Manner::Stream, Some(stream)) => Ok(Draft::stream(stream, dir, self.name.clone())),
            // It was there for one file.
            (Manner::Stream, None) => Err(FsError::is_special(self.path.as_bytes())),
            (Manner::InPlace, _) => Draft::in_place(dir, &self.name),
            (Manner::Renamed, _) => Draft::create(dir, &self.name, token),
        }
    }

    /// What the journal says of it when it is begun as `partial`.
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
    /// A file that is begun as `draft`, or taken up with what is `proven` of it.
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
            // What a stream was given is gone: nothing of it can be asked for again.
            repeated: if plan.manner == Manner::Stream { MOST_REPEATED } else { 0 },
        };
        let in_order = (plan.manner == Manner::Stream).then(|| InOrder::new(file));
        let (state, writing) = (Mutex::new(state), Mutex::new(in_order));
        let slot = Mutex::new(Some(slot));
        Self { id, plan, file, draft: Arc::new(draft), state, writing, slot }
    }

    /// Nobody else writes as long as this is held.
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

    /// The sender says where nobody has ever written.
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

    /// The same, if no holes would have to be hashed for it.
    pub(crate) fn hash_at_hand(&self) -> Option<FileHash> {
        let state = self.state();
        if state.proven.has_holes() { None } else { state.proven.hash() }
    }

    /// Whether the disk gives back what was proven.
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

    /// Whether nothing more is to be written into it.
    pub(crate) fn is_over(&self) -> bool {
        self.state().stage == Stage::Over
    }

    /// A segment is written; its bytes had this hash.
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

    /// The sender says how segments were.
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

    /// The sender has read all of it.
    pub(crate) fn read(&self) -> News {
        let mut state = self.state();
        state.is_read = true;
        state.conclude(News::default())
    }

    /// Hashes of which the segments have not come.
    pub(crate) fn expected(&self) -> usize {
        self.state().expected.len()
    }

    /// Runs of holes that are remembered of it.
    pub(crate) fn holes(&self) -> usize {
        self.state().proven.holes()
    }

    /// Its place among the open files, for whoever closes it.
    pub(crate) fn take_slot(&self) -> Option<Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether it cannot become whole before the sender says more of it.
    pub(crate) fn awaits_a_word(&self) -> bool {
        let state = self.state();
        state.stage == Stage::Open && !state.is_read
    }

    /// Bytes of it that were there when it was begun.
    pub(crate) fn kept(&self) -> u64 {
        self.state().proven.bytes()
    }

    /// Gives it up: what still comes of it is not wanted. False, if that was so before.
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

/// Which of the segments that were written are still right, by the disk's word where it can be asked.
pub(crate) fn still_right(draft: &Draft, written: &Proven) -> Result<Proven, FsError> {
    draft.forget_cache()?;
    let file = written.file();
    let mut right = Proven::nothing(file);
    let mut bytes = Vec::new();
    for (first, hashes) in written.runs() {
        for (index, &hash) in (first.0..).map(SegmentIndex).zip(&hashes) {
            let range = file.range(index).unwrap_or_default();
            bytes.resize((range.end - range.start) as usize, 0);
            // What cannot be read is sent again.
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
            // The sender will say again how it was.
            self.is_read = false;
            news.again.push(index);
        } else {
            // What was proven is overwritten, what is gone is gone, and asking for ever is no help.
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
