//! Cutting a super-packet: which runs of its wire segments travel on together.

use hikyaku_link::{Ecn, Link, Order, Verdict};
use hikyaku_units::Instant;
use std::ops::Range;
use std::time::Duration;

use super::packet::Layout;

/// Segments that travel together arrive together, when the last of them does, and TCP answers them
/// with one acknowledgement. On a slow link that would turn a steady flow into gusts, so a piece
/// spans no more time than this: about what a network card collects before it interrupts. A whole
/// super-packet of 64 KB takes 52 us at 10 Gbit/s, and 8 segments take 98 us at 1 Gbit/s.
const LONGEST_SPAN: Duration = Duration::from_micros(100);

/// A run of wire segments that travels as one packet.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) segments: Range<usize>,
    /// When the last one leaves the bottleneck, and when it arrives.
    pub(crate) departs: Instant,
    pub(crate) at: Instant,
    pub(crate) order: Order,
    pub(crate) copies: Copies,
    /// The number that chooses the bit to flip.
    pub(crate) corrupt: Option<u32>,
    pub(crate) ce: bool,
    /// When the first one arrives.
    first_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    One,
    Two,
}

impl Piece {
    /// Whether the segment after this run may join it.
    fn takes(&self, next: &Self) -> bool {
        self.segments.end == next.segments.start
            && self.is_plain()
            && next.is_plain()
            && self.ce == next.ce
            && next.at - self.first_at <= LONGEST_SPAN
    }

    /// Whether nothing sets it apart from its neighbours.
    fn is_plain(&self) -> bool {
        self.order == Order::Kept && self.copies == Copies::One && self.corrupt.is_none()
    }
}

/// Offers every wire segment of a packet to `link` at `now`, and collects what arrives in `pieces`.
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
            Some(last) if last.takes(&piece) => {
                last.segments.end = piece.segments.end;
                (last.departs, last.at) = (piece.departs, piece.at);
            }
            _ => pieces.push(piece),
        }
    }
}
