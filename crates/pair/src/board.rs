//! A notice board: one thread pins a thing under a number, another takes it when it is there.

use super::fault::{Fault, Stopped};
use crate::sync::{Condvar, Mutex, Stop};
use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

/// Things by the number under which they are looked for.
pub(crate) struct Board<T> {
    pinned: Mutex<HashMap<u32, T>>,
    came: Condvar,
}

/// A fault or a stop does not wake who waits here; they are looked for this often.
const LOOK: Duration = Duration::from_millis(50);

impl<T> Default for Board<T> {
    fn default() -> Self {
        Self { pinned: Mutex::default(), came: Condvar::new() }
    }
}

impl<T> Board<T> {
    /// Pins a thing; says how many there are that nobody has taken.
    pub(crate) fn pin(&self, number: u32, thing: T) -> usize {
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        pinned.insert(number, thing);
        self.came.notify_all();
        pinned.len()
    }

    /// Takes a thing, once it is there; not when nobody will pin it any more.
    pub(crate) fn take(&self, number: u32, fault: &Fault, stop: &Stop) -> Result<T, Stopped> {
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(thing) = pinned.remove(&number) {
                return Ok(thing);
            }
            if fault.is_there() || stop.is_set() {
                return Err(Stopped);
            }
            pinned = self.came.wait_timeout(pinned, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
