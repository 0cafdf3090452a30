//! When readers are woken: not for every super-packet, since waking a thread costs a tenth of what
//! decrypting one does, but before the driver sleeps, after much data, or after a little time.

use crate::link::StreamLink;
use hikyaku_units::Instant;
use std::sync::Arc;
use std::time::Duration;

/// Streams with news whose readers do not know.
#[derive(Default)]
pub(crate) struct Wakes {
    streams: Vec<Arc<StreamLink>>,
    bytes: usize,
    since: Instant,
}

/// Half of a usual second-level cache: the reader should find the data there.
const MUCH: usize = 512 << 10;
const LONG: Duration = Duration::from_micros(200);

impl Wakes {
    pub(crate) fn add(&mut self, now: Instant, stream: &Arc<StreamLink>, bytes: usize) {
        if self.streams.is_empty() {
            self.since = now;
        }
        self.bytes += bytes;
        if self.streams.last().is_none_or(|last| last.id != stream.id || !Arc::ptr_eq(last, stream))
        {
            self.streams.push(stream.clone());
        }
    }

    /// Wakes them if it is worth it.
    pub(crate) fn flush_if_due(&mut self, now: Instant) {
        if self.bytes >= MUCH || now - self.since >= LONG {
            self.flush();
        }
    }

    /// Wakes them.
    pub(crate) fn flush(&mut self) {
        self.bytes = 0;
        self.streams.drain(..).for_each(|stream| stream.inbox.wake());
    }
}
