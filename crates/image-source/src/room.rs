//! Memory for pictures that are decoded whole or in large parts, over all threads of the process.

use crate::error::ImageError;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Memory of which parts are taken for a while.
pub(crate) struct Room {
    free: Mutex<u64>,
    freed: Condvar,
    all: u64,
    for_small: ForSmall,
}

/// A part of it, which is given back when it is dropped.
pub(crate) struct Taken {
    room: &'static Room,
    bytes: u64,
}

/// Bytes for all pictures together: a progressive JPEG of 11000 x 11000 pixels needs 1.1 GB.
const ALL_BYTES: u64 = 2 << 30;
/// Parts of at most this size are small. They are needed for a short time.
const SMALL_BYTES: u64 = 128 << 20;
/// Bytes that larger parts leave free: a small picture does not wait until large ones are decoded.
const FOR_SMALL_BYTES: u64 = 256 << 20;

/// The memory that all decoders of this process share.
pub(crate) static DECODING: Room =
    Room::new(ALL_BYTES, ForSmall { most: SMALL_BYTES, kept: FOR_SMALL_BYTES });

/// The part of a room that is reserved for small parts.
#[derive(Clone, Copy)]
struct ForSmall {
    /// The size of the largest part that is small.
    most: u64,
    /// Bytes that larger parts leave free.
    kept: u64,
}

impl Room {
    const fn new(all: u64, for_small: ForSmall) -> Self {
        Self { free: Mutex::new(all), freed: Condvar::new(), all, for_small }
    }

    fn free(&self) -> MutexGuard<'_, u64> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `bytes` bytes are free, and takes them. A thread takes once at a time, so that no thread waits for itself.
    /// A large part leaves the reserve for small ones free.
    ///
    /// # Errors
    ///
    /// The room is smaller than `bytes`.
    pub(crate) fn take(&'static self, bytes: u64) -> Result<Taken, ImageError> {
        let kept = if bytes > self.for_small.most { self.for_small.kept } else { 0 };
        let wanted = bytes.saturating_add(kept);
        if wanted > self.all {
            return Err(ImageError::Unsupported("a picture that takes so much memory to decode"));
        }
        let mut free = self.free();
        while *free < wanted {
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
        static ROOM: Room = Room::new(10, ForSmall { most: 10, kept: 0 });
        assert!(ROOM.take(11).is_err());
        let first = ROOM.take(7).unwrap();
        let waits = thread::spawn(|| drop(ROOM.take(4).unwrap()));
        drop(first);
        waits.join().unwrap();
        assert_eq!(*ROOM.free(), 10);
    }

    #[test]
    fn large_parts_leave_room_for_small_ones() {
        static ROOM: Room = Room::new(10, ForSmall { most: 2, kept: 3 });
        assert!(ROOM.take(8).is_err());
        let (_large, _small) = (ROOM.take(7).unwrap(), ROOM.take(2).unwrap());
        assert_eq!(*ROOM.free(), 1);
    }
}
