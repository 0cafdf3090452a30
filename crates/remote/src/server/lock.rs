//! Requests about locks.

use super::Session;
use super::locks::{Outcome, Owner};
use super::requests::{Teller, store_path};
use crate::message::{Lock, Refusal, Reply};
use hikyaku_reach::TalkError;
use hikyaku_store::{ErrorKind, Identity, Result, StoreError};
use std::thread;

type Told = std::result::Result<(), TalkError>;

/// Answers a request for a lock, at once or when it is had.
// spec: store-lock-1
pub(super) fn lock(session: &Session, wish: &Lock, teller: Teller) -> Told {
    let (Some(locks), file) = (&session.locks, file(session, wish)) else {
        return none(&teller);
    };
    let file = match file {
        Ok(file) => file,
        Err(error) => return teller.refuse(&error),
    };
    let owner = Owner { session: session.number, number: wish.owner };
    let told = move |outcome| {
        let (kind, text) = match outcome {
            Outcome::Had => (None, ""),
            Outcome::Busy => (Some(ErrorKind::Busy), "somebody else has a lock"),
            // ENOLCK
            Outcome::Full => (Some(ErrorKind::System(37)), "too many locks"),
        };
        let reply = kind
            .map_or(Reply::Done, |kind| Reply::Refused(Refusal { kind, text: text.to_owned() }));
        // A client that reads no answers must not hold up another one, which has freed the range.
        let _ = thread::Builder::new().spawn(move || teller.say(reply));
    };
    locks.set(file, owner, (wish.range, wish.wish), Box::new(told));
    Ok(())
}

/// Tells which lock is in the way.
pub(super) fn lock_of(session: &Session, wish: &Lock, teller: &Teller) -> Told {
    let Some(locks) = &session.locks else { return none(teller) };
    let owner = Owner { session: session.number, number: wish.owner };
    match file(session, wish) {
        Ok(file) => teller.say(Reply::Locked { by: locks.against(file, owner, wish.range) }),
        Err(error) => teller.refuse(&error),
    }
}

/// The file that is meant.
fn file(session: &Session, wish: &Lock) -> Result<Identity> {
    let path = store_path(&wish.path)?;
    let identity = session.plain.look(&path)?.identity;
    match identity == wish.identity && wish.range.0 <= wish.range.1 {
        true => Ok(identity),
        false => Err(StoreError::new("lock", &path, ErrorKind::Changed)),
    }
}

// spec: store-feature-6
fn none(teller: &Teller) -> Told {
    // EOPNOTSUPP
    let kind = ErrorKind::System(95);
    teller.say(Reply::Refused(Refusal { kind, text: "no locks here".to_owned() }))
}
