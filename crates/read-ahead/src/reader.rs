//! The pattern of reads of one open file, and the ranges to request before they are read.

use crate::{BLOCK_BYTES, SEGMENT_BYTES, Window};
use alloc::vec::Vec;
use core::ops::Range;

#[cfg(test)]
mod tests;

/// The reads of one open file.
#[derive(Clone, Debug)]
pub struct Reader {
    size: u64,
    state: State,
    last: Range<u64>,
    /// The distance from the beginning of the read before to that of the last one.
    step: Option<u64>,
    /// Reads in a row that end where the one before begins.
    backward_reads: u32,
}

#[derive(Clone, Debug)]
enum State {
    /// Nothing has been read.
    Fresh,
    /// Reads follow each other.
    InOrder(InOrder),
    /// Each read ends where the one before begins. Asked for down to this byte.
    Backward { asked_from: u64, run: u64 },
    /// Reads of equal distance. The first one that has not been asked for begins here.
    Strided { next: u64 },
    /// No rule is known.
    Random,
}

#[derive(Clone, Debug)]
struct InOrder {
    /// The end of what has been read.
    next: u64,
    /// Bytes that were read in order.
    run: u64,
    /// Whether the first of them was that of the file.
    is_from_start: bool,
    /// Asked for up to this byte.
    asked_to: u64,
}

/// A file of at most this size is asked for as a whole at its first read.
const WHOLE_BYTES_MAX: u64 = 8 << 20;
/// The first read of a larger file asks for this much.
const FIRST_BYTES: u64 = 1 << 20;
/// Reads within this distance of each other are in order: the kernel's threads overtake each other.
const DISORDER_BYTES: u64 = 2 << 20;
/// Minimum of bytes ahead of a reader that did not begin at the start of the file.
const UNREAD_BYTES_MIN: u64 = 8 << 20;
/// Consecutive backward reads that are a pattern. A single one is caused by the kernel's threads.
const BACKWARD_READS_MIN: u32 = 2;
/// Reads with equal gaps that are asked for ahead.
const STRIDES_MAX: u64 = 64;

impl Reader {
    /// A file of `size` bytes of which nothing has been read.
    pub const fn new(size: u64) -> Self {
        Self { size, state: State::Fresh, last: 0..0, step: None, backward_reads: 0 }
    }

    /// The file has another size from here on.
    pub const fn set_size(&mut self, size: u64) {
        self.size = size;
    }

    /// Of what was asked for ahead, nothing from `offset` on will come: it was too much, or it was lost.
    pub const fn handle_lost(&mut self, offset: u64) {
        if let State::InOrder(order) = &mut self.state
            && order.asked_to > offset
        {
            order.asked_to = offset;
        }
    }

    /// A program reads these bytes. Returns the ranges to ask for ahead; the bytes themselves are not among them unless
    /// they lie between others.
    pub fn handle_read(&mut self, read: Range<u64>, window: Window) -> Vec<Range<u64>> {
        let last = core::mem::replace(&mut self.last, read.clone());
        let step = read.start.checked_sub(last.start);
        let is_same_step = step.is_some_and(|step| step > DISORDER_BYTES) && step == self.step;
        let is_first = matches!(self.state, State::Fresh);
        self.step = if is_first { None } else { step };
        self.backward_reads = if is_before(&read, &last) { self.backward_reads + 1 } else { 0 };
        let is_backward = !is_first && self.backward_reads >= BACKWARD_READS_MIN;
        let ahead = match &mut self.state {
            State::Fresh => return self.first(&read),
            State::InOrder(order) if order.holds(&read) && !is_backward => {
                order.advance(&read, self.size, window)
            }
            State::Backward { asked_from, run } if is_before(&read, &last) => {
                *run += read.end - read.start;
                backward(&read, asked_from, *run, window)
            }
            State::Strided { next } if is_same_step => {
                strided(&read, step.unwrap_or(0), next, window)
            }
            // A rule is left at the first read against it.
            _ if is_near(&last, &read) => {
                let mut order = InOrder {
                    next: last.end,
                    run: last.end - last.start,
                    is_from_start: last.start == 0,
                    asked_to: read.end,
                };
                let ahead = order.advance(&read, self.size, window);
                self.state = State::InOrder(order);
                ahead
            }
            _ if is_backward => {
                let run = last.end - read.start;
                let mut asked_from = read.start;
                let ahead = backward(&read, &mut asked_from, run, window);
                self.state = State::Backward { asked_from, run };
                ahead
            }
            _ if is_same_step => {
                let mut next = read.start;
                let ahead = strided(&read, step.unwrap_or(0), &mut next, window);
                self.state = State::Strided { next };
                ahead
            }
            _ => {
                self.state = State::Random;
                None.into_iter().collect()
            }
        };
        let size = self.size;
        let inside = ahead.into_iter().map(|range| range.start.min(size)..range.end.min(size));
        inside.filter(|range| !range.is_empty()).collect()
    }

    fn first(&mut self, read: &Range<u64>) -> Vec<Range<u64>> {
        let ahead = match (self.size <= WHOLE_BYTES_MAX, read.start) {
            (true, _) => Some(0..self.size),
            (false, 0) => Some(0..self.size.min(FIRST_BYTES)),
            (false, _) => None,
        };
        self.state = State::InOrder(InOrder {
            next: read.end,
            run: read.end - read.start,
            is_from_start: read.start == 0,
            asked_to: ahead.as_ref().map_or(read.end, |ahead| ahead.end),
        });
        ahead.into_iter().filter(|range| !range.is_empty()).collect()
    }
}

impl InOrder {
    fn holds(&self, read: &Range<u64>) -> bool {
        read.start <= self.next + DISORDER_BYTES && read.start + DISORDER_BYTES >= self.next
    }

    fn advance(&mut self, read: &Range<u64>, size: u64, window: Window) -> Vec<Range<u64>> {
        self.run += read.end.saturating_sub(self.next);
        self.next = self.next.max(read.end);
        let bytes = match self.is_from_start {
            true => window.bytes,
            false => window.bytes.min(UNREAD_BYTES_MIN.max(2 * self.run)),
        };
        let to = size.min((self.next + bytes).next_multiple_of(SEGMENT_BYTES));
        let from = self.asked_to.max(self.next / BLOCK_BYTES * BLOCK_BYTES);
        if to < from + window.portion && (to < size || from >= size) {
            return Vec::new();
        }
        self.asked_to = to;
        core::iter::once(from..to).collect()
    }
}

/// Whether a read follows another one closely.
fn is_near(last: &Range<u64>, read: &Range<u64>) -> bool {
    read.start >= last.end && read.start <= last.end + DISORDER_BYTES
}

/// Whether a read ends where another one begins.
fn is_before(read: &Range<u64>, last: &Range<u64>) -> bool {
    read.start < last.start && read.end <= last.end && read.end + BLOCK_BYTES >= last.start
}

fn backward(read: &Range<u64>, asked_from: &mut u64, run: u64, window: Window) -> Vec<Range<u64>> {
    let bytes = window.bytes.min(UNREAD_BYTES_MIN.max(2 * run));
    let from = read.start.saturating_sub(bytes) / SEGMENT_BYTES * SEGMENT_BYTES;
    let to = (*asked_from).min(read.start);
    if from + window.portion > to && (from > 0 || to == 0) {
        return Vec::new();
    }
    *asked_from = from;
    core::iter::once(from..to).collect()
}

fn strided(read: &Range<u64>, step: u64, next: &mut u64, window: Window) -> Vec<Range<u64>> {
    let length = read.end - read.start;
    let count = (window.bytes / length.max(BLOCK_BYTES)).clamp(1, STRIDES_MAX);
    let first = (*next).max(read.start.saturating_add(step));
    let end = read.start.saturating_add(step.saturating_mul(count));
    let starts = core::iter::successors(Some(first), |start| start.checked_add(step));
    let pieces = starts.take_while(|&start| start <= end).take(count as usize);
    let pieces: Vec<Range<u64>> = pieces.map(|start| start..start.saturating_add(length)).collect();
    if let Some(last) = pieces.last() {
        *next = last.start.saturating_add(step);
    }
    pieces
}
