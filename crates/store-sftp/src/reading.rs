//! Ranges of an open file, read with many requests under way.

use hikyaku_sftp::{Asked, Client, DATA_BYTES_MAX, Handle, Limits, Request, Ticket};
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of one file that are under way at once: the window of OpenSSH's channels.
const WINDOW_BYTES: usize = 2 << 20;
/// Bytes of one request at a server that reports larger limits.
const BLOCK_BYTES_MAX: usize = 128 << 10;

/// Bytes of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) read: usize,
    pub(crate) write: usize,
    flow: Option<Flow>,
}

/// The flow of the requests for bytes of files. Each file is read in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Bytes of a request.
    pub bytes: usize,
    /// Requests of this size that are under way at once: of all files that are read, or of one that is written.
    pub requests: usize,
    /// The files that are read at once.
    pub files: Files,
}

/// The files that are read at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Files {
    /// One, so that no more requests are under way than were asked for.
    One,
    /// Some, so that no round trip passes without bytes while one is opened or has come.
    Several,
}

/// The bytes of all files that share it which are asked for, or have come and are not passed on.
#[derive(Default)]
pub(crate) struct Held(AtomicUsize);

/// The bytes that one reader of a file holds.
struct Share<'a> {
    held: &'a Held,
    bytes: usize,
}

impl Share<'_> {
    /// Takes this number of bytes more, if all readers together then hold at most `room`.
    fn takes(&mut self, bytes: usize, room: usize) -> bool {
        let all = self.held.0.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        let fits = all + bytes <= room;
        if !fits {
            self.gives(bytes);
        }
        fits
    }

    fn gives(&mut self, bytes: usize) {
        self.held.0.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes -= bytes;
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.gives(self.bytes);
    }
}

impl Block {
    /// The sizes for a server that has reported these limits, of which 0 is none.
    pub(crate) fn of(limits: Option<Limits>) -> Self {
        let block = |limit: u64| {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let limit = if limit == 0 { BLOCK_BYTES_MAX } else { limit };
            limit.clamp(1, BLOCK_BYTES_MAX)
        };
        let (read, write) = match limits {
            Some(limits) => (block(limits.read), block(limits.write)),
            None => (DATA_BYTES_MAX, DATA_BYTES_MAX),
        };
        Self { read, write, flow: None }
    }

    /// The sizes of a given flow.
    pub(crate) const fn of_flow(flow: Flow) -> Self {
        Self { read: flow.bytes, write: flow.bytes, flow: Some(flow) }
    }

    /// Requests of this many bytes that are under way at once.
    pub(crate) fn window(&self, bytes: usize) -> usize {
        self.flow.map_or_else(|| (WINDOW_BYTES / bytes).max(2), |flow| flow.requests)
    }

    /// Whether a write of `length` bytes may follow those of its file that are under way, by their number and their bytes. The
    /// bytes count unless the user wants a number of requests: what is written at once may end with a short one.
    pub(crate) fn has_room(&self, (requests, bytes): (usize, usize), length: usize) -> bool {
        match self.flow {
            Some(Flow { files: Files::One, requests: most, .. }) => requests < most,
            Some(_) => bytes + length <= self.room(),
            None => bytes + length <= WINDOW_BYTES,
        }
    }

    /// The files that are read at once, if the flow is given.
    pub(crate) fn files(&self) -> Option<Files> {
        self.flow.map(|flow| flow.files)
    }

    /// The bytes that all readers of files may hold together.
    fn room(&self) -> usize {
        self.flow.map_or(usize::MAX, |flow| flow.bytes.saturating_mul(flow.requests))
    }
}

/// A request for bytes that is under way.
struct Piece {
    at: u64,
    length: usize,
    ticket: Ticket,
}

/// A file that is read.
pub(crate) struct Reading<'a> {
    pub(crate) client: &'a Client,
    pub(crate) handle: &'a Handle,
    pub(crate) blocks: Block,
    pub(crate) held: &'a Held,
}

impl Reading<'_> {
    /// Reads `range` in order, and passes its bytes to `each` until that breaks or the file ends. Returns the number of
    /// passed bytes.
    pub(crate) fn read(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Asked<u64> {
        self.read_then(range, None, each).map(|(read, _)| read)
    }

    /// Reads `range` as [`read`](Self::read) does, and sends the request `then` behind the last read, so that the server does
    /// it after that. Its ticket is `None` if the range was not read to its end.
    pub(crate) fn read_then(
        &self,
        range: Range<u64>,
        then: Option<&Request<'_>>,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Asked<(u64, Option<Ticket>)> {
        let (block, window) = (self.blocks.read, self.blocks.window(self.blocks.read));
        let room = self.blocks.room();
        let (mut asked, mut under_way) = (range.start, VecDeque::new());
        let (mut done, mut behind) = (range.start, None);
        let mut share = Share { held: self.held, bytes: 0 };
        loop {
            while under_way.len() < window && asked < range.end {
                let length = usize::try_from(range.end - asked).unwrap_or(usize::MAX).min(block);
                // One request is under way also while others hold all that there is room for.
                let room = if under_way.is_empty() { usize::MAX } else { room };
                if !share.takes(length, room) {
                    break;
                }
                under_way.push_back(self.piece(asked, length));
                asked += length as u64;
            }
            if asked >= range.end && behind.is_none() {
                behind = then.map(|request| self.client.ask(request));
            }
            let Some(Piece { at, length, ticket }) = under_way.pop_front() else { break };
            let data = self.client.data(ticket, length)?;
            if data.is_empty() {
                break;
            }
            done += data.len() as u64;
            if data.len() < length {
                // A server may send fewer bytes than it was asked for before the end of the file.
                under_way.push_front(self.piece(at + data.len() as u64, length - data.len()));
                behind = None;
            }
            let flow = each(&data);
            share.gives(data.len());
            if flow.is_break() {
                break;
            }
        }
        Ok((done - range.start, behind.filter(|_| done >= range.end)))
    }

    fn piece(&self, at: u64, length: usize) -> Piece {
        let asked = u32::try_from(length).unwrap_or(u32::MAX);
        let request = Request::Read { handle: self.handle.bytes(), offset: at, length: asked };
        Piece { at, length, ticket: self.client.ask(&request) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_hold_no_more_together_than_there_is_room_for() {
        let held = Held::default();
        let share = || Share { held: &held, bytes: 0 };
        let (mut one, mut two) = (share(), share());
        assert!(one.takes(60, 100) && !two.takes(60, 100) && two.takes(40, 100));
        assert!(!one.takes(1, 100));
        two.gives(10);
        assert!(one.takes(10, 100));
        drop(one);
        assert!(two.takes(70, 100) && !share().takes(1, 100));
        drop(two);
        assert!(share().takes(100, 100));
    }

    #[test]
    fn short_requests_take_no_more_room_than_their_bytes_unless_their_number_is_given() {
        let block = |files| Block::of_flow(Flow { bytes: 100, requests: 4, files });
        let all = block(Files::Several);
        assert!(all.has_room((9, 300), 100) && !all.has_room((3, 301), 100));
        let few = block(Files::One);
        assert!(few.has_room((3, 301), 100) && !few.has_room((4, 40), 1));
    }
}
