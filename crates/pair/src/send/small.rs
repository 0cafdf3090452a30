//! Small files: several threads read them, so that a disk has several requests, and each goes into one message.

use super::complaints::Complaints;
use crate::read::{ReadSource, Source};
use crate::spot::Spot;
use crate::version::of_meta;
use crate::{Options, SMALL};
use hikyaku_transfer::{Attributes, Entry, EntryKind, FileHash, FromSender};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};

/// A small file to be read.
pub(super) struct Small {
    pub(super) entry: Entry,
    pub(super) spot: Spot,
    /// Its path at the target.
    pub(super) at_target: Vec<u8>,
}

/// The loop of a thread that reads small files, until its queue is closed.
pub(super) fn read_small(
    queue: &Mutex<Receiver<Small>>,
    options: &Options,
    complaints: &Complaints<'_>,
) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Small { mut entry, spot, at_target }) = next else { return };
        if complaints.fault.is_there() {
            continue;
        }
        let read = Source::open(&spot).and_then(|source| {
            entry.modified = source.meta().modified;
            entry.version = of_meta(source.meta());
            // It may have grown since it was found.
            if source.meta().size > SMALL {
                return Err(ReadSource::Changed);
            }
            if options.rules.attributes == Attributes::Kept {
                entry.attributes = source.attributes()?;
            }
            source.read_all()
        });
        match read {
            Ok(bytes) => {
                if let EntryKind::File { size } = entry.kind {
                    complaints.meter.correct_total(size, bytes.len() as u64);
                }
                entry.kind = EntryKind::File { size: bytes.len() as u64 };
                let hash = FileHash(*blake3::hash(&bytes).as_bytes());
                complaints.meter.add_hash(&at_target, || Some(hash));
                complaints.meter.file_at_once(&entry.path, bytes.len() as u64);
                let message = FromSender::Small { entry, hash };
                if let Err(error) = complaints.out.say_with(&message, &bytes) {
                    complaints.fault.report(error);
                }
            }
            Err(error) => complaints.say(None, spot.failure(&error)),
        }
    }
}
