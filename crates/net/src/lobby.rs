//! Where connections wait to be accepted.

use crate::error::AcceptError;
use crate::link::Handle;
use crate::notify::{Notify, Place};
use crate::sync::{AtomicBool, SegQueue};
use hikyaku_crypto::Fingerprint;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// Connections that the application has not accepted yet.
#[derive(Default)]
pub(crate) struct Lobby {
    waiting: SegQueue<Guest>,
    closed: AtomicBool,
    on_change: Notify,
}

/// A connection that waits to be accepted, and the key that its client has shown and proven, if it was asked.
pub(crate) struct Guest {
    pub(crate) handle: Handle,
    pub(crate) shown: Option<Fingerprint>,
}

/// More connections than this do not wait to be accepted.
const BACKLOG: usize = 1024;

impl Lobby {
    /// Lets a connection wait; gives it back if too many do.
    pub(crate) fn enter(&self, guest: Guest) -> Result<(), Guest> {
        if self.waiting.len() >= BACKLOG || self.closed.load(Ordering::Acquire) {
            return Err(guest);
        }
        self.waiting.push(guest);
        self.on_change.wake_all();
        Ok(())
    }

    pub(crate) fn poll(
        &self,
        place: &Arc<Place>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Guest, AcceptError>> {
        self.on_change.poll(place, context, || {
            let is_closed = self.closed.load(Ordering::Acquire);
            let next = self.waiting.pop();
            next.map(Ok).or_else(|| is_closed.then_some(Err(AcceptError::Closed)))
        })
    }

    /// No more connections arrive.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.on_change.wake_all();
    }

    /// Sends away those who wait.
    pub(crate) fn clear(&self) {
        while self.waiting.pop().is_some() {}
    }
}
