//! An ask under way: its parts, and how much of it has arrived.

use crate::ids::AskId;
use crate::segments::{Run, SEGMENT_BYTES};
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::Instant;

/// A run of a file in an ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) file: u32,
    pub(crate) run: Run,
    pub(crate) bytes: u64,
    pub(crate) hold: Hold,
}

/// Whether what is not proven of a part goes back to the stock when the ask ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    /// The part returns to the stock: no other ask has it.
    Owned,
    /// It does not: the stock or another ask has the same segments.
    Copy,
}

/// The part of an ask that may be cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// Segments of which nothing has arrived.
    Untouched,
    /// Also the segment that is under way. Its received bytes are lost if the caller does not keep them.
    Begun,
}

/// An ask under way.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) id: AskId,
    /// The requested parts, in the order in which the server sends them.
    pub(crate) parts: Vec<Part>,
    /// The bytes that were asked for.
    asked_bytes: u64,
    /// The bytes of all parts: what was asked for without what was cut off.
    bytes: u64,
    /// Of them, what has arrived.
    arrived: u64,
    /// When it was asked.
    asked: Instant,
    /// When the first byte can be here, at the known round-trip time.
    pub(crate) due: Instant,
}

impl Ask {
    /// An ask of which nothing has arrived.
    pub(crate) fn new(id: AskId, parts: Vec<Part>, asked: Instant, rtt: Duration) -> Self {
        let bytes = parts.iter().map(|part| part.bytes).sum();
        Self { id, parts, asked_bytes: bytes, bytes, arrived: 0, asked, due: asked + rtt }
    }

    /// From when on the server could send what arrives at `now`. An arrival before its time shows that the known
    /// round-trip time is too long.
    pub(crate) fn could_send_from(&mut self, now: Instant) -> Instant {
        let from = if now < self.due { self.asked } else { self.due };
        self.due = self.due.min(now);
        from
    }

    /// The bytes that were asked for and have not arrived.
    pub(crate) const fn left(&self) -> u64 {
        self.bytes - self.arrived
    }

    /// Whether all that was asked for has arrived.
    pub(crate) const fn is_complete(&self) -> bool {
        self.arrived == self.asked_bytes
    }

    /// The bytes of all parts.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes have arrived. Returns how many of them count: not those of parts that were cut off.
    pub(crate) fn arrive(&mut self, bytes: u64) -> u64 {
        let counted = bytes.min(self.left());
        self.arrived += counted;
        counted
    }

    /// Cuts up to about `bytes` of parts off the end, whole segments, within the reach, and only parts that `may_cut`
    /// accepts. Returns them, the last one first.
    pub(crate) fn cut(
        &mut self,
        bytes: u64,
        reach: Reach,
        may_cut: impl Fn(&Part) -> bool,
    ) -> Vec<Part> {
        let begun = if reach == Reach::Begun { self.begun() } else { 0 };
        let (mut cut, mut wanted) = (Vec::new(), bytes.min(self.left() + begun));
        while let Some(last) = self.parts.last_mut().filter(|part| may_cut(part)) {
            let count = segments_within(last, wanted);
            if count == 0 {
                break;
            }
            let run = Run::new(last.run.end - count, last.run.end);
            // Only the last segment of a part may be short.
            let kept = u64::from(last.run.count() - count) * SEGMENT_BYTES;
            let gone = Part { run, bytes: last.bytes - kept.min(last.bytes), ..*last };
            last.run.end = run.first;
            last.bytes -= gone.bytes;
            self.bytes -= gone.bytes;
            wanted = wanted.saturating_sub(gone.bytes);
            cut.push(gone);
            if last.run.count() > 0 {
                break;
            }
            self.parts.pop();
        }
        self.arrived = self.arrived.min(self.bytes);
        cut
    }

    /// The bytes that have arrived of a segment that has not arrived whole.
    fn begun(&self) -> u64 {
        let mut arrived = self.arrived;
        for part in &self.parts {
            if arrived < part.bytes {
                return arrived % SEGMENT_BYTES;
            }
            arrived -= part.bytes;
        }
        0
    }
}

/// How many segments at the end of a part have at most these bytes.
fn segments_within(part: &Part, bytes: u64) -> u32 {
    if part.bytes <= bytes {
        return part.run.count();
    }
    // A short last segment is that of the file.
    let last = part.bytes - u64::from(part.run.count() - 1) * SEGMENT_BYTES;
    let others = bytes.checked_sub(last).map_or(0, |rest| 1 + rest / SEGMENT_BYTES);
    // Fewer than the part has, which is a u32.
    others as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reach::Untouched;
    use alloc::vec;

    const MIB: u64 = SEGMENT_BYTES;

    fn part(file: u32, first: u32, end: u32, bytes: u64) -> Part {
        Part { file, run: Run::new(first, end), bytes, hold: Hold::Owned }
    }

    #[test]
    fn whole_segments_are_cut_off_the_end_and_nothing_that_has_arrived() {
        let parts = vec![part(0, 0, 3, 3 * MIB), part(1, 4, 7, 2 * MIB + 5)];
        let mut ask = Ask::new(AskId(0), parts, Instant::ZERO, Duration::ZERO);
        assert_eq!(ask.arrive(MIB + 1), MIB + 1);
        assert_eq!(ask.cut(4, Untouched, |_| true), []);
        assert_eq!(ask.cut(MIB + 4, Untouched, |_| true), [part(1, 6, 7, 5)]);
        assert_eq!(ask.cut(u64::MAX, Untouched, |part| part.file == 1), [part(1, 4, 6, 2 * MIB)]);
        assert_eq!(ask.cut(u64::MAX, Untouched, |_| true), [part(0, 2, 3, MIB)]);
        assert_eq!((ask.bytes(), ask.left()), (2 * MIB, MIB - 1));
        assert_eq!(ask.cut(u64::MAX, Reach::Begun, |_| true), [part(0, 1, 2, MIB)]);
        assert_eq!((ask.bytes(), ask.left(), ask.arrive(u64::MAX)), (MIB, 0, 0));
        assert_eq!(ask.cut(u64::MAX, Reach::Begun, |_| true), []);
    }
}
