//! Distribution of the sources: directories and links become messages, small files go to their readers, and large ones to
//! the lane.

use super::before::{Before, There};
use super::complaints::Complaints;
use super::knowledge::Knowledge;
use super::small::Small;
use crate::fault::{Fault, Stopped};
use crate::lane::{Lane, Load, LoadError};
use crate::read::{ReadSource, Source, named};
use crate::spot::Spot;
use crate::version::of_meta;
use crate::walk::{Found, FoundKind};
use crate::{Options, SMALL};
use hikyaku_job::Meter;
use hikyaku_reach::{Out, TalkError};
use hikyaku_transfer::{
    Attribute, Attributes, Entry, EntryId, EntryKind, FromSender, Geometry, Hole, Owners, Pass,
    Proven, SEGMENT, SegmentIndex, Version,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

/// Maximum number of holes in a message.
const HOLES: usize = 4096;

/// The thread that distributes the sources.
pub(super) struct Feeder<'a> {
    pub(super) out: Out,
    pub(super) lane: Lane<'a>,
    pub(super) small: SyncSender<Small>,
    pub(super) complaints: Complaints<'a>,
    pub(super) meter: &'a Meter,
    pub(super) fault: &'a Fault,
    pub(super) large: HashMap<EntryId, Spot>,
    pub(super) next: u64,
    pub(super) options: &'a Options,
    pub(super) knowledge: Knowledge,
}

impl Feeder<'_> {
    pub(super) fn say(&self, message: &FromSender) -> Result<(), Stopped> {
        self.out.say(message).map_err(|error| self.fault.report(error))
    }

    pub(super) fn all(&mut self, found: &Receiver<Found>) -> Result<(), Stopped> {
        while let Ok(found) = found.recv() {
            if self.fault.is_there() {
                return Err(Stopped);
            }
            self.one(found)?;
        }
        // A sender without files must not end before the receiver has begun.
        self.knowledge.wait().map(drop)
    }

    fn one(&mut self, found: Found) -> Result<(), Stopped> {
        let Found { path, spot, kind, mode, modified, owner, version } = found;
        let owner =
            (self.options.rules.owners == Owners::Kept).then_some((owner.user, owner.group));
        let id = EntryId(self.next);
        self.next += 1;
        let size = match kind {
            FoundKind::File(size) => size,
            FoundKind::Dir => {
                let attributes = self.attributes_of_dir(&spot);
                let kind = EntryKind::Dir;
                let entry = Entry { id, path, mode, modified, version, kind, owner, attributes };
                return self.say(&FromSender::Entry(entry));
            }
            FoundKind::Link(to) => {
                if self.options.rules.pass == Pass::DryRun {
                    self.meter.add_rehearsed();
                }
                let (kind, attributes) = (EntryKind::Link(to), Vec::new());
                let entry = Entry { id, path, mode, modified, version, kind, owner, attributes };
                return self.say(&FromSender::Entry(entry));
            }
            FoundKind::Stream(spring) => {
                let (kind, attributes) = (EntryKind::File { size: 0 }, Vec::new());
                let version = Version(hikyaku_crypto::random_array());
                let entry = Entry { id, path, mode, modified, version, kind, owner, attributes };
                return self.pour(entry, &spot, spring);
            }
        };
        // The list of hashes has names at the destination, which the receiver reports.
        let known = match self.meter.wants_hashes() {
            true => Some(self.knowledge.wait()?),
            false => self.knowledge.now(size)?,
        };
        if let Some(before) = &known
            && let Some(There::Whole(hash)) = before.kept(&path, version)
            && (hash.is_some() || !self.meter.wants_hashes())
        {
            self.meter.add_hash(&before.at_target(&path), || hash);
            self.meter.add_kept(size);
            // The receiver counts it as well, and reports it with the others.
            return self.say(&FromSender::Same { bytes: size });
        }
        let (kind, attributes) = (EntryKind::File { size }, Vec::new());
        let entry = Entry { id, path, mode, modified, version, kind, owner, attributes };
        if self.options.rules.pass == Pass::DryRun {
            self.meter.add_rehearsed();
            return self.say(&FromSender::Entry(entry));
        }
        if size <= SMALL {
            if known.is_none() {
                self.knowledge.has_sent(size);
            }
            let at_target =
                known.map_or_else(|| entry.path.clone(), |before| before.at_target(&entry.path));
            return self.small.send(Small { entry, spot, at_target }).map_err(|_| Stopped);
        }
        self.large(entry, spot)
    }

    fn large(&mut self, mut entry: Entry, spot: Spot) -> Result<(), Stopped> {
        let id = entry.id;
        let load = match load(id, &spot) {
            Ok(load) => Arc::new(load),
            Err(error) => {
                self.complaints.say(None, spot.failure(&error));
                return Ok(());
            }
        };
        // It may have changed since it was found.
        entry.kind = EntryKind::File { size: load.file.size() };
        entry.modified = load.source.meta().modified;
        entry.version = of_meta(load.source.meta());
        if self.options.rules.attributes == Attributes::Kept {
            match load.source.attributes() {
                Ok(attributes) => entry.attributes = attributes,
                Err(error) => self.complaints.say(None, spot.failure(&error)),
            }
        }
        let mut proven = Proven::nothing(load.file);
        let known = self.knowledge.now(load.file.size())?;
        if let Some(before) = &known {
            self.take_up(before, &entry, &mut proven);
        }
        self.say(&FromSender::Entry(entry.clone()))?;
        self.meter.file_begins(&entry.path, load.file.size());
        self.holes(&load, &mut proven)?;
        self.large.insert(id, spot.clone());
        match self.segments(&load, &entry, known, &mut proven) {
            Ok(before) => {
                let path = before.at_target(&entry.path);
                self.meter.add_hash(&path, || proven.hash());
                self.meter.file_ends(&entry.path, load.file.size());
                Ok(())
            }
            Err(error) => {
                if let Some(error) = self.lane.judge(error)? {
                    self.complaints.say(Some(id), spot.failure(&error));
                }
                Ok(())
            }
        }
    }

    /// Sends the segments of a file that the receiver lacks. Before its report, that is the beginning of the file, up to the
    /// amount that may be sent in vain.
    fn segments(
        &mut self,
        load: &Arc<Load>,
        entry: &Entry,
        known: Option<Arc<Before>>,
        proven: &mut Proven,
    ) -> Result<Arc<Before>, LoadError> {
        let before = match known {
            Some(before) => before,
            None => {
                let most = self.knowledge.may_send() / SEGMENT;
                let first = lacking(proven).take(most as usize).collect::<Vec<_>>();
                let knowledge = &mut self.knowledge;
                self.lane.send(load, &first, proven, &mut || knowledge.is_silent())?;
                self.knowledge.has_sent(first.len() as u64 * SEGMENT);
                let before = self.knowledge.wait().map_err(|_| TalkError::Closed)?;
                if let Some(There::Whole(Some(_))) = before.kept(&entry.path, entry.version) {
                    // The receiver keeps the file, and reports its size.
                    return Ok(before);
                }
                self.take_up(&before, entry, proven);
                before
            }
        };
        let rest = lacking(proven).collect::<Vec<_>>();
        self.lane.send(load, &rest, proven, &mut || true)?;
        self.lane.finish(load)?;
        Ok(before)
    }

    /// Notes what the receiver has of a file.
    fn take_up(&self, before: &Before, entry: &Entry, proven: &mut Proven) {
        let file = proven.file();
        let Some(There::Part(runs)) = before.kept(&entry.path, entry.version) else {
            return;
        };
        let mut theirs = Proven::nothing(file);
        for (first, hashes) in runs {
            theirs.insert_run(*first, hashes);
            proven.insert_run(*first, hashes);
        }
        self.meter.add_kept(theirs.bytes());
    }

    /// Sends the positions of holes. Their bytes are not sent.
    fn holes(&self, load: &Load, proven: &mut Proven) -> Result<(), Stopped> {
        let Some(mut all) = load.source.holes(load.file) else { return Ok(()) };
        loop {
            let holes: Vec<Hole> =
                all.by_ref().filter(|&hole| proven.add_hole(hole)).take(HOLES).collect();
            let is_last = holes.len() < HOLES;
            // Even if there is none of this size, the file has some.
            self.say(&FromSender::Holes { id: load.id, holes })?;
            if is_last {
                return Ok(());
            }
        }
    }

    fn attributes_of_dir(&self, spot: &Spot) -> Vec<Attribute> {
        if self.options.rules.attributes == Attributes::Dropped {
            return Vec::new();
        }
        match spot.folder().and_then(named) {
            Ok(attributes) => attributes,
            Err(error) => {
                self.complaints.say(None, spot.failure(&error));
                Vec::new()
            }
        }
    }
}

/// Opens a file.
pub(super) fn load(id: EntryId, spot: &Spot) -> Result<Load, ReadSource> {
    let source = Source::open(spot)?;
    let file = Geometry::new(source.meta().size).ok_or(ReadSource::TooLarge)?;
    Ok(Load { id, source, file })
}

/// Segments that are neither proven nor holes.
fn lacking(proven: &Proven) -> impl Iterator<Item = SegmentIndex> {
    proven.file().indices().filter(|&index| proven.lacks(index))
}
