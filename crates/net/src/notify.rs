//! Waking any number of waiting tasks without a lock.
//!
//! Each waiting future has a place of its own that is listed once, however often it is polled.
//! Places of futures that were dropped are swept out as others enrol, so the list stays about as
//! long as there are waiters.

use crate::sync::{AtomicBool, AtomicWaker, SegQueue, fence};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

/// Something that several tasks wait for.
#[derive(Default)]
pub(crate) struct Notify(SegQueue<Weak<Place>>);

/// One future's place in the list.
#[derive(Default)]
pub(crate) struct Place {
    waker: AtomicWaker,
    listed: AtomicBool,
}

impl Notify {
    /// Wakes all that wait.
    pub(crate) fn wake_all(&self) {
        // Either this sees a place in the list, or who put it there sees what this is about.
        fence(Ordering::SeqCst);
        // Those that are listed while this runs have seen it.
        for _ in 0..self.0.len() {
            if let Some(place) = self.0.pop().and_then(|place| place.upgrade()) {
                place.listed.swap(false, Ordering::AcqRel);
                place.waker.wake();
            }
        }
    }

    /// Polls `check`, and sees to it that the task is woken if it is to be polled again.
    pub(crate) fn poll<T>(
        &self,
        place: &Arc<Place>,
        context: &mut Context<'_>,
        mut check: impl FnMut() -> Option<T>,
    ) -> Poll<T> {
        if let Some(found) = check() {
            return Poll::Ready(found);
        }
        place.waker.register(context.waker());
        if !place.listed.swap(true, Ordering::AcqRel) {
            self.0.push(Arc::downgrade(place));
            self.sweep();
        }
        // An event between the check and the registration did not wake this task.
        fence(Ordering::SeqCst);
        check().map_or(Poll::Pending, Poll::Ready)
    }

    fn sweep(&self) {
        for _ in 0..2 {
            let Some(place) = self.0.pop() else { return };
            let Some(waiting) = place.upgrade() else { continue };
            self.0.push(place);
            // A concurrent call that woke all tasks has not seen this one.
            waiting.waker.wake();
        }
    }
}
