//! The applications of the two ends. They write bytes that follow from their offset, and check the
//! bytes that they receive.

use crate::duo::{index, other};
use crate::pattern::Pattern;
use hikyaku_proto::{
    CloseReason, Connection, Event, Priority, RangeSet, Side, StreamId, StreamKind,
};
use std::collections::BTreeMap;

/// The code of a stream that its writer ends abnormally.
const BREAK_OFF_CODE: u64 = 9;

/// The state of both applications.
pub(crate) struct Apps {
    pattern: Pattern,
    /// By the side that writes.
    halves: BTreeMap<(usize, StreamId), Half>,
    writable: [Vec<StreamId>; 2],
    readable: [Vec<StreamId>; 2],
    closed: [Option<CloseReason>; 2],
}

/// One direction of a stream.
#[derive(Default)]
struct Half {
    written: u64,
    got: RangeSet,
    /// Ordered streams: the offset of the next byte.
    next: u64,
    fate: Fate,
    is_delivered: bool,
}

/// The state of one direction of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Fate {
    #[default]
    Open,
    /// The writer has ended the stream.
    Finished,
    /// The reader has reached the end.
    Ended,
    /// The writer has ended the stream with a code, which the reader is told at the end.
    BrokenOff,
    /// Reset by the writer or stopped by the reader, so that the end is not determined.
    GivenUp,
}

impl Apps {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            pattern: Pattern::new(seed),
            halves: BTreeMap::new(),
            writable: Default::default(),
            readable: Default::default(),
            closed: Default::default(),
        }
    }

    /// Opens a stream if the peer allows one more.
    pub(crate) fn open(&mut self, end: &mut Connection, kind: StreamKind) -> Option<StreamId> {
        let id = end.open(kind)?;
        self.adopt(end.side(), id);
        Some(id)
    }

    /// Records a stream that `side` has opened.
    fn adopt(&mut self, side: Side, id: StreamId) {
        let (here, there) = (index(side), index(other(side)));
        self.writable[here].push(id);
        self.readable[there].push(id);
        self.halves.entry((here, id)).or_default();
        if id.kind() == StreamKind::Ordered {
            self.readable[here].push(id);
            self.halves.entry((there, id)).or_default();
        }
    }

    /// Writes `len` bytes to one of its streams.
    pub(crate) fn write(&mut self, end: &mut Connection, nth: usize, len: usize) {
        if let Some((id, _)) = self.writable(end.side(), nth) {
            self.say(end, id, len);
        }
    }

    /// Writes `len` bytes to this stream.
    pub(crate) fn say(&mut self, end: &mut Connection, id: StreamId, len: usize) {
        let Some(half) = self.halves.get_mut(&(index(end.side()), id)) else { return };
        if half.fate == Fate::Open {
            let at = half.written;
            half.written += len as u64;
            let base = base(end.side(), id);
            let mut done = 0;
            while done < len {
                let bytes = self.pattern.bytes(base + at + done as u64, len - done);
                done += bytes.len();
                end.write(id, bytes);
            }
        }
    }

    /// Ends one of its streams after the bytes written so far.
    pub(crate) fn finish(&mut self, end: &mut Connection, nth: usize) {
        let Some((id, half)) = self.writable(end.side(), nth) else { return };
        if half.fate == Fate::Open {
            half.fate = Fate::Finished;
        }
        end.finish(id);
    }

    /// Ends all streams that it has not ended.
    pub(crate) fn finish_all(&mut self, end: &mut Connection) {
        (0..self.writable[index(end.side())].len()).for_each(|nth| self.finish(end, nth));
    }

    pub(crate) fn reset(&mut self, end: &mut Connection, nth: usize) {
        if let Some((id, half)) = self.writable(end.side(), nth) {
            half.fate = Fate::GivenUp;
            end.reset(id, 5);
        }
    }

    /// Ends one of its streams with a code after the bytes written so far.
    pub(crate) fn break_off(&mut self, end: &mut Connection, nth: usize) {
        let Some((id, half)) = self.writable(end.side(), nth) else { return };
        if half.fate == Fate::Open {
            half.fate = Fate::BrokenOff;
            end.reset_after(id, BREAK_OFF_CODE);
        }
    }

    /// Discards the unsent bytes of one of its streams.
    pub(crate) fn cut(&mut self, end: &mut Connection, nth: usize) {
        let Some((id, half)) = self.writable(end.side(), nth) else { return };
        if matches!(half.fate, Fate::Open | Fate::Finished)
            && let Some(size) = end.cut(id)
        {
            half.fate = Fate::Finished;
            half.written = size;
        }
    }

    /// Sets the priority of one of its streams.
    pub(crate) fn set_priority(&mut self, end: &mut Connection, nth: usize, priority: Priority) {
        if let Some((id, _)) = self.writable(end.side(), nth) {
            end.set_priority(id, priority);
        }
    }

    pub(crate) fn stop(&mut self, end: &mut Connection, nth: usize) {
        let (here, there) = (index(end.side()), index(other(end.side())));
        let Some(&id) = pick(&self.readable[here], nth) else { return };
        let Some(half) = self.halves.get_mut(&(there, id)) else { return };
        half.fate = Fate::GivenUp;
        end.stop(id, 6);
    }

    /// Reads about `most` bytes at most, and checks them.
    pub(crate) fn read(&mut self, end: &mut Connection, most: usize) -> Result<(), String> {
        let (side, mut taken) = (end.side(), 0);
        while taken < most {
            let Some((id, delivery)) = end.poll_delivery() else { break };
            let half = self.halves.get_mut(&(index(other(side)), id));
            let half = half.ok_or_else(|| format!("{side:?} got bytes of {id:?}"))?;
            let (mut offset, len) = (delivery.offset, delivery.run.len() as u64);
            if id.kind() == StreamKind::Ordered && offset != half.next {
                return Err(format!("{side:?} got {offset} of {id:?} after {}", half.next));
            }
            if half.got.insert(offset, offset + len) != len || offset + len > half.written {
                return Err(format!(
                    "{side:?} got {len} at {offset} of {id:?} again, or unwritten"
                ));
            }
            half.next = offset + len;
            for piece in delivery.run.pieces() {
                let at = base(other(side), id) + offset;
                self.pattern.verify(at, piece).map_err(|_| format!("wrong byte of {id:?}"))?;
                offset += piece.len() as u64;
            }
            end.consumed(id, len);
            taken += len as usize;
        }
        Ok(())
    }

    /// Handles the events of the connection.
    pub(crate) fn handle_events(&mut self, end: &mut Connection) -> Result<(), String> {
        let side = end.side();
        while let Some(event) = end.poll_event() {
            match event {
                Event::Connected | Event::Stopped(..) => {}
                Event::Reset(id, code) => {
                    let half = self.halves.get_mut(&(index(other(side)), id));
                    let half = half.ok_or("a reset of no stream")?;
                    if half.fate == Fate::BrokenOff {
                        if code != BREAK_OFF_CODE || half.got.prefix() != half.written {
                            let had = half.got.prefix();
                            return Err(format!("{id:?} broke off at {had} of {}", half.written));
                        }
                        half.fate = Fate::Ended;
                    } else if half.fate != Fate::GivenUp {
                        return Err(format!("{id:?} was reset by nobody"));
                    }
                }
                Event::Opened(id) => {
                    if id.kind() == StreamKind::Ordered {
                        self.writable[index(side)].push(id);
                    }
                }
                Event::Ended(id) => {
                    let half = self.halves.get_mut(&(index(other(side)), id));
                    let half = half.ok_or("an end of no stream")?;
                    if half.fate != Fate::GivenUp {
                        if half.fate != Fate::Finished || half.got.prefix() != half.written {
                            let had = half.got.prefix();
                            return Err(format!("{id:?} ended at {had} of {}", half.written));
                        }
                        half.fate = Fate::Ended;
                    }
                }
                Event::Delivered(id) => {
                    let half = self.halves.get_mut(&(index(side), id));
                    half.ok_or("a delivery of no stream")?.is_delivered = true;
                }
                Event::Closed(reason) => {
                    if let Some(before) = self.closed[index(side)].replace(reason) {
                        return Err(format!("{side:?} closed twice, first: {before}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// A description of what is unfinished although both ends have done their part.
    pub(crate) fn unfinished(&self) -> Option<String> {
        let is_over = |half: &Half| match half.fate {
            Fate::Open | Fate::Finished | Fate::BrokenOff => false,
            Fate::Ended => half.is_delivered,
            Fate::GivenUp => true,
        };
        self.halves.iter().find(|(_, half)| !is_over(half)).map(|((from, id), half)| {
            let had = half.got.prefix();
            format!("{id:?} from {from}: {had} of {} bytes, {:?}", half.written, half.fate)
        })
    }

    /// Why an end is closed.
    pub(crate) fn closed(&self, side: Side) -> Option<&CloseReason> {
        self.closed[index(side)].as_ref()
    }

    fn writable(&mut self, side: Side, nth: usize) -> Option<(StreamId, &mut Half)> {
        let id = *pick(&self.writable[index(side)], nth)?;
        Some((id, self.halves.get_mut(&(index(side), id))?))
    }
}

fn pick<T>(all: &[T], nth: usize) -> Option<&T> {
    all.get(nth.checked_rem(all.len())?)
}

/// The offset in the pattern at which a stream's bytes begin.
fn base(writer: Side, id: StreamId) -> u64 {
    u64::from(id.0) * 7919 + index(writer) as u64 * 104_729
}
