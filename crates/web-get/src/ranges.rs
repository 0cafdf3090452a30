//! The bytes of a file that are missing, that are being fetched, and that are written.
//!
//! A worker takes a lease on a range ([`Board::take`]), reserves bytes of it before it writes them
//! ([`Board::reserve`]), and tells what it wrote ([`Board::wrote`]). Each byte is missing, in one lease, or there. When
//! nothing is missing, a worker without work takes over the end of the lease that would take longest, so that a slow
//! connection does not hold up the end. What a worker has reserved is never taken from it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A lease with less than this many bytes left is not divided: a request costs a round trip.
const STEAL_BYTES_MIN: u64 = 1 << 20;
/// A lease without a byte for this time is taken over whole.
const STUCK_AFTER: Duration = Duration::from_secs(3);

/// Identifies a lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LeaseId(u64);

/// A written part of the file, and the source it came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) range: Range<u64>,
    pub(crate) source: usize,
}

#[derive(Clone, Debug)]
struct Lease {
    from: u64,
    /// Bytes before this are written.
    written: u64,
    /// Bytes before this are written, or about to be.
    reserved: u64,
    end: u64,
    source: usize,
    begun: Instant,
    /// When bytes came last.
    moved: Instant,
}

/// The state of all bytes of a file. See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    /// In order, not touching each other.
    missing: Vec<Range<u64>>,
    leases: BTreeMap<LeaseId, Lease>,
    there: Vec<Piece>,
    next: u64,
}

impl Lease {
    /// The seconds for the rest at the rate so far.
    fn seconds_left(&self, now: Instant) -> f64 {
        let seconds = now.saturating_duration_since(self.begun).as_secs_f64().max(1e-3);
        let rate = (self.written - self.from).max(1) as f64 / seconds;
        (self.end - self.reserved) as f64 / rate
    }
}

impl Board {
    /// A file of which `have` is there, and `missing` is not.
    pub(crate) fn new(missing: Vec<Range<u64>>, have: Vec<Piece>) -> Self {
        let mut board = Self { missing: Vec::new(), leases: BTreeMap::new(), there: have, next: 0 };
        missing.into_iter().for_each(|range| board.put_back(range));
        board
    }

    /// Bytes that are not there.
    pub(crate) fn left(&self) -> u64 {
        let missing: u64 = self.missing.iter().map(|range| range.end - range.start).sum();
        let leased: u64 = self.leases.values().map(|lease| lease.end - lease.written).sum();
        missing + leased
    }

    /// The parts that are there, in order; neighbours of one source are one.
    pub(crate) fn there(&self) -> Vec<Piece> {
        let leases = self
            .leases
            .values()
            .map(|lease| Piece { range: lease.from..lease.written, source: lease.source });
        let mut pieces: Vec<Piece> = self.there.iter().cloned().chain(leases).collect();
        pieces.retain(|piece| !piece.range.is_empty());
        pieces.sort_unstable_by_key(|piece| piece.range.start);
        let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            match joined.last_mut() {
                Some(last)
                    if last.range.end >= piece.range.start && last.source == piece.source =>
                {
                    last.range.end = last.range.end.max(piece.range.end);
                }
                _ => joined.push(piece),
            }
        }
        joined
    }

    /// Where the first missing range begins.
    pub(crate) fn first_missing(&self) -> Option<u64> {
        self.missing.first().map(|range| range.start)
    }

    /// A lease on the first missing range, of at most `most` bytes.
    pub(crate) fn take(
        &mut self,
        most: u64,
        source: usize,
        now: Instant,
    ) -> Option<(LeaseId, Range<u64>)> {
        let first = self.missing.first_mut()?;
        let range = first.start..first.end.min(first.start.saturating_add(most.max(1)));
        first.start = range.end;
        self.missing.retain(|range| !range.is_empty());
        Some((self.lease(range.clone(), source, now), range))
    }

    /// A lease on the end of another one: half of what is left, or all of it if that one has brought nothing for a
    /// while. `None` if none is worth it.
    pub(crate) fn steal(&mut self, source: usize, now: Instant) -> Option<(LeaseId, Range<u64>)> {
        let is_stuck = |lease: &Lease| now.saturating_duration_since(lease.moved) >= STUCK_AFTER;
        let left = |lease: &Lease| lease.end - lease.reserved;
        let is_worth = |lease: &&mut Lease| {
            left(lease) >= STEAL_BYTES_MIN || is_stuck(lease) && left(lease) > 0
        };
        let slowest = self.leases.values_mut().filter(is_worth);
        let slowest = slowest.max_by(|a, b| a.seconds_left(now).total_cmp(&b.seconds_left(now)))?;
        let at = match is_stuck(slowest) {
            true => slowest.reserved,
            false => slowest.reserved + left(slowest) / 2,
        };
        let range = at..slowest.end;
        slowest.end = at;
        Some((self.lease(range.clone(), source, now), range))
    }

    fn lease(&mut self, range: Range<u64>, source: usize, now: Instant) -> LeaseId {
        let id = LeaseId(self.next);
        self.next += 1;
        let Range { start: from, end } = range;
        let lease =
            Lease { from, written: from, reserved: from, end, source, begun: now, moved: now };
        self.leases.insert(id, lease);
        id
    }

    /// Where to write the next `bytes` of a lease, and how many of them still belong to it; 0: it is over.
    pub(crate) fn reserve(&mut self, id: LeaseId, bytes: u64) -> (u64, u64) {
        let Some(lease) = self.leases.get_mut(&id) else { return (0, 0) };
        let at = lease.reserved;
        lease.reserved = lease.end.min(at.saturating_add(bytes));
        (at, lease.reserved - at)
    }

    /// All that was reserved of a lease is written.
    pub(crate) fn wrote(&mut self, id: LeaseId, now: Instant) {
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.written = lease.reserved;
            lease.moved = now;
        }
    }

    /// A lease is given back. What is not written of it is missing again. Returns whether nothing was.
    pub(crate) fn end(&mut self, id: LeaseId) -> bool {
        let Some(lease) = self.leases.remove(&id) else { return true };
        self.there.push(Piece { range: lease.from..lease.written, source: lease.source });
        self.put_back(lease.written..lease.end);
        lease.written == lease.end
    }

    fn put_back(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let at = self.missing.partition_point(|other| other.start < range.start);
        self.missing.insert(at, range);
        let mut joined: Vec<Range<u64>> = Vec::with_capacity(self.missing.len());
        for range in self.missing.drain(..) {
            match joined.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        self.missing = joined;
    }
}

#[cfg(test)]
mod tests;
