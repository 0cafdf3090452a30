//! A large file as it arrives: what is written, what is proven, when it is whole.

use super::in_order::InOrder;
use anyhow::{Context, Result, ensure};
use hikyaku_fs::{Dir, FsError, Manner, Name, NewFile, PeerPath, punch, write_sparse};
use hikyaku_transfer::{
    Attribute, EntryId, FileHash, FileRecord, Geometry, Hole, Proven, Record, SegmentHash,
    SegmentIndex,
};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a file is to be, however large.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) path: PeerPath,
    pub(crate) dir: Arc<Dir>,
    pub(crate) name: Name,
    pub(crate) mode: u32,
    /// Of the source.
    pub(crate) modified: (i64, u32),
    pub(crate) size: u64,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) manner: Manner,
}

/// A file under way.
pub(crate) struct Incoming {
    pub(crate) id: EntryId,
    pub(crate) plan: Plan,
    pub(crate) file: Geometry,
    state: Mutex<State>,
    /// Whoever writes: the kernel lets one at a time write to a file, and others spin meanwhile.
    writing: Mutex<()>,
}

struct State {
    new: Option<NewFile>,
    /// The same file, to be written by several threads; closed when it is whole.
    content: Option<Content>,
    /// What was there before is in it: holes have to be made.
    is_old: bool,
    /// Zeros become holes.
    is_sparse: bool,
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

/// Where bytes go.
#[derive(Clone)]
enum Content {
    File(Arc<File>),
    Stream(Arc<Mutex<InOrder>>),
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
    pub(crate) whole: Option<NewFile>,
}

/// Bytes that arrive wrong inside an authenticated connection were read wrong or written to meanwhile:
/// asking for them for ever would be no help.
const MOST_REPEATED: u32 = 16;

impl Incoming {
    /// Begins a file, or takes up what an earlier attempt has left of it. `stream` is what to write
    /// into, if the target is no plain file.
    pub(crate) fn begin(
        id: EntryId,
        plan: Plan,
        file: Geometry,
        left: Option<(FileRecord, Proven)>,
        stream: Option<File>,
    ) -> Result<(Self, Option<Record>), FsError> {
        let taken = left.and_then(|(record, proven)| {
            let partial = Name::new(&record.partial).ok()?;
            let new = NewFile::take_up(&plan.dir, partial, &plan.name).ok()?;
            if new.manner() == plan.manner {
                return Some((new, proven));
            }
            // It was begun in another manner: a partial file is of no use in place.
            let _ = new.discard(&plan.dir);
            None
        });
        let is_old = taken.is_some() || plan.manner == Manner::InPlace;
        let (new, proven, record) = match taken {
            Some((new, proven)) => (new, proven, None),
            None => {
                let new = plan.open(stream)?;
                let record = Record::File(FileRecord {
                    path: plan.path.as_bytes().to_vec(),
                    partial: new.partial().as_bytes().to_vec(),
                    size: file.size(),
                    modified: plan.modified,
                });
                // A stream cannot be taken up.
                let record = (plan.manner != Manner::Stream).then_some(record);
                (new, Proven::nothing(file), record)
            }
        };
        let content = new
            .file()
            .try_clone()
            .map_err(|error| FsError::io("open", plan.path.as_bytes(), &error))?;
        let content = match new.manner() {
            Manner::Stream => Content::Stream(Arc::new(Mutex::new(InOrder::new(content, file)))),
            Manner::Renamed | Manner::InPlace => Content::File(Arc::new(content)),
        };
        let state = State {
            new: Some(new),
            content: Some(content),
            is_old,
            is_sparse: false,
            proven,
            expected: HashMap::new(),
            arrived: HashMap::new(),
            is_read: false,
            repeated: 0,
        };
        let (state, writing) = (Mutex::new(state), Mutex::default());
        Ok((Self { id, plan, file, state, writing }, record))
    }

    /// Nobody else writes as long as this is held.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a segment at its place.
    pub(crate) fn write(&self, index: SegmentIndex, bytes: &[u8]) -> io::Result<()> {
        let at = self.file.range(index).map_or(0, |range| range.start);
        let _turn = self.turn();
        let (content, is_sparse) = {
            let state = self.state();
            let is_wanted = state.new.is_some();
            (state.content.clone().filter(|_| is_wanted), state.is_sparse)
        };
        match content {
            // What comes of a file that is whole, or was given up, is not wanted.
            None => Ok(()),
            Some(Content::File(file)) if is_sparse => write_sparse(&file, bytes, at),
            Some(Content::File(file)) => file.write_all_at(bytes, at),
            Some(Content::Stream(stream)) => {
                stream.lock().unwrap_or_else(PoisonError::into_inner).put(index, bytes)
            }
        }
    }

    /// The sender says where nobody has ever written.
    pub(crate) fn add_holes(&self, holes: &[Hole]) -> Result<News> {
        let mut state = self.state();
        state.is_sparse = true;
        for &hole in holes {
            ensure!(state.proven.add_hole(hole), "the sender speaks of holes that are none");
            let last = SegmentIndex(hole.first.0 + (hole.count - 1));
            let (Some(from), Some(to)) = (self.file.range(hole.first), self.file.range(last))
            else {
                continue;
            };
            let made = match &state.content {
                Some(Content::File(file)) if state.is_old => punch(file, from.start..to.end),
                Some(Content::Stream(stream)) => {
                    stream.lock().unwrap_or_else(PoisonError::into_inner).put_hole(hole)
                }
                _ => Ok(()),
            };
            made.with_context(|| format!("cannot write {}", self.plan.path.shown()))?;
        }
        Ok(state.conclude(News::default()))
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

    /// Brings what has been written to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let content = self.state().content.clone();
        match content {
            Some(Content::File(file)) => file.sync_data(),
            Some(Content::Stream(_)) | None => Ok(()),
        }
    }

    /// Whether the disk gives back what was proven.
    pub(crate) fn is_on_disk_as_it_was(&self, file: &File) -> bool {
        // Where the kernel lets go of its copy, the disk itself is asked.
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
        let mut bytes = Vec::new();
        self.file.indices().all(|index| {
            let range = self.file.range(index).unwrap_or_default();
            bytes.resize((range.end - range.start) as usize, 0);
            let proven = self.state().proven.get(index);
            file.read_exact_at(&mut bytes, range.start).is_ok()
                && match proven {
                    Some(proven) => SegmentHash::new(self.file, index, &bytes) == Some(proven),
                    None => bytes.iter().all(|&byte| byte == 0),
                }
        })
    }

    /// Whether nothing more is to be written into it.
    pub(crate) fn is_over(&self) -> bool {
        self.state().new.is_none()
    }

    /// Whether it has been synced, or given up.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().content.is_none()
    }

    /// It has been synced.
    pub(crate) fn close(&self) {
        self.state().content = None;
    }

    /// A segment is written; its bytes had this hash.
    pub(crate) fn arrived(&self, index: SegmentIndex, hash: SegmentHash) -> News {
        let (mut state, mut news) = (self.state(), News::default());
        news.is_new = state.proven.get(index).is_none();
        match state.expected.remove(&index) {
            Some(expected) => state.compare(index, expected, hash, &mut news),
            None => {
                state.arrived.insert(index, hash);
            }
        }
        state.conclude(news)
    }

    /// The sender says how segments were.
    pub(crate) fn expect(&self, first: SegmentIndex, hashes: &[SegmentHash]) -> News {
        let (mut state, mut news) = (self.state(), News::default());
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
        state.conclude(news)
    }

    /// The sender has read all of it.
    pub(crate) fn read(&self) -> News {
        let mut state = self.state();
        state.is_read = true;
        state.conclude(News::default())
    }

    /// Bytes of it that were there when it was begun.
    pub(crate) fn kept(&self) -> u64 {
        self.state().proven.bytes()
    }

    /// Gives it up; what has been proven stays for the next attempt unless it is void.
    pub(crate) fn give_up(&self) -> Option<NewFile> {
        let mut state = self.state();
        state.content = None;
        state.new.take()
    }
}

impl Plan {
    /// What is written into.
    pub(crate) fn open(&self, stream: Option<File>) -> Result<NewFile, FsError> {
        match (self.manner, stream) {
            (Manner::Stream, Some(file)) => Ok(NewFile::stream(file, self.name.clone())),
            // It was there for one file.
            (Manner::Stream, None) => Err(FsError::is_special(self.path.as_bytes())),
            (Manner::InPlace, _) => NewFile::in_place(&self.dir, &self.name),
            (Manner::Renamed, _) => NewFile::create(&self.dir, &self.name),
        }
    }
}

impl State {
    fn compare(
        &mut self,
        index: SegmentIndex,
        wanted: SegmentHash,
        found: SegmentHash,
        news: &mut News,
    ) {
        let is_stream = matches!(self.content, Some(Content::Stream(_)));
        if wanted == found {
            self.proven.insert(index, found);
            news.proven.push((index, found));
        } else if self.repeated < MOST_REPEATED && self.proven.get(index).is_none() && !is_stream {
            self.repeated += 1;
            // The sender will say again how it was.
            self.is_read = false;
            news.again.push(index);
        } else {
            // What was proven is overwritten, what is gone is gone, and asking for ever is no help.
            news.is_damaged = true;
        }
    }

    fn conclude(&mut self, mut news: News) -> News {
        if self.is_read && self.proven.is_whole() {
            news.whole = self.new.take();
            self.expected = HashMap::new();
        }
        news
    }
}

#[cfg(test)]
mod tests;
