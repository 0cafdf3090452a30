//! Uploads in extended block mode: this end connects, and deals blocks to whichever connection has room.
//!
//! Each connection has a thread. It sends its blocks of one part after the other, and does not wait for the server's word on
//! a part before it begins the next one.

use crate::block::{data_header, end_header};
use crate::control::{LOOK_EVERY, is_pause};
use crate::data::Data;
use crate::error::FtpError;
use crate::plan::Supply;
use crate::transfer::{Flow, Part, lock};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Bytes that are written to a connection at once.
const PIECE_BYTES: usize = 64 << 10;

/// The blocks of a part that are not dealt yet.
pub(crate) struct Deal<'a> {
    supply: Arc<Supply<'a>>,
    /// Offset of the part in the file.
    offset: u64,
    length: u64,
    next: AtomicU64,
    block_bytes: u64,
    /// Connections to each data node.
    connections: u32,
    /// Connections to each data node that still send. The last of them sends the number of all.
    unfinished: Vec<AtomicU32>,
    /// Bytes that were given to the kernel.
    sent: AtomicU64,
    /// Packets that were sent again while the part was sent.
    retransmitted: AtomicU64,
}

impl<'a> Deal<'a> {
    pub(crate) fn new(
        part: &Part<'_>,
        supply: Arc<Supply<'a>>,
        block_bytes: u32,
        (connections, stripes): (u32, usize),
    ) -> Self {
        Self {
            supply,
            offset: part.offset,
            length: part.length,
            next: AtomicU64::new(0),
            block_bytes: u64::from(block_bytes.max(1)),
            connections,
            unfinished: (0..stripes).map(|_| AtomicU32::new(connections)).collect(),
            sent: AtomicU64::new(0),
            retransmitted: AtomicU64::new(0),
        }
    }

    /// Bytes that were given to the kernel.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Packets that were sent again while the part was sent.
    pub(crate) fn retransmitted(&self) -> u64 {
        self.retransmitted.load(Ordering::Relaxed)
    }

    /// The next block: its offset within the part, and its length.
    fn next(&self) -> Option<(u64, u64)> {
        let at = self.next.fetch_add(self.block_bytes, Ordering::Relaxed);
        (at < self.length).then(|| (at, self.block_bytes.min(self.length - at)))
    }
}

/// The parts that the connections send one after the other.
#[derive(Default)]
pub(crate) struct Belt<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
}

#[derive(Default)]
struct State<'a> {
    deals: VecDeque<Arc<Deal<'a>>>,
    /// Number of the first of `deals`, counted from the beginning of the belt.
    first: u64,
    is_closed: bool,
}

impl<'a> Belt<'a> {
    /// Adds a part.
    pub(crate) fn push(&self, deal: Arc<Deal<'a>>) {
        lock(&self.state).deals.push_back(deal);
        self.changed.notify_all();
    }

    /// Removes the first part: every connection has sent its end.
    pub(crate) fn pop(&self) {
        let mut state = lock(&self.state);
        state.first += u64::from(state.deals.pop_front().is_some());
    }

    /// No part follows.
    pub(crate) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    /// Waits for the part with this number. `None` if there is none, or the flow is over.
    fn deal(&self, number: u64, flow: &Flow<'_>) -> Option<Arc<Deal<'a>>> {
        let mut state = lock(&self.state);
        loop {
            let at = number.checked_sub(state.first).and_then(|at| usize::try_from(at).ok());
            if let Some(deal) = at.and_then(|at| state.deals.get(at)) {
                return Some(Arc::clone(deal));
            }
            if state.is_closed || flow.is_over() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Sends blocks of all parts of the belt over one connection. Failures end the flow.
pub(crate) fn send(mut data: Data, flow: &Flow<'_>, belt: &Belt<'_>) -> Option<Data> {
    let mut again = data.retransmitted();
    for number in 0.. {
        let Some(deal) = belt.deal(number, flow) else { break };
        if let Err(error) = send_all(&mut data, flow, &deal) {
            flow.fail(error);
            return None;
        }
        let before = std::mem::replace(&mut again, data.retransmitted());
        deal.retransmitted.fetch_add(again.saturating_sub(before), Ordering::Relaxed);
    }
    Some(data)
}

fn send_all(data: &mut Data, flow: &Flow<'_>, deal: &Deal<'_>) -> Result<(), FtpError> {
    let mut bytes = Vec::new();
    while let Some((at, length)) = deal.next() {
        bytes.resize(length as usize, 0);
        flow.locally(|| (deal.supply)(deal.offset + at, &mut bytes)).map_err(FtpError::Local)?;
        write(data, flow, &data_header(at, length))?;
        for piece in bytes.chunks(PIECE_BYTES) {
            write(data, flow, piece)?;
            flow.counted.fetch_add(piece.len() as u64, Ordering::Relaxed);
            deal.sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
    }
    let unfinished = deal.unfinished.get(data.stripe());
    let is_last = unfinished.is_some_and(|left| left.fetch_sub(1, Ordering::AcqRel) == 1);
    let end = end_header(is_last.then_some(u64::from(deal.connections)));
    write(data, flow, &end)?;
    loop {
        match data.flush() {
            Ok(()) => return Ok(()),
            Err(error) if is_pause(error.kind()) => check(flow)?,
            Err(error) => return Err(FtpError::Data(error)),
        }
    }
}

fn write(data: &mut Data, flow: &Flow<'_>, mut bytes: &[u8]) -> Result<(), FtpError> {
    while !bytes.is_empty() {
        check(flow)?;
        match data.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if is_pause(error.kind()) => {}
            Err(error) => return Err(FtpError::Data(error)),
        }
    }
    Ok(())
}

fn check(flow: &Flow<'_>) -> Result<(), FtpError> {
    if flow.is_over() { Err(FtpError::Stopped) } else { Ok(()) }
}
