//! Downloads in extended block mode: the server connects, and sends blocks in any order over any connection.

use crate::block::{Block, HEADER_BYTES, Then};
use crate::control::is_pause;
use crate::data::Data;
use crate::error::FtpError;
use crate::plan::Store;
use crate::ranges::{NotAdded, Ranges};
use crate::transfer::{CONNECTIONS_MAX, Flow, lock, lost};
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Bytes that are read and stored at once.
const PIECE_BYTES: usize = 256 << 10;

/// How much a server is to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// All bytes of a part.
    Exactly(u64),
    /// Any number up to this.
    AtMost(u64),
}

/// The received ranges of a part, shared by the threads of its connections.
#[derive(Debug)]
pub(crate) struct Receipt {
    expected: Expected,
    state: Mutex<State>,
}

/// The ends of the connections of a data node.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    /// Connections that have sent their end.
    ended: u64,
    /// Connections that will send their end, once the number is known.
    connections: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    ranges: Ranges,
    /// One for each data node, which sends the number of its connections.
    ends: Vec<Ends>,
}

/// The state of a connection after its thread.
pub(crate) enum Ended {
    /// It serves the next part.
    Kept(Data),
    Closed,
}

impl Ended {
    /// The connection, if it serves the next part.
    pub(crate) fn kept(self) -> Option<Data> {
        match self {
            Self::Kept(data) => Some(data),
            Self::Closed => None,
        }
    }
}

impl Receipt {
    /// No bytes yet, from `stripes` data nodes.
    pub(crate) fn new(expected: Expected, stripes: usize) -> Self {
        let ends = vec![Ends::default(); stripes];
        Self { expected, state: Mutex::new(State { ranges: Ranges::default(), ends }) }
    }

    /// Whether all connections have sent their end.
    pub(crate) fn is_ended(&self) -> bool {
        let is_ended =
            |ends: &Ends| ends.connections.is_some_and(|connections| ends.ended >= connections);
        lock(&self.state).ends.iter().all(is_ended)
    }

    /// The number of bytes, if all of them are here.
    pub(crate) fn whole(&self) -> Result<u64, FtpError> {
        let state = lock(&self.state);
        let length = match self.expected {
            Expected::Exactly(length) => length,
            Expected::AtMost(_) => state.ranges.first(),
        };
        let is_one = state.ranges.are_whole(length) && state.ranges.is_one();
        if is_one {
            Ok(length)
        } else {
            Err(FtpError::Lie("ends a part before all of it was sent"))
        }
    }

    fn add(&self, offset: u64, count: u64) -> Result<(), FtpError> {
        let (Expected::Exactly(limit) | Expected::AtMost(limit)) = self.expected;
        if offset.checked_add(count).is_none_or(|end| end > limit) {
            return Err(FtpError::Lie("sends bytes that were not asked for"));
        }
        lock(&self.state).ranges.add(offset, offset + count).map_err(|error| match error {
            NotAdded::Twice => FtpError::Lie("sends the same bytes twice"),
            NotAdded::TooMany => FtpError::Lie("sends a part in too many pieces"),
        })
    }

    fn handle_end(&self, stripe: usize, block: &Block) -> Result<(), FtpError> {
        let mut state = lock(&self.state);
        let Some(ends) = state.ends.get_mut(stripe) else { return Ok(()) };
        if let Some(connections) = block.connections {
            if connections > u64::from(CONNECTIONS_MAX) {
                return Err(FtpError::Lie("announces more data connections than are possible"));
            }
            if ends.connections.replace(connections).is_some() {
                return Err(FtpError::Lie("tells the end of a part twice"));
            }
        }
        ends.ended += u64::from(block.then != Then::More);
        Ok(())
    }
}

/// Receives the blocks of one connection until its end. Failures end the flow.
pub(crate) fn receive(
    mut stream: Data,
    flow: &Flow<'_>,
    receipt: &Receipt,
    store: &Store<'_>,
) -> Ended {
    let mut piece = vec![0; PIECE_BYTES];
    match receive_all(&mut stream, flow, receipt, (&mut piece, store)) {
        Ok(true) => Ended::Kept(stream),
        Ok(false) => Ended::Closed,
        Err(error) => {
            flow.fail(error);
            Ended::Closed
        }
    }
}

/// Returns whether the connection serves the next part.
fn receive_all(
    stream: &mut Data,
    flow: &Flow<'_>,
    receipt: &Receipt,
    (piece, store): (&mut [u8], &Store<'_>),
) -> Result<bool, FtpError> {
    loop {
        let mut header = [0; HEADER_BYTES];
        match fill(stream, flow, &mut header)? {
            Filled::Whole => {}
            // The server has used other connections for this part.
            Filled::Nothing => return Ok(true),
        }
        let block = Block::decode(&header)?;
        if let Some((offset, count)) = block.data {
            take(stream, flow, receipt, (offset, count), (piece, store))?;
        }
        receipt.handle_end(stream.stripe(), &block)?;
        match block.then {
            Then::More => {}
            Then::Over => return Ok(true),
            Then::Closed => return Ok(false),
        }
    }
}

/// Stores the bytes of a block as they come.
fn take(
    stream: &mut Data,
    flow: &Flow<'_>,
    receipt: &Receipt,
    (mut offset, mut count): (u64, u64),
    (piece, store): (&mut [u8], &Store<'_>),
) -> Result<(), FtpError> {
    receipt.add(offset, count)?;
    while count > 0 {
        let length = piece.len().min(usize::try_from(count).unwrap_or(usize::MAX));
        match fill(stream, flow, &mut piece[..length])? {
            Filled::Whole => {}
            Filled::Nothing => return Err(FtpError::Stopped),
        }
        flow.locally(|| store(offset, &piece[..length])).map_err(FtpError::Local)?;
        flow.counted.fetch_add(length as u64, Ordering::Relaxed);
        offset += length as u64;
        count -= length as u64;
    }
    Ok(())
}

enum Filled {
    Whole,
    /// The flow is over before the first byte.
    Nothing,
}

/// Reads exactly as many bytes as `bytes` has.
fn fill(stream: &mut Data, flow: &Flow<'_>, bytes: &mut [u8]) -> Result<Filled, FtpError> {
    let mut have = 0;
    while have < bytes.len() {
        // Bytes that never pause must not keep a transfer from ending.
        match (flow.is_over(), have) {
            (false, _) => {}
            (true, 0) => return Ok(Filled::Nothing),
            (true, _) => return Err(FtpError::Stopped),
        }
        match stream.read(&mut bytes[have..]) {
            Ok(0) => return Err(lost()),
            Ok(read) => have += read,
            Err(error) if is_pause(error.kind()) => {}
            Err(error) => return Err(FtpError::Data(error)),
        }
    }
    Ok(Filled::Whole)
}
