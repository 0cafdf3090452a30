//! Splits a super-packet into runs of wire segments that travel together.

use hikyaku_link::{Ecn, Link, Order, Verdict};
use hikyaku_units::Instant;
use std::ops::Range;
use std::time::Duration;

use super::packet::Layout;

/// Longest time between the first and last segment of a run. Segments of a run arrive together,
/// when the last of them does, and TCP answers them with a single ACK. On a slow link a long run
/// would therefore turn a steady flow into bursts. The limit is about the interrupt coalescing
/// delay of a network card. A super-packet of 64 KB takes 52 us at 10 Gbit/s, and 8 segments take
/// 98 us at 1 Gbit/s.
const RUN_TIME_MAX: Duration = Duration::from_micros(100);

/// A run of wire segments that travels as one packet.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) segments: Range<usize>,
    /// When the last segment leaves the bottleneck, and when it arrives.
    pub(crate) departs: Instant,
    pub(crate) at: Instant,
    pub(crate) order: Order,
    pub(crate) copies: Copies,
    /// The number that selects the bit to flip, if the segment is corrupted.
    pub(crate) corrupt: Option<u32>,
    pub(crate) ce: bool,
    /// When the first segment arrives.
    first_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    One,
    Two,
}

impl Piece {
    /// Whether the segment `next`, which follows this run, can be appended to it.
    fn can_append(&self, next: &Self) -> bool {
        self.segments.end == next.segments.start
            && self.is_unimpaired()
            && next.is_unimpaired()
            && self.ce == next.ce
            && next.at - self.first_at <= RUN_TIME_MAX
    }

    /// Whether the run has not been reordered, duplicated or corrupted.
    fn is_unimpaired(&self) -> bool {
        self.order == Order::Kept && self.copies == Copies::One && self.corrupt.is_none()
    }
}

/// Offers every wire segment of a packet to `link` at time `now`, and collects the arriving runs in
/// `pieces`.
#[inline]
pub(crate) fn cut(
    link: &mut Link,
    now: Instant,
    layout: &Layout,
    ecn: Ecn,
    pieces: &mut Vec<Piece>,
) {
    pieces.clear();
    for index in 0..layout.segments() {
        let Verdict::Deliver(delivery) = link.offer_as(now, layout.segment_len(index), ecn) else {
            continue;
        };
        let copies = if delivery.duplicate_at.is_some() { Copies::Two } else { Copies::One };
        let piece = Piece {
            segments: index..index + 1,
            departs: delivery.departs,
            at: delivery.at,
            first_at: delivery.at,
            order: delivery.order,
            copies,
            corrupt: delivery.corrupt,
            ce: delivery.marked_ce,
        };
        match pieces.last_mut() {
            Some(last) if last.can_append(&piece) => {
                last.segments.end = piece.segments.end;
                (last.departs, last.at) = (piece.departs, piece.at);
            }
            _ => pieces.push(piece),
        }
    }
}
