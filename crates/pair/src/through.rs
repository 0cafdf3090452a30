//! Copies between two other hosts through this one: messages of the sender are forwarded to the receiver and back, so that
//! both work as if they were connected. No data are stored here.

use super::Options;
use super::board::Board;
use super::fault::{Fault, Stopped};
use super::gather::wait_for;
use super::send::TooSoon;
use crate::error::PairError;
use hikyaku_fs::{Kind, Shown};
use hikyaku_job::{Allowed, Claim, Claimant, End, Meter, just_made};
use hikyaku_net::blocking::{Stop, block_on, wait};
use hikyaku_net::{Bytes, ReadError, WriteError};
use hikyaku_reach::{Connection, ObjectReceiver};
use hikyaku_reach::{In, Out};
use hikyaku_transfer::{EntryId, FromReceiver, FromSender, Kept, Pass, TargetKind, decode};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Scope};

/// One of the two hosts.
pub(crate) struct Party<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) incoming: In,
    pub(crate) outgoing: Out,
}

/// Options of the copy, and the limits on the forwarded messages.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// The options of the copy.
    pub options: &'a Options,
    /// Names that the sender may send.
    pub allowed: &'a Allowed,
    /// Names that other parts of the copy have made.
    pub claims: Claimant<'a>,
}

/// Files and ranges that the sender's objects carry, by the objects' numbers.
type Pairs = Board<(EntryId, Vec<(u64, u64)>)>;

/// The way of objects to the receiver.
#[derive(Clone)]
struct Way<'a> {
    to: &'a Connection,
    onwards: Out,
    pairs: &'a Pairs,
    /// Bytes of all objects that wait for earlier ones.
    early: &'a AtomicUsize,
    fault: &'a Fault,
    stop: &'a Stop,
}

/// Maximum number of objects that the sender has announced and not opened.
const MOST_WAITING: usize = 64;

/// Maximum of bytes of all objects that wait for earlier bytes: more than any window holds.
const MOST_EARLY: usize = 1 << 30;
/// The code of an object that is given up.
const GIVEN_UP: u64 = 1;

/// Forwards a copy between two hosts. Returns when the receiver has finished, or at a fault.
pub(crate) fn through(
    from: Party<'_>,
    to: Party<'_>,
    terms: Terms<'_>,
    meter: &Meter,
    fault: &Fault,
) {
    let (pairs, stop, is_all_said) = (Pairs::default(), Stop::default(), AtomicBool::new(false));
    let (back, onwards, early) = (from.outgoing, to.outgoing, AtomicUsize::new(0));
    thread::scope(|scope| {
        let (pairs, stop, is_all_said, early) = (&pairs, &stop, &is_all_said, &early);
        let way = Way { to: to.connection, onwards: onwards.clone(), pairs, early, fault, stop };
        scope.spawn(move || {
            let noted = (pairs, is_all_said, stop);
            forth(from.incoming, &onwards, noted, terms, (meter, fault))
        });
        let objects = scope.spawn(move || accept(scope, from.connection, &way));
        let _ = answers(to.incoming, &back, terms.claims, meter, (fault, is_all_said, stop));
        stop.set();
        objects.thread().unpark();
        // The sender has received the end of the copy, or a fault: it sends nothing more.
        from.connection.close(hikyaku_net::code::DONE, "");
    });
}

/// From the sending to the receiving end.
fn forth(
    mut incoming: In,
    onwards: &Out,
    (pairs, is_all_said, stop): (&Pairs, &AtomicBool, &Stop),
    terms: Terms<'_>,
    (meter, fault): (&Meter, &Fault),
) -> Result<(), Stopped> {
    loop {
        let body = match incoming.hear() {
            Ok(Some(body)) => body,
            // The connection ends after the copy.
            Ok(None) | Err(_) if stop.is_set() => return Ok(()),
            Ok(None) => {
                let cut = PairError::ended("the sending end stopped before it had finished");
                return Err(fault.report(cut));
            }
            Err(error) => return Err(fault.report(error)),
        };
        let (message, _) = decode::<FromSender>(body).map_err(|error| fault.report(error))?;
        let said = match message {
            // Forwarded when the object arrives: a sender that announces objects and opens none must not block others.
            FromSender::Data { id, object, ranges } => {
                if pairs.pin(object, (id, ranges)) > MOST_WAITING {
                    let lie =
                        PairError::ended("the sending end speaks of too many objects at once");
                    return Err(fault.report(lie));
                }
                Ok(())
            }
            message => {
                if message == FromSender::End {
                    is_all_said.store(true, Ordering::Release);
                }
                note(&message, terms, meter).map_err(|error| fault.report(error))?;
                match taken(&message, terms.claims).map_err(|error| fault.report(error))? {
                    None => onwards.repeat(body),
                    Some(instead) => {
                        note(&instead, terms, meter).map_err(|error| fault.report(error))?;
                        onwards.say(&instead)
                    }
                }
            }
        };
        said.map_err(|error| fault.report(error))?;
    }
}

/// The message that replaces an entry whose name another part of the copy has: as if the sender could not read it.
fn taken(message: &FromSender, claims: Claimant<'_>) -> Result<Option<FromSender>, PairError> {
    let (FromSender::Entry(entry) | FromSender::Small { entry, .. } | FromSender::Stream(entry)) =
        message
    else {
        return Ok(None);
    };
    Ok(match claims.claim(&entry.path, super::kind_of(&entry.kind))? {
        Claim::Free => None,
        Claim::Taken => {
            Some(FromSender::Unreadable { id: Some(entry.id), failure: just_made(&entry.path) })
        }
    })
}

/// Checks and counts a forwarded message of the sender.
fn note(message: &FromSender, terms: Terms<'_>, meter: &Meter) -> Result<(), PairError> {
    match message {
        FromSender::Entry(entry) | FromSender::Small { entry, .. } | FromSender::Stream(entry)
            if !terms.allowed.admits(&entry.path, super::kind_of(&entry.kind)) =>
        {
            let shown = Shown::new(&entry.path);
            Err(PairError::ended(format_args!(
                "the other end sends {shown}, which was not asked for"
            )))
        }
        // In a dry run the receiver may answer each entry.
        FromSender::Entry(_) if terms.options.rules.pass == Pass::DryRun => {
            meter.add_rehearsed();
            Ok(())
        }
        FromSender::Stream(_) => {
            meter.set_spent();
            Ok(())
        }
        FromSender::Total { files, bytes } => {
            meter.set_total(*files, *bytes);
            Ok(())
        }
        FromSender::Same { bytes } => {
            meter.add_kept(*bytes);
            Ok(())
        }
        FromSender::End => {
            meter.set_counted();
            Ok(())
        }
        FromSender::Path(path) => {
            meter.set_path(*path);
            Ok(())
        }
        FromSender::Unreadable { failure, .. } => {
            meter.add_failure(End::From, failure);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// From the receiving to the sending end.
fn answers(
    mut incoming: In,
    back: &Out,
    claims: Claimant<'_>,
    meter: &Meter,
    (fault, is_all_said, stop): (&Fault, &AtomicBool, &Stop),
) -> Result<(), Stopped> {
    loop {
        let body = incoming.hear().map_err(|error| fault.report(error))?;
        let Some(body) = body else {
            return Err(
                fault.report(PairError::ended("the receiving end stopped before it had finished"))
            );
        };
        let (message, _) = decode::<FromReceiver>(body).map_err(|error| fault.report(error))?;
        if message == FromReceiver::Finished {
            if !is_all_said.load(Ordering::Acquire) {
                return Err(fault.report(TooSoon));
            }
            // The sender may end as soon as it has received this message.
            stop.set();
        }
        back.repeat(body).map_err(|error| fault.report(error))?;
        match message {
            FromReceiver::Progress { bytes, files } => {
                meter.add_bytes(bytes);
                meter.add_files(files);
            }
            FromReceiver::Left { bytes } => meter.add_kept(bytes),
            FromReceiver::Failed { failure: Some(failure), .. }
            | FromReceiver::Incomplete { failure } => meter.add_failure(End::To, &failure),
            FromReceiver::Failed { failure: None, .. } => meter.count_failure(),
            FromReceiver::Remark { text } => meter.add_remark(&text),
            FromReceiver::Ready { target: TargetKind::Stream, .. } => meter.set_stream(),
            FromReceiver::Would { path } => {
                meter.add_would(&path).map_err(|error| fault.report(error))?;
            }
            FromReceiver::Finished => return Ok(()),
            // The sender does not mention the file again.
            FromReceiver::Has { path, kept: Kept::Whole(_), .. } => {
                claims.claim(&path, Kind::File).map_err(|error| fault.report(error))?;
            }
            FromReceiver::Has { .. } | FromReceiver::Ready { .. } | FromReceiver::Again { .. } => {}
        }
    }
}

fn accept<'scope>(scope: &'scope Scope<'scope, '_>, from: &'scope Connection, way: &Way<'scope>) {
    while let Ok(Ok(object)) = wait(from.accept_object(), way.stop, None) {
        let way = way.clone();
        scope.spawn(move || way.carry(object));
    }
}

/// Runs of an object that wait for earlier bytes.
struct Early<'a> {
    runs: BTreeMap<u64, Vec<u8>>,
    /// Bytes of all of them.
    held: usize,
    /// Bytes of such runs of all objects.
    all: &'a AtomicUsize,
}

impl<'a> Early<'a> {
    const fn new(all: &'a AtomicUsize) -> Self {
        Self { runs: BTreeMap::new(), held: 0, all }
    }

    fn insert(&mut self, offset: u64, run: Vec<u8>) {
        self.count(run.len());
        if let Some(old) = self.runs.insert(offset, run) {
            self.discount(old.len());
        }
    }

    fn remove(&mut self, offset: u64) -> Option<Vec<u8>> {
        let run = self.runs.remove(&offset)?;
        self.discount(run.len());
        Some(run)
    }

    fn count(&mut self, bytes: usize) {
        self.held += bytes;
        self.all.fetch_add(bytes, Ordering::Relaxed);
    }

    fn discount(&mut self, bytes: usize) {
        self.held -= bytes;
        self.all.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether the waiting bytes of all objects exceed their maximum.
    fn is_too_much(&self) -> bool {
        self.all.load(Ordering::Relaxed) > MOST_EARLY
    }
}

impl Drop for Early<'_> {
    fn drop(&mut self) {
        self.discount(self.held);
    }
}

impl Way<'_> {
    /// Forwards an object in order of its bytes.
    fn carry(&self, mut object: ObjectReceiver) -> Result<(), Stopped> {
        let (id, ranges) = self.pairs.take(object.id().0, self.fault, self.stop)?;
        let mut pair = wait_for(self.to.open_object(), self.stop)?
            .map_err(|error| self.fault.report(error))?;
        let message = FromSender::Data { id, object: pair.id().0, ranges };
        self.onwards.say(&message).map_err(|error| self.fault.report(error))?;
        let (mut early, mut next) = (Early::new(self.early), 0u64);
        loop {
            match wait_for(object.next(), self.stop)? {
                Ok(Some((offset, run))) => {
                    early.insert(offset, run.to_vec());
                }
                Ok(None) => break,
                Err(ReadError::Reset(_)) => {
                    pair.reset(GIVEN_UP);
                    return Ok(());
                }
                // The copy is complete, and the connection was closed.
                Err(_) if self.stop.is_set() => return Ok(()),
                Err(error) => return Err(self.fault.report(error)),
            }
            while let Some(bytes) = early.remove(next) {
                next += bytes.len() as u64;
                match block_on(pair.write_chunk(Bytes::from(bytes))) {
                    Ok(()) => {}
                    // The receiver has refused the object and sent the reason.
                    Err(WriteError::Stopped(code)) => {
                        object.stop(code.number());
                        return Ok(());
                    }
                    Err(error) => return Err(self.fault.report(error)),
                }
            }
            if early.is_too_much() {
                let lie = PairError::ended("the sending end keeps back what comes first");
                return Err(self.fault.report(lie));
            }
        }
        pair.finish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_counted() {
        let all = AtomicUsize::new(1);
        let mut early = Early::new(&all);
        for (offset, length) in [(10, 5), (20, 7), (10, 3)] {
            early.insert(offset, vec![0; length]);
            assert_eq!(early.held, early.runs.values().map(Vec::len).sum::<usize>());
            assert_eq!(all.load(Ordering::Relaxed), 1 + early.held);
        }
        assert_eq!(early.remove(10).map(|run| run.len()), Some(3));
        assert_eq!((early.held, early.remove(10)), (7, None));
        all.fetch_add(MOST_EARLY, Ordering::Relaxed);
        assert!(early.is_too_much(), "what other objects hold counts");
        all.fetch_sub(MOST_EARLY, Ordering::Relaxed);
        drop(early);
        assert_eq!(all.load(Ordering::Relaxed), 1);
    }
}
