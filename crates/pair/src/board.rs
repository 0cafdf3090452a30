//! A notice board: one thread posts a value under a number, and another thread takes it.

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
    /// Posts a value. Returns the number of values that were not taken yet.
    pub(crate) fn pin(&self, number: u32, thing: T) -> usize {
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        pinned.insert(number, thing);
        self.came.notify_all();
        pinned.len()
    }

    /// Takes a value as soon as it is posted. Fails if it will not be posted.
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
