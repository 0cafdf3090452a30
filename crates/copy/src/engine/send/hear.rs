//! What the receiver says.

use crate::engine::fault::Fault;
use crate::engine::landing::renamed;
use crate::engine::meter::Meter;
use crate::engine::talk::In;
use anyhow::anyhow;
use hikyaku_fs::{Shown, sentence};
use hikyaku_transfer::{EntryId, FromReceiver, Kept, SegmentIndex, decode};
use std::collections::HashMap;
use std::sync::mpsc::{Sender, SyncSender};

/// What the receiver said before the first byte was sent.
#[derive(Default)]
pub(super) struct Before {
    kept: HashMap<Vec<u8>, (u64, (i64, u32), Kept)>,
    /// The one source's name at the target, where that is another.
    renamed: Option<Vec<u8>>,
}

impl Before {
    /// What there is of a file may be told in portions.
    fn add(&mut self, path: Vec<u8>, (size, modified): (u64, (i64, u32)), kept: Kept) {
        match (self.kept.get_mut(&path), kept) {
            (Some((then, when, Kept::Segments(runs))), Kept::Segments(more))
                if (*then, *when) == (size, modified) =>
            {
                runs.extend(more);
            }
            (_, kept) => {
                self.kept.insert(path, (size, modified, kept));
            }
        }
    }

    /// What `path` is called at the target.
    pub(super) fn at_target(&self, path: &[u8]) -> Vec<u8> {
        match &self.renamed {
            Some(name) => renamed(path, name),
            None => path.to_vec(),
        }
    }

    /// What there is at the target of the file that is `path` here, if it is of this size and time.
    pub(super) fn kept(&self, path: &[u8], size: u64, modified: (i64, u32)) -> Option<&Kept> {
        let (then, when, kept) = self.kept.get(&self.at_target(path))?;
        (*then == size && *when == modified).then_some(kept)
    }
}

/// What the reader of the receiver's messages hands on.
pub(super) struct Replies {
    pub(super) ready: SyncSender<Before>,
    pub(super) again: Sender<(EntryId, Vec<SegmentIndex>)>,
}

/// Hears the receiver out.
pub(super) fn hear(mut incoming: In, replies: Replies, fault: &Fault, meter: &Meter) {
    let mut before = Some(Before::default());
    loop {
        let message = match incoming.next() {
            Ok(Some(body)) => decode::<FromReceiver>(body),
            Ok(None) => {
                fault.report(anyhow!("the receiving end stopped before it had finished"));
                return;
            }
            Err(error) => {
                fault.report(error);
                return;
            }
        };
        match message {
            Err(error) => {
                fault.report(error);
                return;
            }
            Ok((FromReceiver::Has { path, size, modified, kept }, _)) => {
                if let Some(before) = &mut before {
                    before.add(path, (size, modified), kept);
                }
            }
            Ok((FromReceiver::Ready { renamed }, _)) => {
                if let Some(mut before) = before.take() {
                    before.renamed = renamed;
                    // The sender may have met a fault.
                    let _ = replies.ready.send(before);
                }
            }
            Ok((FromReceiver::Again { id, segments }, _)) => {
                let _ = replies.again.send((id, segments));
            }
            Ok((FromReceiver::Progress { bytes, files }, _)) => {
                meter.add_bytes(bytes);
                meter.add_files(files);
            }
            Ok((FromReceiver::Left { bytes }, _)) => meter.add_kept(bytes),
            Ok((FromReceiver::Failed { path, why }, _)) => {
                meter.remove_hash(&path);
                meter.add_failure(sentence(&why));
            }
            Ok((FromReceiver::Would { path }, _)) => {
                meter.add_note(Shown::new(&path).to_string());
            }
            Ok((FromReceiver::Finished, _)) => return,
        }
    }
}
