//! Arriving objects: parts in any order are assembled into segments, and segments become jobs of the disk.

use super::board::Board;
use super::disk::Job;
use super::fault::{Fault, Stopped};
use super::incoming::Incoming;
use crate::error::PairError;
use crossbeam_queue::SegQueue;
use hikyaku_net::ReadError;
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_reach::ObjectReceiver;
use hikyaku_transfer::{Assembly, Layout, Whole};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// The contents of an object: a file, and consecutive ranges of it.
pub(crate) struct Cargo {
    pub(crate) incoming: Arc<Incoming>,
    pub(crate) layout: Layout,
}

/// Cargo by the object's number, from the stream of messages to the thread that reads the object; `None` if the object is
/// to be refused.
#[derive(Default)]
pub(crate) struct Manifest(Board<Option<Cargo>>);

/// Code that refuses an object whose file could not be created.
const UNWANTED: u64 = 2;
/// Maximum number of objects that the sender has announced and not opened. An honest sender announces one at a time.
const MOST_WAITING: usize = 64;

impl Manifest {
    pub(crate) fn tell(
        &self,
        object: u32,
        cargo: Option<Cargo>,
        fault: &Fault,
    ) -> Result<(), Stopped> {
        if self.0.pin(object, cargo) > MOST_WAITING {
            return Err(
                fault.report(PairError::ended("the sender speaks of too many objects at once"))
            );
        }
        Ok(())
    }
}

/// Reads an object to its end, or until the copy is complete: a sender may open an object without announcing it, or never
/// end one.
pub(crate) fn gather(
    mut object: ObjectReceiver,
    manifest: &Manifest,
    jobs: &SyncSender<Job>,
    (fault, stop): (&Fault, &Stop),
) -> Result<(), Stopped> {
    let Some(Cargo { incoming, layout }) = manifest.0.take(object.id().0, fault, stop)? else {
        object.stop(UNWANTED);
        return Ok(());
    };
    let mut assembly = Assembly::new(incoming.file);
    let back = Arc::new(SegQueue::new());
    let mut ready = Vec::new();
    loop {
        let part = match wait_for(object.next(), stop)? {
            Ok(Some(part)) => part,
            Ok(None) => return Ok(()),
            // The sender gave the file up, and sends the reason in a message.
            Err(ReadError::Reset(_)) => return Ok(()),
            Err(error) => return Err(fault.report(error)),
        };
        if incoming.is_over() {
            // The file could not be written, and the reason was sent to the sender.
            object.stop(UNWANTED);
            return Ok(());
        }
        let (mut offset, run) = part;
        for piece in run.pieces() {
            let mut piece = piece;
            while !piece.is_empty() {
                let beyond = || PairError::ended("the sender sent more of a file than it spoke of");
                let (at, room) = layout.locate(offset).ok_or_else(|| fault.report(beyond()))?;
                let (here, rest) = piece.split_at(piece.len().min(room as usize));
                assembly.place(at, here, &mut ready).map_err(|error| fault.report(error))?;
                offset += here.len() as u64;
                piece = rest;
            }
        }
        for whole in ready.drain(..) {
            give(whole, &incoming, &back, jobs);
        }
        while let Some(buffer) = back.pop() {
            assembly.recycle(buffer);
        }
    }
}

/// Interval between checks for a stop, which does not wake a thread that waits for the other end.
const LOOK: Duration = Duration::from_millis(100);

/// Waits for a future, unless the copy is stopped.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>, stop: &Stop) -> Result<T, Stopped> {
    let mut future = pin!(future);
    loop {
        match wait(future.as_mut(), stop, Some(Instant::now() + LOOK)) {
            Ok(done) => return Ok(done),
            Err(Cut::Stopped) => return Err(Stopped),
            Err(Cut::TooLate) => {}
        }
    }
}

fn give(
    whole: Whole,
    incoming: &Arc<Incoming>,
    back: &Arc<SegQueue<Vec<u8>>>,
    jobs: &SyncSender<Job>,
) {
    // The pool outlives all senders of jobs.
    let _ = jobs.send(Job::Segment(incoming.clone(), whole, back.clone()));
}
