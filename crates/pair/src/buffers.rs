//! Memory for segments, used again: what is given back and taken anew is cleared by the system each
//! time, which costs half as much as hashing it.

use hikyaku_net::Bytes;
use std::sync::{Arc, Mutex, PoisonError};

/// Unused buffers, the last used first, because its bytes may still be in a cache of the processor.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

/// Bytes under way, whose memory goes back.
struct Lent {
    bytes: Vec<u8>,
    home: Arc<Buffers>,
}

/// Buffers that are kept, at most. A window's worth comes back a few at a time.
const MOST: usize = 16;

impl Buffers {
    /// An empty buffer, with or without room.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// These bytes as a value that can be shared. The buffer returns when the last owner drops it.
    pub(crate) fn lend(self: &Arc<Self>, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Lent { bytes, home: self.clone() })
    }

    fn give(&self, mut bytes: Vec<u8>) {
        bytes.clear();
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < MOST {
            spare.push(bytes);
        }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.home.give(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_when_the_last_reader_has_gone() {
        let buffers = Arc::new(Buffers::default());
        let mut bytes = buffers.take();
        bytes.extend_from_slice(b"courier");
        let room = bytes.capacity();
        let whole = buffers.lend(bytes);
        let part = whole.slice(3..);
        drop(whole);
        assert_eq!(buffers.take().capacity(), 0, "somebody still reads it");
        assert_eq!(&part[..], b"rier");
        drop(part);
        let again = buffers.take();
        assert!(again.is_empty() && again.capacity() == room);
    }

    #[test]
    fn no_more_is_kept_than_is_of_use() {
        let buffers = Arc::new(Buffers::default());
        let all: Vec<_> = (0..2 * MOST).map(|_| buffers.lend(vec![0; 10])).collect();
        drop(all);
        let kept = (0..2 * MOST).filter(|_| buffers.take().capacity() > 0).count();
        assert_eq!(kept, MOST);
    }
}
