//! `--stage`: writes of programs are on the disk of this machine before the server has them.
//!
//! Writes go into a journal of segments, and are sent from there in their order. A segment is removed when the server's disk
//! has all of it: its writes are confirmed, and the files were synced after that. Writes that are left when the process or the machine
//! ends are sent at the next mount, before anything else ([`replay`]).
//!
//! Names and metadata are not staged: they are changed at the server, after the segments with writes to these paths are
//! removed, so that a journal never holds writes of before such a change.

mod aside;
mod left;
mod log;
pub(crate) mod replay;

use crate::unconfirmed::Call;
use aside::Aside;
use bytes::Bytes;
use fuser::Errno;
use hikyaku_fs::{Others, Owners, trust};
use hikyaku_store::StorePath;
pub(crate) use log::Target;
use log::{MAGIC, Record, frame};
use rustix::fs::{FlockOperation, OFlags};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The journal of a mount.
pub(crate) struct Stage {
    dir: PathBuf,
    state: Mutex<State>,
    /// Held from a write's record to its place among those that are sent, so that both have one order.
    order: Mutex<()>,
    /// Bytes under way to the server have become fewer.
    room: Condvar,
    syncs: Sender<OnSynced>,
    aside: Mutex<Aside>,
    /// Keeps other mounts from the directory.
    _lock: File,
}

struct State {
    segments: BTreeMap<u64, Segment>,
    last: u64,
    in_flight: u64,
    /// Whether the names of all segments are on the disk.
    is_named: bool,
    waits: Vec<(Vec<StorePath>, OnReleased)>,
}

struct Segment {
    file: Arc<File>,
    path: PathBuf,
    length: u64,
    /// Writes that the server has not confirmed.
    unconfirmed: u64,
    /// Those that it has confirmed, in their order.
    confirmed: Vec<Confirmed>,
    /// The files that it writes to.
    files: HashMap<u64, StorePath>,
    phase: Phase,
    /// Whether all of it is on the disk.
    is_synced: bool,
    touched: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// It takes writes.
    Open,
    /// It takes no more.
    Sealed,
    /// The server syncs its files.
    Syncing,
    /// The server syncs its files, but may have lost some of the writes before.
    Doubted,
}

/// Where the bytes of a write lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    from: u64,
    pub(crate) length: u32,
}

/// A write that the server has confirmed, but that may not be on its disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Confirmed {
    /// Its number among all writes.
    pub(crate) id: u64,
    pub(crate) node: u64,
    pub(crate) at: u64,
    pub(crate) place: Place,
}

/// Called when the journal is on the disk.
type OnSynced = Box<dyn FnOnce(Result<(), Errno>) + Send>;
/// Called when the journal has no writes to some paths.
type OnReleased = Box<dyn FnOnce(Result<(), Errno>) + Send>;

/// A segment takes no more writes beyond this length.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Bytes that are under way to the server.
const IN_FLIGHT_BYTES_MAX: u64 = 64 << 20;
/// A segment without a write for this time takes no more writes.
const IDLE: Duration = Duration::from_secs(1);

impl Stage {
    /// Opens the journal of a source below a directory, which is made.
    ///
    /// # Errors
    ///
    /// Another mount uses it, another user may have made or changed it, or those of the file system.
    pub(crate) fn open(below: &Path, source: &str) -> io::Result<Arc<Self>> {
        fs::create_dir_all(below)?;
        let dir = below.canonicalize()?.join(name_of(source));
        // The contents may be secret.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        believed(below, &dir)?;
        let lock =
            File::options().write(true).create(true).truncate(false).open(dir.join("lock"))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let last = numbers(&dir)?.last().copied().unwrap_or(0);
        let (syncs, hear) = channel();
        let stage = Arc::new(Self {
            state: Mutex::new(State {
                segments: BTreeMap::new(),
                last,
                in_flight: 0,
                is_named: true,
                waits: Vec::new(),
            }),
            order: Mutex::new(()),
            room: Condvar::new(),
            syncs,
            aside: Mutex::new(Aside::at(dir.join("aside"))),
            dir,
            _lock: lock,
        });
        let syncing = stage.clone();
        let named = thread::Builder::new().name("mount-stage".to_owned());
        named.spawn(move || syncing.sync_all(&hear))?;
        Ok(stage)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn aside(&self) -> MutexGuard<'_, Aside> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds up other writes until this is dropped.
    pub(crate) fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a write into the journal.
    ///
    /// # Errors
    ///
    /// The disk of this machine is full, or fails.
    pub(crate) fn append(&self, target: &Target, at: u64, bytes: &[u8]) -> io::Result<Place> {
        let mut state = self.state();
        let number = self.open_segment(&mut state)?;
        let segment = state.segments.get_mut(&number).ok_or(io::ErrorKind::NotFound)?;
        let mut record = Vec::new();
        // A number is given to another file once the first one has no writes here.
        let known = segment.files.get(&target.file);
        let is_new = known.is_none_or(|path| path.as_bytes() != target.path);
        if is_new {
            record = frame(&Record::File(target.clone()), &[]).0;
        }
        let (framed, before) = frame(&Record::Write { file: target.file, at }, bytes);
        let from = segment.length + record.len() as u64 + before;
        record.extend_from_slice(&framed);
        if let Err(error) = segment.file.write_all_at(&record, segment.length) {
            // A partly written record would end the journal there.
            let _ = segment.file.set_len(segment.length);
            return Err(error);
        }
        if is_new && let Ok(path) = StorePath::new(&target.path) {
            segment.files.insert(target.file, path);
        }
        segment.length += record.len() as u64;
        segment.unconfirmed += 1;
        segment.is_synced = false;
        segment.touched = Instant::now();
        if segment.length >= SEGMENT_BYTES {
            segment.phase = Phase::Sealed;
        }
        Ok(Place { segment: number, from, length: bytes.len() as u32 })
    }

    /// The segment that takes writes.
    fn open_segment(&self, state: &mut State) -> io::Result<u64> {
        if let Some((&number, segment)) = state.segments.last_key_value()
            && segment.phase == Phase::Open
        {
            return Ok(number);
        }
        let number = state.last + 1;
        let path = self.dir.join(number.to_string());
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        file.write_all_at(MAGIC, 0)?;
        state.last = number;
        state.is_named = false;
        state.segments.insert(
            number,
            Segment {
                file: Arc::new(file),
                path,
                length: MAGIC.len() as u64,
                unconfirmed: 0,
                confirmed: Vec::new(),
                files: HashMap::new(),
                phase: Phase::Open,
                is_synced: false,
                touched: Instant::now(),
            },
        );
        Ok(number)
    }

    /// The bytes of a write.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub(crate) fn read(&self, place: Place) -> io::Result<Bytes> {
        let file = self.state().segments.get(&place.segment).map(|segment| segment.file.clone());
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = vec![0; place.length as usize];
        file.read_exact_at(&mut bytes, place.from)?;
        Ok(bytes.into())
    }

    /// Waits until `bytes` more bytes may be under way to the server.
    pub(crate) fn take_room(&self, bytes: u32) {
        let mut state = self.state();
        while state.in_flight > IN_FLIGHT_BYTES_MAX {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.in_flight += u64::from(bytes);
    }

    /// They are not under way any more.
    pub(crate) fn give_room(&self, bytes: u32) {
        self.state().in_flight -= u64::from(bytes);
        self.room.notify_all();
    }

    /// Calls `done` when all present records are on the disk of this machine.
    pub(crate) fn sync_then(&self, done: impl FnOnce(Result<(), Errno>) + Send + 'static) {
        if let Err(unsent) = self.syncs.send(Box::new(done)) {
            unsent.0(Err(Errno::EIO));
        }
    }

    /// Brings the journal to the disk for all who wait, once for those who came meanwhile.
    fn sync_all(&self, hear: &Receiver<OnSynced>) {
        while let Ok(first) = hear.recv() {
            let all: Vec<OnSynced> = std::iter::once(first).chain(hear.try_iter()).collect();
            let synced = self.sync().map_err(|_| Errno::EIO);
            all.into_iter().for_each(|done| done(synced));
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        let is_named = std::mem::replace(&mut state.is_named, true);
        let unsynced = state.segments.values_mut().filter(|segment| !segment.is_synced);
        let files: Vec<_> = unsynced
            .map(|segment| {
                segment.is_synced = true;
                segment.file.clone()
            })
            .collect();
        drop(state);
        let synced = files.iter().try_for_each(|file| file.sync_data());
        let named = || if is_named { Ok(()) } else { File::open(&self.dir)?.sync_all() };
        synced.and_then(|()| named()).inspect_err(|_| {
            // The next caller gets the error as well, unless its sync succeeds.
            let mut state = self.state();
            state.is_named = false;
            state.segments.values_mut().for_each(|segment| segment.is_synced = false);
        })
    }

    /// The server has confirmed a write.
    pub(crate) fn confirmed(&self, write: Confirmed) {
        if let Some(segment) = self.state().segments.get_mut(&write.place.segment) {
            segment.unconfirmed -= 1;
            segment.confirmed.push(write);
        }
    }

    /// The bytes of a write are kept aside.
    pub(crate) fn kept_aside(&self, place: Place) {
        if let Some(segment) = self.state().segments.get_mut(&place.segment) {
            segment.unconfirmed -= 1;
        }
    }

    /// There is another connection: the server may have lost what is not on its disk. Returns the confirmed writes of all
    /// segments, which are not confirmed any more.
    pub(crate) fn doubt(&self) -> Vec<Confirmed> {
        let mut state = self.state();
        let mut all = Vec::new();
        for segment in state.segments.values_mut() {
            segment.unconfirmed += segment.confirmed.len() as u64;
            all.append(&mut segment.confirmed);
            if segment.phase == Phase::Syncing {
                segment.phase = Phase::Doubted;
            }
        }
        all
    }

    /// The oldest segment, if all of it is confirmed and it takes no more writes: its files are to be synced by the server.
    pub(crate) fn ready(&self) -> Option<(u64, Vec<StorePath>)> {
        let mut state = self.state();
        let (&number, segment) = state.segments.iter_mut().next()?;
        if segment.phase == Phase::Open && segment.touched.elapsed() >= IDLE {
            segment.phase = Phase::Sealed;
        }
        let is_ready = segment.phase == Phase::Sealed && segment.unconfirmed == 0;
        is_ready.then(|| {
            segment.phase = Phase::Syncing;
            (number, segment.files.values().cloned().collect())
        })
    }

    /// The files of a segment were not synced: it is ready once more.
    pub(crate) fn not_released(&self, number: u64) {
        if let Some(segment) = self.state().segments.get_mut(&number) {
            segment.phase = Phase::Sealed;
        }
    }

    /// The files of a segment are synced: the server's disk has all of it, unless that is in doubt. Returns its writes, and who
    /// has waited for that.
    pub(crate) fn released(&self, number: u64) -> (Vec<Confirmed>, Vec<Call>) {
        let mut state = self.state();
        let mut confirmed = Vec::new();
        match state.segments.get_mut(&number) {
            Some(segment) if segment.phase == Phase::Doubted => segment.phase = Phase::Sealed,
            Some(segment) => {
                confirmed.append(&mut segment.confirmed);
                // One that stays is sent once more, which changes nothing unless the file has been changed.
                let _ = fs::remove_file(&segment.path);
                state.segments.remove(&number);
            }
            None => {}
        }
        let waits = std::mem::take(&mut state.waits);
        let (later, now): (Vec<_>, Vec<_>) =
            waits.into_iter().partition(|(paths, _)| state.has_any(paths));
        state.waits = later;
        let call = |(_, done): (_, OnReleased)| -> Call { Box::new(move || done(Ok(()))) };
        (confirmed, now.into_iter().map(call).collect())
    }

    /// Calls `done` when nothing of these paths, and of what is below them, is in the journal.
    pub(crate) fn after(
        &self,
        paths: Vec<StorePath>,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let mut state = self.state();
        if !state.has_any(&paths) {
            drop(state);
            return done(Ok(()));
        }
        state.seal();
        state.waits.push((paths, Box::new(done)));
    }

    /// Takes no more writes into the present segment, so that it can go.
    pub(crate) fn seal(&self) {
        self.state().seal();
    }

    /// Callers that wait receive this error.
    pub(crate) fn give_up(&self, why: Errno) {
        let waits = std::mem::take(&mut self.state().waits);
        waits.into_iter().for_each(|(_, done)| done(Err(why)));
    }

    /// Whether writes to a path are in the journal.
    pub(crate) fn has(&self, path: &StorePath) -> bool {
        self.state().has_any(std::slice::from_ref(path))
    }
}

impl State {
    fn seal(&mut self) {
        if let Some(mut last) = self.segments.last_entry()
            && last.get().phase == Phase::Open
        {
            last.get_mut().phase = Phase::Sealed;
        }
    }

    fn has_any(&self, paths: &[StorePath]) -> bool {
        let files = self.segments.values().flat_map(|segment| segment.files.values());
        let is_one =
            |file: &StorePath| paths.iter().any(|path| crate::nodes::is_within(path, file));
        files.into_iter().any(is_one)
    }
}

/// Refuses a journal that another user may have made, or may exchange.
fn believed(below: &Path, dir: &Path) -> io::Result<()> {
    const OTHERS_WRITE_BIT: u32 = 0o002;
    const STICKY_BIT: u32 = 0o1000;
    let refused = |path: &Path, why: &str| io::Error::other(format!("{}: {why}", path.display()));
    let mode = fs::metadata(below)?.permissions().mode();
    if mode & OTHERS_WRITE_BIT != 0 && mode & STICKY_BIT == 0 {
        return Err(refused(below, "other users may exchange what is in it"));
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let held = File::options().read(true).custom_flags(flags.bits() as i32).open(dir)?;
    trust(&held, Owners::User, Others::Read).map_err(|why| refused(dir, &why.to_string()))
}

/// The directory of a source.
pub(crate) fn name_of(source: &str) -> String {
    let plain = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => char::from(byte).to_string(),
        byte => format!("_{byte:02x}"),
    };
    source.bytes().map(plain).collect()
}

/// The numbers of the segments in a directory, in order.
fn numbers(dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests;
