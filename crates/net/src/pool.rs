//! Receive buffers on their round: driver, application, and home.

use crossbeam_queue::ArrayQueue;
use hikyaku_proto::Home;
use hikyaku_udp::MESSAGE_BYTES;
use std::num::NonZeroU8;
use std::sync::Arc;

/// Buffers that came back to the drivers of an endpoint are kept up to this many: 16 MB. Each driver has its share.
const KEPT: usize = 256;

/// The driver's end. It takes the buffer that was used last, which is still in the cache.
pub(crate) struct Pool {
    stack: Vec<Vec<u8>>,
    returned: Arc<Returned>,
    kept: usize,
}

/// Where applications leave buffers that they are done with.
pub(crate) struct Returned(ArrayQueue<Vec<u8>>);

impl Home for Returned {
    fn give_back(&self, buffer: Vec<u8>) {
        // One buffer too many is freed.
        let _ = self.0.push(buffer);
    }
}

impl Pool {
    /// That of one of this number of drivers.
    pub(crate) fn of(drivers: NonZeroU8) -> Self {
        let kept = KEPT / usize::from(drivers.get()).min(KEPT);
        Self { stack: Vec::new(), returned: Arc::new(Returned(ArrayQueue::new(kept))), kept }
    }

    /// A buffer of [`MESSAGE_BYTES`] bytes.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        while let Some(buffer) = self.returned.0.pop() {
            self.give(buffer);
        }
        self.stack.pop().unwrap_or_else(|| vec![0; MESSAGE_BYTES])
    }

    /// Takes back a buffer that never left the driver.
    pub(crate) fn give(&mut self, buffer: Vec<u8>) {
        if self.stack.len() < self.kept && buffer.len() == MESSAGE_BYTES {
            self.stack.push(buffer);
        }
    }

    /// Where buffers that leave the driver come back to.
    pub(crate) fn home(&self) -> Arc<dyn Home> {
        self.returned.clone()
    }
}
