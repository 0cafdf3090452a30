//! Room for bytes under way to a server: a thread that sends more waits until the server has answered for others.

use super::flow::Flow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// See the head of this file.
pub(super) struct Room {
    flow: Mutex<Flow>,
    freed: Condvar,
    begin: Instant,
}

/// The cost of a message and a name at the server, in bytes of a file.
pub(super) const MESSAGE_COST: u64 = 4 << 10;

impl Room {
    pub(super) fn new(round_trip: Duration) -> Self {
        let flow = Mutex::new(Flow::new(round_trip, Duration::ZERO));
        Self { flow, freed: Condvar::new(), begin: Instant::now() }
    }

    fn flow(&self) -> MutexGuard<'_, Flow> {
        self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room, and takes it. Each request is answered, at the latest when the connection ends.
    pub(super) fn take(&self, bytes: u64) {
        let mut flow = self.flow();
        while !flow.has_room() {
            flow = self.freed.wait(flow).unwrap_or_else(PoisonError::into_inner);
        }
        flow.sent(bytes, self.begin.elapsed());
    }

    /// Takes room if there is some.
    pub(super) fn try_take(&self, bytes: u64) -> Taken {
        let mut flow = self.flow();
        match flow.has_room() {
            true => {
                flow.sent(bytes, self.begin.elapsed());
                Taken::Yes
            }
            false => Taken::No,
        }
    }

    /// The server has answered for these bytes.
    pub(super) fn give_back(&self, bytes: u64) {
        self.flow().answered(bytes, self.begin.elapsed());
        self.freed.notify_all();
    }
}

/// Whether there was room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    Yes,
    No,
}
