//! A count of files under way, and the wait for its zero.

use super::fault::{Fault, Stopped};
use crate::sync::{Condvar, Mutex, Stop, thread};
use std::sync::PoisonError;
use std::time::Duration;

/// A count, and the thread that waits for its zero.
#[derive(Default)]
pub(crate) struct Pending {
    count: Mutex<u64>,
    changed: Condvar,
    /// A thread that is woken when the count is zero.
    waiter: Mutex<Option<(thread::Thread, Stop)>>,
}

/// A fault does not wake who waits here; it is looked for this often.
const LOOK: Duration = Duration::from_millis(50);

impl Pending {
    pub(crate) fn add(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    pub(crate) fn done(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.changed.notify_all();
            drop(count);
            self.tell();
        }
    }

    fn tell(&self) {
        if let Some((thread, stop)) = &*self.waiter.lock().unwrap_or_else(PoisonError::into_inner) {
            stop.set();
            thread.unpark();
        }
    }

    /// Sets `stop` and wakes this thread when nothing is under way.
    pub(crate) fn watch(&self, stop: &Stop) {
        let waiter = Some((thread::current(), stop.clone()));
        *self.waiter.lock().unwrap_or_else(PoisonError::into_inner) = waiter;
        if *self.count.lock().unwrap_or_else(PoisonError::into_inner) == 0 {
            self.tell();
        }
    }

    /// Waits until nothing is under way.
    pub(crate) fn wait(&self, fault: &Fault) -> Result<(), Stopped> {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            if fault.is_there() {
                return Err(Stopped);
            }
            let waited = self.changed.wait_timeout(count, LOOK);
            count = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}
