//! Uploads in extended block mode: this end connects, and deals blocks to whichever connection has room.
//!
//! Each connection has a thread. It sends its blocks of one part after the other, and does not wait for the server's word on
//! a part before it begins the next one. Every connection sends the end of each part, also one that rests and carries none of
//! its blocks: the server waits for as many ends as the last of them announces.

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
use std::time::{Duration, Instant};

/// How often a connection that rests looks for the end of a part.
const WAKE_EVERY: Duration = Duration::from_millis(20);
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
    ends: Mutex<Ends>,
    /// Bytes that were given to the kernel.
    sent: AtomicU64,
    /// Packets that were sent again while the part was sent.
    retransmitted: AtomicU64,
}

/// The ends of a part.
#[derive(Debug, Default)]
struct Ends {
    /// Those that each data node waits for.
    nodes: Vec<Node>,
    /// No connection sends its end yet, because others are being opened.
    is_held: bool,
}

/// The connections to a data node that send the end of a part.
#[derive(Clone, Copy, Debug)]
struct Node {
    connections: u32,
    /// Those that have not sent it. The last of them sends the number of all.
    unfinished: u32,
}

/// Whether a connection may send its end.
enum May {
    /// It may not yet.
    Wait,
    /// It may. The last one sends the number of all.
    Send(Option<u32>),
}

impl<'a> Deal<'a> {
    pub(crate) fn new(part: &Part<'_>, supply: Arc<Supply<'a>>, block_bytes: u32) -> Self {
        Self {
            supply,
            offset: part.offset,
            length: part.length,
            next: AtomicU64::new(0),
            block_bytes: u64::from(block_bytes.max(1)),
            ends: Mutex::default(),
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

    /// Whether all blocks are dealt.
    fn is_dealt(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.length
    }

    /// One connection more sends the end to this data node, unless the last end is sent. Returns whether it does.
    fn join(&self, stripe: usize) -> bool {
        let nodes = &mut lock(&self.ends).nodes;
        let Some(node) = nodes.get_mut(stripe).filter(|node| node.unfinished > 0) else {
            return false;
        };
        node.connections += 1;
        node.unfinished += 1;
        true
    }

    /// Lets connections wait before they send their ends, unless the last end of a data node is sent. Returns whether they do.
    fn hold(&self) -> bool {
        let ends = &mut *lock(&self.ends);
        ends.is_held = ends.nodes.iter().all(|node| node.unfinished > 0);
        ends.is_held
    }

    fn release(&self) {
        lock(&self.ends).is_held = false;
    }

    /// A connection sends the end to this data node, if it may.
    fn end(&self, stripe: usize) -> May {
        let ends = &mut *lock(&self.ends);
        if ends.is_held {
            return May::Wait;
        }
        let Some(node) = ends.nodes.get_mut(stripe) else { return May::Send(None) };
        node.unfinished = node.unfinished.saturating_sub(1);
        May::Send((node.unfinished == 0).then_some(node.connections))
    }
}

/// The parts that the connections send one after the other.
pub(crate) struct Belt<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
    /// Connections to each data node that carry blocks; the others rest.
    active: AtomicU32,
    /// Nanoseconds that connections have waited for parts, summed over them.
    waited: AtomicU64,
}

struct State<'a> {
    deals: VecDeque<Arc<Deal<'a>>>,
    /// Number of the first of `deals`, counted from the beginning of the belt.
    first: u64,
    is_closed: bool,
    /// Connections to each data node.
    members: Vec<u32>,
    /// Connections that are being opened.
    coming: u32,
    /// The part whose ends wait for them.
    held: Option<Arc<Deal<'a>>>,
}

impl State<'_> {
    /// The part that waits for connections does not wait any longer if there are none.
    fn release(&mut self) {
        if self.coming == 0
            && let Some(held) = self.held.take()
        {
            held.release();
        }
    }
}

/// The place of a connection on a belt.
struct Place {
    /// The number of the first part that it sends.
    first: u64,
    /// Its number among the connections to its data node.
    rank: u32,
}

impl<'a> Belt<'a> {
    /// A belt of this number of connections to each data node, which are open or being opened.
    pub(crate) fn new(members: Vec<u32>) -> Self {
        let (active, waited) = (AtomicU32::new(u32::MAX), AtomicU64::new(0));
        let (deals, first, is_closed, coming) = (VecDeque::new(), 0, false, 0);
        let state = State { deals, first, is_closed, members, coming, held: None };
        Self { state: Mutex::new(state), changed: Condvar::new(), active, waited }
    }

    /// Adds a part.
    pub(crate) fn push(&self, deal: Arc<Deal<'a>>) {
        let mut state = lock(&self.state);
        let node = |&connections: &u32| Node { connections, unfinished: connections };
        lock(&deal.ends).nodes = state.members.iter().map(node).collect();
        state.deals.push_back(deal);
        drop(state);
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

    /// Sets the number of connections to each data node that carry blocks.
    pub(crate) fn set_active(&self, connections: u32) {
        if self.active.swap(connections.max(1), Ordering::Relaxed) != connections {
            self.changed.notify_all();
        }
    }

    /// The time that connections have waited for parts, summed over them.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited.load(Ordering::Relaxed))
    }

    /// Lets the first part that has not ended wait with its end, because connections are to be opened while the server stores it: a
    /// server may lose those that it is offered between two parts. Returns whether there is one.
    pub(crate) fn hold(&self) -> bool {
        let mut state = lock(&self.state);
        let held = state.deals.iter().find(|deal| deal.hold()).map(Arc::clone);
        state.held = held;
        state.held.is_some()
    }

    /// Whether the part that waits is the first one that the server has not confirmed.
    pub(crate) fn is_first_held(&self) -> bool {
        let state = lock(&self.state);
        let held = state.deals.front().zip(state.held.as_ref());
        held.is_some_and(|(first, held)| Arc::ptr_eq(first, held))
    }

    /// Whether connections are being opened.
    pub(crate) fn is_opening(&self) -> bool {
        lock(&self.state).coming > 0
    }

    /// This number of connections is being opened. The part waits for them.
    pub(crate) fn expect(&self, connections: u32) {
        lock(&self.state).coming = connections;
    }

    /// The part does not wait, unless connections are being opened.
    pub(crate) fn release(&self) {
        lock(&self.state).release();
        self.changed.notify_all();
    }

    /// A connection that was expected is open, and sends all parts that have not ended.
    fn join(&self, stripe: usize) -> Place {
        let mut state = lock(&self.state);
        let joined = state.deals.iter().map(|deal| deal.join(stripe));
        let ended = joined.filter(|has_joined| !has_joined).count() as u64;
        let first = state.first + ended;
        let members = &mut state.members[stripe];
        let rank = *members;
        *members += 1;
        Place { first, rank }
    }

    /// An expected connection is open, or is not.
    fn arrived(&self) {
        let mut state = lock(&self.state);
        state.coming = state.coming.saturating_sub(1);
        state.release();
        drop(state);
        self.changed.notify_all();
    }

    /// Waits a moment for a change.
    fn wait(&self) {
        let waited = self.changed.wait_timeout(lock(&self.state), WAKE_EVERY);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits for the part with this number. `None` if there is none, or the flow is over.
    fn deal(&self, (number, rank): (u64, u32), flow: &Flow<'_>) -> Option<Arc<Deal<'a>>> {
        let mut state = lock(&self.state);
        loop {
            let at = number.checked_sub(state.first).and_then(|at| usize::try_from(at).ok());
            if let Some(deal) = at.and_then(|at| state.deals.get(at)) {
                return Some(Arc::clone(deal));
            }
            if state.is_closed || flow.is_over() {
                return None;
            }
            let begin = Instant::now();
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if self.is_active(rank) {
                let nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
                self.waited.fetch_add(nanos, Ordering::Relaxed);
            }
        }
    }

    fn is_active(&self, rank: u32) -> bool {
        rank < self.active.load(Ordering::Relaxed)
    }
}

/// Sends blocks of all parts of the belt over a connection that it counts from the beginning, at this rank. Failures end the
/// flow.
pub(crate) fn send(data: Data, flow: &Flow<'_>, (belt, rank): (&Belt<'_>, u32)) -> Option<Data> {
    send_from(data, flow, belt, Place { first: 0, rank })
}

/// Sends blocks of the parts of the belt over a connection that was expected.
pub(crate) fn send_too(data: Option<Data>, flow: &Flow<'_>, belt: &Belt<'_>) -> Option<Data> {
    let joined = data.map(|data| {
        let place = belt.join(data.stripe());
        (data, place)
    });
    belt.arrived();
    joined.and_then(|(data, place)| send_from(data, flow, belt, place))
}

fn send_from(mut data: Data, flow: &Flow<'_>, belt: &Belt<'_>, place: Place) -> Option<Data> {
    let mut again = data.retransmitted();
    for number in place.first.. {
        let Some(deal) = belt.deal((number, place.rank), flow) else { break };
        if let Err(error) = send_all(&mut data, flow, (belt, place.rank), &deal) {
            flow.fail(error);
            return None;
        }
        let before = std::mem::replace(&mut again, data.retransmitted());
        deal.retransmitted.fetch_add(again.saturating_sub(before), Ordering::Relaxed);
    }
    data.set_resting(false);
    Some(data)
}

fn send_all(
    data: &mut Data,
    flow: &Flow<'_>,
    (belt, rank): (&Belt<'_>, u32),
    deal: &Deal<'_>,
) -> Result<(), FtpError> {
    let mut bytes = Vec::new();
    loop {
        let is_active = belt.is_active(rank);
        data.set_resting(!is_active);
        if !is_active {
            if deal.is_dealt() {
                break;
            }
            belt.wait();
            check(flow)?;
            continue;
        }
        let Some((at, length)) = deal.next() else { break };
        bytes.resize(length as usize, 0);
        flow.locally(|| (deal.supply)(deal.offset + at, &mut bytes)).map_err(FtpError::Local)?;
        write(data, flow, &data_header(at, length))?;
        for piece in bytes.chunks(PIECE_BYTES) {
            write(data, flow, piece)?;
            flow.counted.fetch_add(piece.len() as u64, Ordering::Relaxed);
            deal.sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
    }
    let all = loop {
        match deal.end(data.stripe()) {
            May::Send(all) => break all,
            May::Wait => belt.wait(),
        }
        check(flow)?;
    };
    write(data, flow, &end_header(all.map(u64::from)))?;
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

#[cfg(test)]
mod tests;
