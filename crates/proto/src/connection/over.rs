//! The end of streams, and the limit on the streams that a peer may open.

use super::Connection;
use super::input::kind_index;
use crate::config::Side;
use crate::streams::Outgoing;
use hikyaku_wire::{Frame, StreamId};

impl Connection {
    /// Removes a receiving half that was read to its end, stopped, or reset.
    pub(super) fn forget_incoming(&mut self, id: StreamId) {
        if let Some(incoming) = self.streams.incoming.remove(&id) {
            self.streams.pieces -= incoming.pieces();
            self.on_half_over(id);
        }
    }

    /// Removes a sending half that was acknowledged completely, reset, or stopped by the peer.
    pub(super) fn forget_outgoing(&mut self, id: StreamId) -> Option<Outgoing> {
        let mut outgoing = self.streams.outgoing.remove(&id)?;
        self.streams.schedule.leave(&mut outgoing.place);
        self.streams.unsent -= outgoing.unsent();
        self.on_half_over(id);
        Some(outgoing)
    }

    /// Counts a stream of the peer as ended once both halves have been removed, so that the peer
    /// may open another. A half that the application has stopped still counts until the peer ends
    /// it.
    // spec: stream-1
    fn on_half_over(&mut self, id: StreamId) {
        let by_peer = id.by_server() == (self.side == Side::Client);
        let streams = &mut self.streams;
        let is_left = streams.incoming.contains_key(&id) || streams.outgoing.contains_key(&id);
        if !by_peer || is_left {
            return;
        }
        let slot = kind_index(id.kind());
        let ended = &mut streams.peer_ended[slot];
        *ended = ended.saturating_add(1);
        let limit = ended.saturating_add(self.config.max_streams);
        let step = (self.config.max_streams / 4).max(1);
        if limit >= streams.peer_limits[slot].saturating_add(step) {
            streams.peer_limits[slot] = limit;
            self.control.push_back(Frame::MaxStreams { kind: id.kind(), count: limit });
        }
    }
}
