//! Messages of the receiver: existing files, requests to send segments again, progress, failures.

use super::before::Before;
use crate::error::PairError;
use crate::fault::{Fault, Stopped};
use hikyaku_job::{End, Meter};
use hikyaku_reach::In;
use hikyaku_transfer::{EntryId, FromReceiver, SegmentIndex, TargetKind, decode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};

/// Destinations of the receiver's messages.
pub(super) struct Replies<'a> {
    pub(super) ready: SyncSender<Before>,
    pub(super) again: Asking,
    /// Set when the end of the copy is sent to the receiver.
    pub(super) is_all_said: &'a AtomicBool,
}

/// The receiver reports the end of the copy before the sender has sent everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the receiving end says that it has all before it was sent all")]
pub(crate) struct TooSoon;

/// Segments that are to be sent again.
type Again = (EntryId, Vec<SegmentIndex>);

/// The requesting end of the queue.
pub(super) struct Asking {
    wishes: Sender<Again>,
    held: Arc<AtomicUsize>,
}

/// The reading end of the queue.
pub(super) struct Asked {
    wishes: Receiver<Again>,
    held: Arc<AtomicUsize>,
}

/// Maximum memory of unanswered requests, in bytes: an honest receiver requests a few segments of a file.
const MOST_ASKED: usize = 64 << 20;
/// Bytes of a request without its segments.
const WISH: usize = 64;

/// Creates the queue of requests.
pub(super) fn wishes() -> (Asking, Asked) {
    let (give, take) = channel();
    let held = Arc::new(AtomicUsize::new(0));
    (Asking { wishes: give, held: held.clone() }, Asked { wishes: take, held })
}

impl Asking {
    /// Adds a request. Returns `false` if the requests exceed [`MOST_ASKED`].
    fn ask(&self, again: Again) -> bool {
        let size = size(&again);
        // The size is added first, because the reading thread subtracts it.
        let held = self.held.fetch_add(size, Ordering::Relaxed) + size;
        // The reading end is closed only after a fault.
        let _ = self.wishes.send(again);
        held <= MOST_ASKED
    }
}

impl Asked {
    /// The next request; `None` after the last one.
    pub(super) fn next(&self) -> Option<Again> {
        let again = self.wishes.recv().ok()?;
        self.held.fetch_sub(size(&again), Ordering::Relaxed);
        Some(again)
    }
}

const fn size(again: &Again) -> usize {
    WISH + again.1.len() * size_of::<SegmentIndex>()
}

/// Reads the receiver's messages until the end of the copy.
pub(super) fn hear(
    mut incoming: In,
    replies: Replies<'_>,
    fault: &Fault,
    meter: &Meter,
) -> Result<(), Stopped> {
    let mut before = Some(Before::default());
    loop {
        let body = incoming.hear().map_err(|error| fault.report(error))?;
        let Some(body) = body else {
            return Err(
                fault.report(PairError::ended("the receiving end stopped before it had finished"))
            );
        };
        let (message, _) = decode::<FromReceiver>(body).map_err(|error| fault.report(error))?;
        match message {
            FromReceiver::Has { path, version, kept } => {
                if let Some(before) = &mut before {
                    before.add(&path, version, kept);
                }
            }
            FromReceiver::Ready { renamed, target } => {
                if target == TargetKind::Stream {
                    meter.set_stream();
                }
                if let Some(mut before) = before.take() {
                    before.rename(renamed);
                    // The sending thread ends at a fault.
                    let _ = replies.ready.send(before);
                }
            }
            FromReceiver::Again { id, segments } => {
                if !replies.again.ask((id, segments)) {
                    return Err(
                        fault.report(PairError::ended("the receiving end asks for too much again"))
                    );
                }
            }
            FromReceiver::Progress { bytes, files } => {
                meter.add_bytes(bytes);
                meter.add_files(files);
            }
            FromReceiver::Left { bytes } => meter.add_kept(bytes),
            FromReceiver::Failed { path, failure } => {
                meter.remove_hash(&path);
                match failure {
                    Some(failure) => meter.add_failure(End::There, &failure),
                    None => meter.count_failure(),
                }
            }
            FromReceiver::Incomplete { failure } => meter.add_failure(End::There, &failure),
            FromReceiver::Remark { text } => meter.add_remark(&text),
            FromReceiver::Would { path } => {
                meter.add_would(&path).map_err(|error| fault.report(error))?;
            }
            // spec: copy-end-1
            FromReceiver::Finished if replies.is_all_said.load(Ordering::Acquire) => return Ok(()),
            FromReceiver::Finished => return Err(fault.report(TooSoon)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unanswered_requests_to_resend_are_bounded() {
        let (asking, asked) = wishes();
        let wish = || (EntryId(0), vec![SegmentIndex(0); 100_000]);
        let granted = (0..1000).take_while(|_| asking.ask(wish())).count();
        assert!(granted < 200, "{granted} of 400 kB each");
        let (asking, heeded) = wishes();
        for _ in 0..1000 {
            assert!(asking.ask(wish()) && heeded.next().is_some());
        }
        drop(asked);
    }

    #[test]
    fn a_wish_may_be_heeded_before_its_teller_knows() {
        let (asking, asked) = wishes();
        std::thread::scope(|scope| {
            scope.spawn(move || while asked.next().is_some() {});
            for n in 0..200_000 {
                assert!(asking.ask((EntryId(n), vec![SegmentIndex(0)])), "wish {n}");
            }
            drop(asking);
        });
    }
}
