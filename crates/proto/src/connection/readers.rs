//! Stalled readers: unread bytes do not reduce the credit of other streams, up to the maximum of
//! the receive window.

use super::{Connection, Event};
use crate::config::StalledStreams;
use crate::error::code;
use crate::streams::Listed;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::Instant;
use hikyaku_wire::{Frame, StreamId};

/// Minimum interval between two checks of the readers. The interval is two round trips if that is
/// longer.
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Minimum bytes of a stream's window, however many readers are stalled, so that several packets
/// can be in flight.
const STREAM_WINDOW_BYTES_MIN: u64 = 64 << 10;

/// State of the streams with bytes that wait for the application or for missing data.
#[derive(Debug)]
pub(super) struct Readers {
    /// Streams that the next check covers.
    listed: Vec<StreamId>,
    due: Instant,
    /// The largest window that a stream may have.
    window_max: u64,
}

impl Readers {
    pub(super) const fn new() -> Self {
        Self { listed: Vec::new(), due: Instant::ZERO, window_max: u64::MAX }
    }

    /// When the readers are to be checked.
    fn due(&self) -> Option<Instant> {
        (!self.listed.is_empty()).then_some(self.due)
    }
}

impl Connection {
    /// Adds `id` to the streams to be checked. Its bytes wait for the application or for missing
    /// data.
    pub(super) fn list_reader(&mut self, id: StreamId) {
        if let Some(incoming) = self.streams.incoming.get_mut(&id)
            && incoming.set_listed(Listed::Yes) == Listed::No
        {
            if self.readers.listed.is_empty() {
                self.readers.due = self.timing.now + self.check_interval();
            }
            self.readers.listed.push(id);
        }
    }

    /// When to check the readers even if nothing arrives. This is needed only if the window is half
    /// full, because stalled readers may then be the reason.
    pub(super) fn readers_due(&self) -> Option<Instant> {
        self.readers.due().filter(|_| self.receive_flow.is_half_full())
    }

    fn check_interval(&self) -> Duration {
        (self.receive_flow.rtt() * 2).max(CHECK_INTERVAL_MIN)
    }

    /// The largest window of a stream.
    pub(super) fn stream_window_max(&self) -> u64 {
        self.receive_flow.window().min(self.readers.window_max)
    }

    /// Enlarges the windows of streams after the connection's window has grown. A stream that waits
    /// for a retransmission announces no new limit by being read, so the limit must be announced
    /// here.
    pub(super) fn widen_streams(&mut self) {
        let window_max = self.stream_window_max();
        for &id in &self.readers.listed {
            let incoming = self.streams.incoming.get_mut(&id);
            let limit = incoming.and_then(|incoming| incoming.widen(window_max));
            self.control.extend(limit.map(|limit| Frame::MaxStreamData { stream: id, limit }));
        }
    }

    // spec: flow-2
    /// Checks the readers if the check is due.
    pub(super) fn check_readers(&mut self, now: Instant) {
        if self.readers.due().is_none_or(|due| due > now) {
            return;
        }
        self.readers.due = now + self.check_interval();
        let (mut stale, mut stalled) = (0, 0);
        let mut oldest: Option<(Instant, StreamId)> = None;
        let incoming = &mut self.streams.incoming;
        self.readers.listed.retain(|id| {
            let Some(incoming) = incoming.get_mut(id) else { return false };
            if incoming.is_discarding() {
                return false;
            }
            let check = incoming.check_reader(now);
            if let Some(since) = check.stalled {
                stale += check.unread;
                stalled += 1;
                if oldest.is_none_or(|(first, _)| since < first) {
                    oldest = Some((since, *id));
                }
            }
            let has_any = check.unread > 0 || incoming.held() > 0;
            if !has_any {
                incoming.set_listed(Listed::No);
            }
            has_any
        });
        let bound = self.receive_flow.window_max();
        // Stalled streams get small windows, so that the others can continue.
        self.readers.window_max = if stale > bound / 2 {
            (bound / 4 / stalled.max(1)).max(STREAM_WINDOW_BYTES_MIN)
        } else {
            u64::MAX
        };
        let limit = self.receive_flow.set_stale(stale);
        self.control.extend(limit.map(Frame::MaxData));
        if stale > bound / 4 * 3
            && self.config.stalled == StalledStreams::Stop
            && let Some((_, id)) = oldest
        {
            self.stop(id, code::NOT_READ);
            self.events.push_back(Event::Reset(id, code::NOT_READ));
        }
    }
}
