//! Memory for pictures that are decoded whole or in large parts, over all threads of the process.

use crate::error::ImageError;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Memory of which parts are taken for a while.
pub(crate) struct Room {
    free: Mutex<u64>,
    freed: Condvar,
    all: u64,
}

/// A part of it, which is given back when it is dropped.
pub(crate) struct Taken {
    room: &'static Room,
    bytes: u64,
}

/// Bytes for all pictures together: a progressive JPEG of 11000 x 11000 pixels needs 1.1 GB.
const ALL_BYTES: u64 = 2 << 30;

/// What all decoders of this process share.
pub(crate) static DECODING: Room = Room::new(ALL_BYTES);

impl Room {
    const fn new(all: u64) -> Self {
        Self { free: Mutex::new(all), freed: Condvar::new(), all }
    }

    fn free(&self) -> MutexGuard<'_, u64> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many bytes are free, and takes them. A thread takes once at a time, so that nobody waits for itself.
    ///
    /// # Errors
    ///
    /// There are never so many.
    pub(crate) fn take(&'static self, bytes: u64) -> Result<Taken, ImageError> {
        if bytes > self.all {
            return Err(ImageError::Unsupported("a picture that takes so much memory to decode"));
        }
        let mut free = self.free();
        while *free < bytes {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= bytes;
        Ok(Taken { room: self, bytes })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        *self.room.free() += self.bytes;
        self.room.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_is_taken_is_given_back() {
        static ROOM: Room = Room::new(10);
        assert!(ROOM.take(11).is_err());
        let first = ROOM.take(7).unwrap();
        let waits = thread::spawn(|| drop(ROOM.take(4).unwrap()));
        drop(first);
        waits.join().unwrap();
        assert_eq!(*ROOM.free(), 10);
    }
}
