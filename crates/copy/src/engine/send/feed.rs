//! What goes where: directories and links as messages, small files to their readers, large ones out.

use super::complaints::Complaints;
use super::hear::Before;
use super::small::Small;
use crate::engine::fault::{Fault, Stopped};
use crate::engine::lane::{Lane, Load};
use crate::engine::meter::Meter;
use crate::engine::read::{ReadSource, Source, describe};
use crate::engine::talk::Out;
use crate::engine::walk::{Found, FoundKind, shown};
use crate::engine::{Options, SMALL};
use hikyaku_transfer::{
    Attribute, Entry, EntryId, EntryKind, FromSender, Geometry, Hole, Kept, Proven, SEGMENT,
    SegmentIndex,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender};

/// The other end is told how much there is after so many files.
const TELL_EVERY: u64 = 1000;

/// Holes that are told at once.
const HOLES: usize = 4096;

/// The thread that finds out what goes where.
pub(super) struct Feeder<'a> {
    pub(super) out: Out,
    pub(super) lane: Lane<'a>,
    pub(super) small: SyncSender<Small>,
    pub(super) complaints: Complaints<'a>,
    pub(super) meter: &'a Meter,
    pub(super) fault: &'a Fault,
    pub(super) large: HashMap<EntryId, PathBuf>,
    pub(super) next: u64,
    pub(super) options: &'a Options,
}

impl Feeder<'_> {
    fn say(&self, message: &FromSender) -> Result<(), Stopped> {
        self.out.say(message).map_err(|error| self.fault.report(error))
    }

    pub(super) fn all(&mut self, found: &Receiver<Found>, before: &Before) -> Result<(), Stopped> {
        while let Ok(found) = found.recv() {
            if self.fault.is_there() {
                return Err(Stopped);
            }
            self.one(found, before)?;
            if self.next % TELL_EVERY == 1 {
                self.tell_total()?;
            }
        }
        self.tell_total()
    }

    fn one(&mut self, found: Found, before: &Before) -> Result<(), Stopped> {
        let Found { path, here, kind, mode, modified } = found;
        let id = EntryId(self.next);
        self.next += 1;
        let size = match kind {
            FoundKind::File(size) => size,
            FoundKind::Dir => {
                let attributes = self.attributes_of_dir(&here);
                let kind = EntryKind::Dir;
                let entry = Entry { id, path, mode, modified, kind, attributes };
                return self.say(&FromSender::Entry(entry));
            }
            FoundKind::Link(to) => {
                let (kind, attributes) = (EntryKind::Link(to), Vec::new());
                let entry = Entry { id, path, mode, modified, kind, attributes };
                return self.say(&FromSender::Entry(entry));
            }
        };
        let kept = before.kept(&path, size, modified);
        if let Some(Kept::Whole(hash)) = kept
            && (hash.is_some() || !self.meter.wants_hashes())
        {
            self.meter.add_hash(&before.at_target(&path), || *hash);
            self.meter.add_kept(size);
            self.meter.add_file();
            return Ok(());
        }
        let (kind, attributes) = (EntryKind::File { size }, Vec::new());
        let entry = Entry { id, path, mode, modified, kind, attributes };
        if self.options.rehearsal {
            return self.say(&FromSender::Entry(entry));
        }
        if size <= SMALL {
            let at_target = before.at_target(&entry.path);
            return self.small.send(Small { entry, here, at_target }).map_err(|_| Stopped);
        }
        self.large(entry, here, before)
    }

    fn large(&mut self, mut entry: Entry, here: PathBuf, before: &Before) -> Result<(), Stopped> {
        let id = entry.id;
        let mut load = match load(id, here.clone(), Vec::new()) {
            Ok(load) => load,
            Err(error) => {
                self.complaints.say(None, describe(&error));
                return Ok(());
            }
        };
        // It may have changed since it was found.
        entry.kind = EntryKind::File { size: load.file.size() };
        entry.modified = load.source.meta().modified;
        if self.options.keep_attributes {
            match load.source.attributes(&here) {
                Ok(attributes) => entry.attributes = attributes,
                Err(error) => self.complaints.say(None, describe(&error)),
            }
        }
        let kept = before.kept(&entry.path, load.file.size(), entry.modified);
        let mut proven = proven(load.file, kept);
        self.meter.add_kept(proven.bytes());
        let path = before.at_target(&entry.path);
        self.say(&FromSender::Entry(entry))?;
        self.holes(&load, &mut proven)?;
        load.segments = load.file.indices().filter(|&index| proven.lacks(index)).collect();
        self.large.insert(id, here);
        match self.lane.send(load, &mut proven) {
            Ok(()) => {
                self.meter.add_hash(&path, || proven.hash());
                Ok(())
            }
            Err(error) => {
                if let Some(error) = self.lane.judge(error)? {
                    self.complaints.say(Some(id), describe(&error));
                }
                Ok(())
            }
        }
    }

    /// Tells of holes, which are not sent.
    fn holes(&self, load: &Load, proven: &mut Proven) -> Result<(), Stopped> {
        let Some(mut all) = load.source.holes(load.file) else { return Ok(()) };
        loop {
            let holes: Vec<Hole> =
                all.by_ref().filter(|&hole| proven.add_hole(hole)).take(HOLES).collect();
            let is_last = holes.len() < HOLES;
            for hole in &holes {
                let from = u64::from(hole.first.0) * SEGMENT;
                let to = load.file.size().min(from + u64::from(hole.count) * SEGMENT);
                self.meter.sub_total(to - from);
            }
            // Even if there is none of this size, the file has some.
            self.say(&FromSender::Holes { id: load.id, holes })?;
            if is_last {
                return self.tell_total();
            }
        }
    }

    fn attributes_of_dir(&self, here: &Path) -> Vec<Attribute> {
        if !self.options.keep_attributes {
            return Vec::new();
        }
        match Source::open(here).and_then(|dir| dir.attributes(here)) {
            Ok(attributes) => attributes,
            Err(error) => {
                self.complaints.say(None, describe(&error));
                Vec::new()
            }
        }
    }

    fn tell_total(&self) -> Result<(), Stopped> {
        let tally = self.meter.tally();
        self.say(&FromSender::Total { files: tally.total_files, bytes: tally.total_bytes })
    }
}

/// Opens a file to send some segments of it.
pub(super) fn load(
    id: EntryId,
    here: PathBuf,
    segments: Vec<SegmentIndex>,
) -> Result<Load, ReadSource> {
    let source = Source::open(&here)?;
    let changed = || ReadSource::Changed { path: shown(&here) };
    let file = Geometry::new(source.meta().size).ok_or_else(changed)?;
    Ok(Load { id, here, source, file, segments })
}

/// What the receiver has of a file.
fn proven(file: Geometry, kept: Option<&Kept>) -> Proven {
    let mut proven = Proven::nothing(file);
    if let Some(Kept::Segments(runs)) = kept {
        for (first, hashes) in runs {
            proven.insert_run(*first, hashes);
        }
    }
    proven
}
