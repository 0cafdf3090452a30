//! Between two other machines, through this one: what the sending end says goes on to the receiving
//! end and back, so that both work as if they had met. Nothing is stored here.

use super::board::Board;
use super::fault::{Fault, Stopped};
use super::meter::Meter;
use super::talk::{In, Out};
use crate::patterns::Allowed;
use anyhow::anyhow;
use hikyaku_fs::{Shown, sentence};
use hikyaku_net::blocking::{Stop, block_on, wait};
use hikyaku_net::{Bytes, Connection, ObjectReceiver, ObjectSender, ReadError, WriteError};
use hikyaku_transfer::{FromReceiver, FromSender, decode};
use std::collections::BTreeMap;
use std::thread::{self, Scope};

/// One of the two.
pub(crate) struct Party<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) incoming: In,
    pub(crate) outgoing: Out,
}

/// Objects of the receiving end by the numbers that the sending end has for them.
type Pairs = Board<ObjectSender>;

/// Bytes that wait for earlier ones: more than any window holds.
const MOST_EARLY: usize = 1 << 30;
/// The code of an object that is given up.
const GIVEN_UP: u64 = 1;

/// Carries a copy from one to the other; returns when the receiving end has finished, or at a fault.
pub(crate) fn through(
    from: Party<'_>,
    to: Party<'_>,
    allowed: &Allowed,
    meter: &Meter,
    fault: &Fault,
) {
    let (pairs, stop) = (Pairs::default(), Stop::default());
    let (back, onwards) = (from.outgoing, to.outgoing);
    thread::scope(|scope| {
        let (pairs, stop) = (&pairs, &stop);
        scope.spawn(move || {
            forth(from.incoming, &onwards, (to.connection, pairs), allowed, (meter, fault))
        });
        let objects = scope.spawn(move || accept(scope, from.connection, pairs, fault, stop));
        let _ = answers(to.incoming, &back, meter, fault);
        stop.set();
        objects.thread().unpark();
        // The sending end has heard that all is there, or there is a fault: it says nothing more.
        from.connection.close(hikyaku_net::code::DONE, "");
    });
}

/// From the sending to the receiving end.
fn forth(
    mut incoming: In,
    onwards: &Out,
    (to, pairs): (&Connection, &Pairs),
    allowed: &Allowed,
    (meter, fault): (&Meter, &Fault),
) -> Result<(), Stopped> {
    loop {
        // It ends when we close it.
        let Ok(Some(body)) = incoming.next() else { return Ok(()) };
        let (message, _) = decode::<FromSender>(body).map_err(|error| fault.report(error))?;
        let said = match message {
            FromSender::Data { id, object, ranges } => {
                let pair = block_on(to.open_object()).map_err(|error| fault.report(error))?;
                let message = FromSender::Data { id, object: pair.id().0, ranges };
                pairs.pin(object, pair);
                onwards.say(&message)
            }
            message => {
                note(&message, allowed, meter).map_err(|error| fault.report(error))?;
                onwards.repeat(body)
            }
        };
        said.map_err(|error| fault.report(error))?;
    }
}

/// What concerns us of what goes by.
fn note(message: &FromSender, allowed: &Allowed, meter: &Meter) -> anyhow::Result<()> {
    match message {
        FromSender::Entry(entry) | FromSender::Small { entry, .. }
            if !allowed.admits(&entry.path) =>
        {
            let shown = Shown::new(&entry.path);
            Err(anyhow!("the other end sends {shown}, which was not asked for"))
        }
        FromSender::Total { files, bytes } => {
            meter.set_total(*files, *bytes);
            Ok(())
        }
        FromSender::Same { bytes } => {
            meter.add_kept(*bytes);
            Ok(())
        }
        FromSender::Path(path) => {
            meter.set_path(*path);
            Ok(())
        }
        FromSender::Unreadable { why, .. } => {
            meter.add_failure(sentence(why));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// From the receiving to the sending end.
fn answers(mut incoming: In, back: &Out, meter: &Meter, fault: &Fault) -> Result<(), Stopped> {
    loop {
        let body = incoming.next().map_err(|error| fault.report(error))?;
        let Some(body) = body else {
            return Err(fault.report(anyhow!("the receiving end stopped before it had finished")));
        };
        let (message, _) = decode::<FromReceiver>(body).map_err(|error| fault.report(error))?;
        back.repeat(body).map_err(|error| fault.report(error))?;
        match message {
            FromReceiver::Progress { bytes, files } => {
                meter.add_bytes(bytes);
                meter.add_files(files);
            }
            FromReceiver::Left { bytes } => meter.add_kept(bytes),
            FromReceiver::Failed { why, .. } => meter.add_failure(sentence(&why)),
            FromReceiver::Would { path } => meter.add_note(Shown::new(&path).to_string()),
            FromReceiver::Finished => return Ok(()),
            FromReceiver::Has { .. } | FromReceiver::Ready { .. } | FromReceiver::Again { .. } => {}
        }
    }
}

fn accept<'scope>(
    scope: &'scope Scope<'scope, '_>,
    from: &'scope Connection,
    pairs: &'scope Pairs,
    fault: &'scope Fault,
    stop: &'scope Stop,
) {
    while let Ok(Ok(object)) = wait(from.accept_object(), stop, None) {
        scope.spawn(move || carry(object, pairs, fault));
    }
}

/// Carries one object: it leaves in order, however it came.
fn carry(mut object: ObjectReceiver, pairs: &Pairs, fault: &Fault) -> Result<(), Stopped> {
    let mut pair = pairs.take(object.id().0, fault)?;
    let (mut early, mut next) = (BTreeMap::new(), 0u64);
    loop {
        match block_on(object.next()) {
            Ok(Some((offset, run))) => {
                early.insert(offset, run.to_vec());
            }
            Ok(None) => break,
            Err(ReadError::Reset(_)) => {
                pair.reset(GIVEN_UP);
                return Ok(());
            }
            Err(error) => return Err(fault.report(error)),
        }
        while let Some(bytes) = early.remove(&next) {
            next += bytes.len() as u64;
            match block_on(pair.write_chunk(Bytes::from(bytes))) {
                Ok(()) => {}
                // The receiving end does not want it, and has said why.
                Err(WriteError::Stopped(code)) => {
                    object.stop(code);
                    return Ok(());
                }
                Err(error) => return Err(fault.report(error)),
            }
        }
        if early.values().map(Vec::len).sum::<usize>() > MOST_EARLY {
            return Err(fault.report(anyhow!("the sending end keeps back what comes first")));
        }
    }
    pair.finish();
    Ok(())
}
