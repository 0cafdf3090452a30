//! Requests about locks.

use super::locks::{self, Outcome, Owner};
use super::requests::{Teller, store_path};
use super::{Session, Writes};
use crate::message::{Lock, Patience, Refusal, Reply, Wish};
use hikyaku_reach::TalkError;
use hikyaku_store::{ErrorKind, Identity, Result, StoreError};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(test)]
mod tests;

type Told = std::result::Result<(), TalkError>;

/// Answers to those who have waited for locks. They are said on a thread of the session: a client that reads no answers
/// must not hold up another one, which has freed the range.
pub(super) struct Answers {
    queue: Sender<Option<Late>>,
    said: Mutex<Option<Receiver<Option<Late>>>>,
    /// Answers that are waited for or being said.
    count: Arc<AtomicUsize>,
}

/// An answer that can be said.
struct Late {
    place: Place,
    outcome: Outcome,
}

/// Who is to be answered. It takes room until then.
struct Place {
    teller: Teller,
    count: Arc<AtomicUsize>,
}

/// Locks that a client waits for, and answers about them that it has not read.
const WAITING_MAX: usize = 1024;

impl Default for Answers {
    fn default() -> Self {
        let (queue, said) = channel();
        Self { queue, said: Mutex::new(Some(said)), count: Arc::default() }
    }
}

impl Answers {
    /// Says the answers, until the session ends.
    pub(super) fn work(&self) {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).take();
        for late in said.into_iter().flatten() {
            let Some(Late { place, outcome }) = late else { return };
            let teller = place.teller.clone();
            // A client that has the answer may wait for another lock. One answer is said at a time.
            drop(place);
            // A client that has gone is not told any more.
            let _ = teller.say(reply(outcome));
        }
    }

    /// The session has ended.
    pub(super) fn end(&self) {
        let _ = self.queue.send(None);
    }

    /// Says an answer when it comes, if there is room for one more.
    fn later(&self, teller: &Teller) -> Option<locks::Told> {
        // Whoever is refused drops the place again.
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        let place = Place { teller: teller.clone(), count: self.count.clone() };
        let queue = self.queue.clone();
        let told = move |outcome| {
            // Nobody hears of it after the end of the session.
            let _ = queue.send(Some(Late { place, outcome }));
        };
        (before < WAITING_MAX).then(|| Box::new(told) as locks::Told)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers a request for a lock, at once or when it is had.
// spec: store-lock-1
pub(super) fn lock(session: &Session, wish: &Lock, teller: Teller) -> Told {
    let Some(locks) = &session.locks else { return none(&teller) };
    let file = match file_to_lock(session, wish) {
        Ok(file) => file,
        Err(error) => return teller.refuse(&error),
    };
    let owner = Owner { session: session.number, number: wish.owner };
    let later = match wish.wish {
        Wish::Shared(Patience::Wait) | Wish::Exclusive(Patience::Wait) => {
            session.answers.later(&teller)
        }
        _ => Some(Box::new(|_| ()) as locks::Told),
    };
    let Some(later) = later else { return teller.say(reply(Outcome::Full)) };
    match locks.set(file, owner, (wish.range, wish.wish), (teller.id, later)) {
        Some(outcome) => teller.say(reply(outcome)),
        None => Ok(()),
    }
}

fn reply(outcome: Outcome) -> Reply {
    let (kind, text) = match outcome {
        Outcome::Had => return Reply::Done,
        Outcome::Busy => (ErrorKind::Busy, "somebody else has a lock"),
        // ENOLCK
        Outcome::Full => (ErrorKind::System(37), "too many locks"),
    };
    Reply::Refused(Refusal { kind, text: text.to_owned() })
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

/// The file that is to be locked or freed.
fn file_to_lock(session: &Session, wish: &Lock) -> Result<Identity> {
    match wish.wish {
        // A file that was renamed or removed meanwhile has its locks all the same.
        // spec: store-lock-3
        Wish::Free if wish.range.0 <= wish.range.1 => Ok(wish.identity),
        Wish::GiveUp(_) => Ok(wish.identity),
        // Whoever may not change a file keeps nobody from reading it.
        // spec: store-lock-2
        Wish::Exclusive(_) if session.limits.writes == Writes::Refused => {
            Err(StoreError::new("lock", &store_path(&wish.path)?, ErrorKind::ReadOnly))
        }
        _ => file(session, wish),
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
    teller.say(Reply::Refused(Refusal { kind, text: "this server has no locks".to_owned() }))
}
