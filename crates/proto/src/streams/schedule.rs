//! The order in which streams send new bytes: urgent streams, then streams that were idle, then the
//! others in turn.
//!
//! The schedule holds exactly the streams that have bytes that they may send, so that idle streams
//! cost nothing.

use alloc::collections::BTreeMap;
use core::time::Duration;
use hikyaku_units::Instant;
use hikyaku_wire::StreamId;

/// The priority of a stream's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Priority {
    /// Sent before all bytes that are not urgent, because a user or a program waits for them.
    Urgent,
    /// Sent in turn with those of the other streams.
    #[default]
    Normal,
}

/// Bytes that a stream may send before the others after it had none to send for a round trip. A
/// request or an answer of a dialogue fits into them; a bulk transfer does not and takes turns.
/// (FQ-CoDel treats new flows in the same way: RFC 8290, section 4.2.)
const SPARSE_BYTES: u64 = 16 << 10;
/// Bytes of one turn, which is what one send call takes.
const TURN_BYTES: u64 = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    Urgent,
    Sparse,
    Normal,
}

/// Whether a stream had unsent bytes before those that made it ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Backlog {
    /// It had none.
    New,
    /// It had some that flow control blocked.
    Old,
}

/// What a stream has left to send after its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    /// Nothing, or nothing that flow control allows.
    Nothing,
    /// More.
    Some,
}

/// The streams that are ready to send.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Each line is served in order of arrival.
    lines: [BTreeMap<u64, StreamId>; 3],
    last_ticket: u64,
}

/// The scheduling state of one stream.
#[derive(Debug, Default)]
pub(crate) struct Place {
    priority: Priority,
    /// The line in which the stream stands, and its position there.
    ticket: Option<(Line, u64)>,
    /// Bytes that it may still send before the others, and when it got this right.
    ahead: u64,
    ahead_since: Option<Instant>,
    /// Bytes left of its turn.
    turn: u64,
}

impl Schedule {
    pub(crate) const fn new() -> Self {
        Self { lines: [const { BTreeMap::new() }; 3], last_ticket: 0 }
    }

    /// The stream to serve next.
    pub(crate) fn first(&self) -> Option<StreamId> {
        self.lines.iter().find_map(|line| line.first_key_value().map(|(_, &id)| id))
    }

    /// Bytes that the served stream may send before the next one is served.
    pub(crate) fn share(&self, place: &Place) -> u64 {
        let is_alone = self.lines.iter().map(BTreeMap::len).sum::<usize>() == 1;
        match place.ticket {
            Some((Line::Sparse, _)) => place.ahead,
            _ if is_alone => u64::MAX,
            _ => place.turn,
        }
    }

    /// Adds a stream that has bytes that it may send.
    pub(crate) fn enter(
        &mut self,
        id: StreamId,
        place: &mut Place,
        backlog: Backlog,
        (now, rtt): (Instant, Duration),
    ) {
        if place.ticket.is_some() {
            return;
        }
        if backlog == Backlog::New && place.ahead_since.is_none_or(|since| now - since >= rtt) {
            place.ahead_since = Some(now);
            place.ahead = SPARSE_BYTES;
        }
        let line = match (place.priority, backlog) {
            (Priority::Urgent, _) => Line::Urgent,
            (Priority::Normal, Backlog::New) if place.ahead > 0 => Line::Sparse,
            (Priority::Normal, _) => Line::Normal,
        };
        self.line_up(id, place, line);
    }

    /// Removes a stream that has no more bytes that it may send.
    pub(crate) fn leave(&mut self, place: &mut Place) {
        if let Some((line, ticket)) = place.ticket.take() {
            self.lines[line as usize].remove(&ticket);
        }
    }

    /// Records that the first stream has sent `bytes`.
    pub(crate) fn on_sent(&mut self, id: StreamId, place: &mut Place, bytes: u64, rest: Rest) {
        let Some((line, _)) = place.ticket else { return };
        let left = if line == Line::Sparse { &mut place.ahead } else { &mut place.turn };
        *left = left.saturating_sub(bytes);
        let is_used_up = *left == 0;
        match rest {
            Rest::Nothing => self.leave(place),
            Rest::Some if is_used_up => {
                self.leave(place);
                self.line_up(id, place, if line == Line::Sparse { Line::Normal } else { line });
            }
            Rest::Some => {}
        }
    }

    /// Changes the priority of the stream.
    pub(crate) fn set_priority(&mut self, id: StreamId, place: &mut Place, priority: Priority) {
        let was_ready = place.ticket.is_some();
        self.leave(place);
        place.priority = priority;
        if was_ready {
            let is_urgent = priority == Priority::Urgent;
            self.line_up(id, place, if is_urgent { Line::Urgent } else { Line::Normal });
        }
    }

    fn line_up(&mut self, id: StreamId, place: &mut Place, line: Line) {
        self.last_ticket += 1;
        place.ticket = Some((line, self.last_ticket));
        place.turn = TURN_BYTES;
        self.lines[line as usize].insert(self.last_ticket, id);
    }
}

#[cfg(test)]
mod tests;
