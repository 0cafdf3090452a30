//! Small files: read by several threads, for a disk is asked for many at once, and told with their
//! bytes.

use super::complaints::Complaints;
use crate::engine::read::{ReadSource, Source, describe};
use crate::engine::walk::shown;
use crate::engine::{Options, SMALL};
use hikyaku_transfer::{Entry, EntryKind, FileHash, FromSender};
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};

/// A small file to be read.
pub(super) struct Small {
    pub(super) entry: Entry,
    pub(super) here: PathBuf,
    /// What it is called at the target.
    pub(super) at_target: Vec<u8>,
}

/// What a reading thread does, until nobody can give it work.
pub(super) fn read_small(
    queue: &Mutex<Receiver<Small>>,
    options: &Options,
    complaints: &Complaints<'_>,
) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Small { mut entry, here, at_target }) = next else { return };
        if complaints.fault.is_there() {
            continue;
        }
        let read = Source::open(&here).and_then(|source| {
            entry.kind = EntryKind::File { size: source.meta().size };
            entry.modified = source.meta().modified;
            // It may have grown since it was found.
            if source.meta().size > SMALL {
                return Err(ReadSource::Changed { path: shown(&here) });
            }
            if options.keep_attributes {
                entry.attributes = source.attributes(&here)?;
            }
            source.read_all(&here)
        });
        match read {
            Ok(bytes) => {
                let hash = FileHash(*blake3::hash(&bytes).as_bytes());
                complaints.meter.add_hash(&at_target, || Some(hash));
                let message = FromSender::Small { entry, hash };
                if let Err(error) = complaints.out.say_with(&message, &bytes) {
                    complaints.fault.report(error);
                }
            }
            Err(error) => complaints.say(None, describe(&error)),
        }
    }
}
