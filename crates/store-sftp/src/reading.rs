//! Ranges of an open file, read with many requests under way.

use hikyaku_sftp::{Asked, Client, DATA_BYTES_MAX, Handle, Limits, Request, Ticket};
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

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

/// The flow of the requests of one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Bytes of a request.
    pub bytes: usize,
    /// Requests that are under way at once.
    pub requests: usize,
    /// The ranges of a file that are read at once.
    pub ranges: Ranges,
}

/// The ranges of a file that are read at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ranges {
    /// One, so that no more requests are under way than were asked for.
    One,
    /// Some that follow each other, so that no round trip passes without bytes, and the bytes come about in their order.
    Several,
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

    /// The ranges of files that are read at once, and the bytes of a window, if the flow is given.
    pub(crate) fn ranges(&self) -> Option<(Ranges, u64)> {
        self.flow.map(|flow| (flow.ranges, flow.bytes as u64 * flow.requests as u64))
    }
}

/// A request for bytes that is under way.
struct Piece {
    at: u64,
    length: usize,
    ticket: Ticket,
}

/// Reads `range` in order, and passes its bytes to `each` until that breaks or the file ends. Returns the number of
/// passed bytes.
pub(crate) fn read(
    client: &Client,
    (handle, blocks): (&Handle, Block),
    range: Range<u64>,
    each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Asked<u64> {
    let piece = |at: u64, length: usize| {
        let (handle, asked) = (handle.bytes(), u32::try_from(length).unwrap_or(u32::MAX));
        let ticket = client.ask(&Request::Read { handle, offset: at, length: asked });
        Piece { at, length, ticket }
    };
    let (block, window) = (blocks.read, blocks.window(blocks.read));
    let (mut asked, mut under_way) = (range.start, VecDeque::new());
    let mut done = range.start;
    loop {
        while under_way.len() < window && asked < range.end {
            let length = usize::try_from(range.end - asked).unwrap_or(usize::MAX).min(block);
            under_way.push_back(piece(asked, length));
            asked += length as u64;
        }
        let Some(Piece { at, length, ticket }) = under_way.pop_front() else { break };
        let data = client.data(ticket, length)?;
        if data.is_empty() {
            break;
        }
        done += data.len() as u64;
        if data.len() < length {
            // A server may send fewer bytes than it was asked for before the end of the file.
            under_way.push_front(piece(at + data.len() as u64, length - data.len()));
        }
        if each(&data).is_break() {
            break;
        }
    }
    Ok(done - range.start)
}
