//! Writes that an earlier mount has left in the journal. They are sent before anything else.
//!
//! A file is written to only if no other client has changed it meanwhile. It must be the same file (its inode number), and
//! either have the version from before the first write, or a state that the writes explain: they arrive in their order, so
//! the first of those that are left has arrived, and the size is that after some of them. Otherwise the writes are kept
//! aside.

use super::log::{Logged, Record, Target, read};
use super::{IN_FLIGHT_BYTES_MAX, Stage, numbers};
use crate::refused::may_pass;
use anyhow::{Context, Error, Result, bail};
use hikyaku_remote::{Client, Edit, Piece, RemoteError, Seen};
use hikyaku_store::{ErrorKind, Found, Kind, StorePath};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// The contents of the journal.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// Bytes that the server has, and of how many files.
    pub(crate) bytes: u64,
    pub(crate) files: usize,
    /// Files whose bytes are kept aside, and why.
    pub(crate) aside: Vec<(StorePath, String, PathBuf)>,
}

/// The writes to a file, in their order.
#[derive(Default)]
struct Left {
    targets: Vec<Target>,
    writes: Vec<Write>,
}

struct Write {
    segment: Arc<File>,
    from: u64,
    length: u32,
    at: u64,
}

impl Stage {
    /// Sends what an earlier mount has left.
    ///
    /// # Errors
    ///
    /// The journal cannot be read, the server is lost, or it refuses the bytes for a reason that may pass. They stay in the
    /// journal then.
    pub(crate) fn replay(&self, client: &Client) -> Result<Replayed> {
        let segments = numbers(&self.dir)?;
        let mut files: BTreeMap<StorePath, Left> = BTreeMap::new();
        for number in &segments {
            let path = self.dir.join(number.to_string());
            let file = File::open(&path).with_context(|| path.display().to_string())?;
            let records = read(&file).with_context(|| path.display().to_string())?;
            collect(&Arc::new(file), records, &mut files);
        }
        let mut replayed = Replayed::default();
        for (path, file) in &files {
            match file.send(path, client).map_err(|error| about(path, error))? {
                Ok(()) => {
                    replayed.files += 1;
                    replayed.bytes += file.writes.iter().map(|w| u64::from(w.length)).sum::<u64>();
                }
                Err(why) => {
                    let mut aside = self.aside();
                    let mut kept = PathBuf::new();
                    for write in &file.writes {
                        let name = aside.keep(path, &why, (write.at, &write.bytes()?));
                        name.context("cannot keep bytes aside")?.clone_into(&mut kept);
                    }
                    replayed.aside.push((path.clone(), why, kept));
                }
            }
        }
        self.aside().sync().context("cannot keep bytes aside")?;
        for number in segments {
            fs::remove_file(self.dir.join(number.to_string()))?;
        }
        File::open(&self.dir)?.sync_all()?;
        Ok(replayed)
    }
}

/// Sorts the records of a segment by the files that they are of.
fn collect(segment: &Arc<File>, records: Vec<Logged>, files: &mut BTreeMap<StorePath, Left>) {
    let mut paths: BTreeMap<u64, StorePath> = BTreeMap::new();
    for Logged { record, from, length } in records {
        match record {
            Record::File(target) => {
                let Ok(path) = StorePath::new(&target.path) else { continue };
                paths.insert(target.file, path.clone());
                files.entry(path).or_default().targets.push(target);
            }
            Record::Write { file, at } => {
                let Some(path) = paths.get(&file) else { continue };
                let write = Write { segment: segment.clone(), from, length, at };
                files.entry(path.clone()).or_default().writes.push(write);
            }
        }
    }
}

/// The error with the file that it is about, which the words of a server have already.
fn about(path: &StorePath, error: Error) -> Error {
    match error.downcast_ref::<RemoteError>() {
        Some(RemoteError::Refused { .. }) => error,
        _ => error.context(path.to_string()),
    }
}

/// The file has been changed.
const CHANGED: &str = "somebody else has changed it";

impl Left {
    /// Writes to the file and syncs it. The inner error is the reason why its bytes must not be written.
    fn send(&self, path: &StorePath, client: &Client) -> Result<std::result::Result<(), String>> {
        let found = match client.look(path) {
            Ok(found) => found,
            Err(RemoteError::Refused { kind: ErrorKind::NotFound, .. }) => {
                return Ok(Err("it is gone".to_owned()));
            }
            Err(RemoteError::Refused { kind, text }) if !may_pass(kind) => return Ok(Err(text)),
            Err(error) => return Err(error.into()),
        };
        let Some(first) = self.targets.first() else { return Ok(Ok(())) };
        if found.kind != Kind::File || found.identity.number != first.identity.number {
            return Ok(Err("another file has its name".to_owned()));
        }
        if !self.is_ours(path, first, &found, client)? {
            return Ok(Err(CHANGED.to_owned()));
        }
        let mut writes = self.writes.iter().peekable();
        while writes.peek().is_some() {
            let (tell, hear) = channel();
            let (mut under_way, mut count) = (0, 0);
            while under_way < IN_FLIGHT_BYTES_MAX
                && let Some(write) = writes.next()
            {
                let (path, identity) = (path.as_bytes().to_vec(), found.identity);
                let edit = Edit::Write { path, identity, at: write.at, length: write.length };
                let tell = tell.clone();
                client.edit_then(edit, &write.bytes()?, move |done| drop(tell.send(done)));
                (under_way, count) = (under_way + u64::from(write.length), count + 1);
            }
            for done in hear.iter().take(count) {
                match done {
                    Ok(_) => {}
                    Err(RemoteError::Refused { kind, text }) if !may_pass(kind) => {
                        return Ok(Err(text));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let (tell, hear) = channel();
        let edit = Edit::Sync { path: path.as_bytes().to_vec() };
        client.edit_then(edit, &[], move |done| drop(tell.send(done)));
        match hear.recv() {
            Ok(Ok(_)) => Ok(Ok(())),
            Ok(Err(RemoteError::Refused { kind, text })) if !may_pass(kind) => Ok(Err(text)),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => bail!("the server does not answer"),
        }
    }

    /// Whether all changes of the file are those that these writes have made.
    fn is_ours(
        &self,
        path: &StorePath,
        first: &Target,
        found: &Found,
        client: &Client,
    ) -> Result<bool> {
        let version = Some((found.size, found.modified));
        if self.targets.iter().any(|target| target.base == version) {
            return Ok(true);
        }
        let (mut size, mut is_explained, mut cut) = (first.size, found.size == first.size, None);
        for write in &self.writes {
            let before = size;
            size = size.max(write.at + u64::from(write.length));
            is_explained |= size == found.size;
            if before < found.size && found.size < size && cut.is_none() {
                cut = Some(write.at..found.size);
            }
        }
        // A full file system takes a part of a write.
        let is_part = match cut.filter(|_| !is_explained) {
            Some(range) => self.has_range(path, (found, range), client)?,
            None => false,
        };
        if !is_explained && !is_part {
            return Ok(false);
        }
        if self.has_arrived(path, found, client)? {
            return Ok(true);
        }
        // Of a file that was written to before, the version in between is not known. A full file system changes the
        // time of a file nevertheless. Bytes behind the end replace nothing.
        let is_behind = self.writes.first().is_some_and(|write| write.at >= found.size);
        Ok(found.size == first.size && (first.base.is_none() || is_behind))
    }

    /// Whether the first write, or a later one in its place, has arrived.
    fn has_arrived(&self, path: &StorePath, found: &Found, client: &Client) -> Result<bool> {
        let Some(first) = self.writes.first().filter(|write| write.length > 0) else {
            return Ok(true);
        };
        // A full file system may have taken a part of it.
        let end = found.size.min(first.at + u64::from(first.length));
        if end <= first.at {
            return Ok(false);
        }
        self.has_range(path, (found, first.at..end), client)
    }

    /// Whether the file has bytes of these writes in a range, which is not longer than a write.
    fn has_range(
        &self,
        path: &StorePath,
        (found, range): (&Found, Range<u64>),
        client: &Client,
    ) -> Result<bool> {
        let length = (range.end - range.start) as u32;
        let (tell, hear) = channel();
        let (path, seen) = (path.as_bytes().to_vec(), Seen::from(found));
        let piece = Piece { path, seen, from: range.start, length };
        client.piece_then(piece, move |bytes| drop(tell.send(bytes)));
        let there = match hear.recv().context("the server does not answer")? {
            Ok(bytes) => bytes,
            // It is being changed.
            Err(RemoteError::Refused { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let mut is_ours = vec![false; length as usize];
        for write in &self.writes {
            let from = write.at.max(range.start);
            let to = range.end.min(write.at + u64::from(write.length));
            if from >= to {
                continue;
            }
            let bytes = write.bytes()?;
            for at in from..to {
                let here = (at - range.start) as usize;
                is_ours[here] |= bytes[(at - write.at) as usize] == there[here];
            }
        }
        Ok(is_ours.iter().all(|&is_ours| is_ours))
    }
}

impl Write {
    fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.length as usize];
        self.segment.read_exact_at(&mut bytes, self.from).context("cannot read the journal")?;
        Ok(bytes)
    }
}
