//! Writes of programs: told to the server in their order, and kept until it has confirmed them.
//!
//! A program's write returns as soon as its bytes are here, while fewer than a limit are unconfirmed. Closing the file
//! waits for all of them. After a lost connection what is not confirmed is sent again, which changes nothing where it
//! had arrived. An error is kept for each open handle, and told once through each.

use crate::core::{Access, Core, State, errno};
use crate::nodes::Node;
use bytes::Bytes;
use fuser::Errno;
use hikyaku_remote::{Edit, RemoteError, SMALL_BYTES_MAX};
use hikyaku_store::{ErrorKind, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{io, thread};

/// Unconfirmed bytes of all files; above that, programs wait. It is more than a gigabit a second over a second holds.
const UNCONFIRMED_BYTES_MAX: u64 = 256 << 20;

/// Hears that all is confirmed, or what was lost.
type OnSettled = Box<dyn FnOnce(Result<(), Errno>) + Send>;

/// Writes that are not confirmed.
#[derive(Default)]
pub(crate) struct Writes {
    all: BTreeMap<u64, Write>,
    bytes: u64,
    /// Programs whose bytes are here and who wait for room.
    room_waits: VecDeque<Box<dyn FnOnce() + Send>>,
    /// Who waits until a node has no unconfirmed write.
    settle_waits: Vec<(u64, Box<dyn FnOnce() + Send>)>,
}

struct Write {
    node: u64,
    at: u64,
    bytes: Bytes,
}

/// Numbers of writes that are to be sent, in their order.
#[derive(Default)]
pub(crate) struct Outbox {
    numbers: Mutex<VecDeque<u64>>,
    came: Condvar,
}

impl Writes {
    /// The numbers of all writes, in their order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.all.keys().copied().collect()
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Core {
    /// Starts the thread that sends writes, so that no thread which hears the kernel waits for the network.
    pub(crate) fn start_writing(self: &Arc<Self>) -> io::Result<()> {
        let core = self.clone();
        let named = thread::Builder::new().name("mount-write".to_owned());
        named.spawn(move || {
            loop {
                core.send(core.outbox.next());
            }
        })?;
        Ok(())
    }

    /// A program writes. `done` hears how many bytes were taken.
    pub(crate) fn write(
        self: &Arc<Self>,
        handle: u64,
        (offset, data): (u64, &[u8]),
        done: impl FnOnce(Result<u32, Errno>) + Send + 'static,
    ) {
        let bytes = Bytes::copy_from_slice(data);
        let length = data.len() as u32;
        let mut state = self.state();
        let number = match state.writable(handle) {
            Ok(number) => number,
            Err(errno) => {
                drop(state);
                return done(Err(errno));
            }
        };
        let end = offset.saturating_add(u64::from(length));
        if let Some(old) = state.nodes.write(number, end, now()) {
            state.pages.drop_content(old);
        }
        let mut numbers = Vec::new();
        let step = SMALL_BYTES_MAX as usize;
        for from in (0..bytes.len()).step_by(step) {
            let part = bytes.slice(from..bytes.len().min(from + step));
            let id = state.next();
            state
                .writes
                .all
                .insert(id, Write { node: number, at: offset + from as u64, bytes: part });
            numbers.push(id);
        }
        if let Some(node) = state.nodes.at_mut(number) {
            node.unconfirmed += numbers.len() as u64;
        }
        state.writes.bytes += u64::from(length);
        state.totals.written_bytes += u64::from(length);
        self.outbox.put(numbers);
        // The kernel's own reads ahead, which wait for bytes of before.
        let forgotten = state.forgotten(Some(number));
        if state.writes.bytes > UNCONFIRMED_BYTES_MAX {
            state.writes.room_waits.push_back(Box::new(move || done(Ok(length))));
            drop(state);
        } else {
            drop(state);
            done(Ok(length));
        }
        self.take_up(forgotten);
    }

    /// Calls `done` when the server has confirmed all writes to a node, and its metadata are those after them.
    pub(crate) fn settle_node(
        self: &Arc<Self>,
        number: u64,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let done: OnSettled = Box::new(done);
        let mut state = self.state();
        let Some(node) = state.nodes.at(number).filter(|node| node.is_own()) else {
            drop(state);
            return done(Ok(()));
        };
        let core = self.clone();
        if node.unconfirmed > 0 {
            let again = move || core.settle_node(number, done);
            state.writes.settle_waits.push((number, Box::new(again)));
            return;
        }
        let path = node.path.clone();
        drop(state);
        self.look(path.clone(), move |seen| match seen {
            Ok(seen) => {
                let mut state = core.state();
                state.observe(&path, seen);
                let forgotten = state.forgotten(Some(number));
                drop(state);
                core.settle_node(number, done);
                core.take_up(forgotten);
            }
            Err(kind) => done(Err(errno(kind))),
        });
    }

    /// Calls `done` when the server has confirmed all writes to a node so far, with the error that the handle has not
    /// been told.
    pub(crate) fn settle_handle(
        self: &Arc<Self>,
        handle: u64,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let mut state = self.state();
        let Some(open) = state.handles.get_mut(&handle) else {
            drop(state);
            return done(Ok(()));
        };
        let number = open.number;
        if state.nodes.at(number).is_some_and(|node| node.unconfirmed > 0) {
            let core = self.clone();
            let again = move || core.settle_handle(handle, done);
            state.writes.settle_waits.push((number, Box::new(again)));
            return;
        }
        let error = state.handles.get_mut(&handle).and_then(|open| open.error.take());
        drop(state);
        done(error.map_or(Ok(()), Err));
    }

    /// Sends a write, if it is not confirmed yet and there is a connection.
    fn send(self: &Arc<Self>, id: u64) {
        let state = self.state();
        let Some(write) = state.writes.all.get(&id) else { return };
        let (true, Some(node)) = (state.crew.is_up(), state.nodes.at(write.node)) else {
            return;
        };
        let (crew, epoch, bytes) = (state.crew.clone(), state.epoch, write.bytes.clone());
        let edit = Edit::Write {
            path: node.path.as_bytes().to_vec(),
            identity: node.found.identity,
            at: write.at,
            length: bytes.len() as u32,
        };
        drop(state);
        let core = self.clone();
        crew.edit_then(edit, &bytes, move |answer| match answer {
            Ok(_) => core.on_written(id, None),
            Err(RemoteError::Refused { kind, .. }) => core.on_written(id, Some(errno(kind))),
            Err(RemoteError::Protocol(_)) => core.on_written(id, Some(Errno::EIO)),
            Err(RemoteError::Closed(_)) => {
                let state = core.state();
                let is_other = state.epoch != epoch && state.crew.is_up();
                drop(state);
                if is_other {
                    core.outbox.put([id]);
                }
            }
        });
    }

    /// A write is confirmed, or lost.
    fn on_written(self: &Arc<Self>, id: u64, error: Option<Errno>) {
        let mut calls: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        let mut state = self.state();
        let Some(write) = state.writes.all.remove(&id) else { return };
        state.writes.bytes -= write.bytes.len() as u64;
        if let Some(error) = error {
            state.totals.failed += 1;
            let handles = state.handles.values_mut();
            let of_node = handles.filter(|open| open.number == write.node);
            of_node.for_each(|open| open.error = Some(error));
        }
        let mut is_settled = true;
        if let Some(node) = state.nodes.at_mut(write.node) {
            node.unconfirmed -= 1;
            node.written = Some(Instant::now());
            is_settled = node.unconfirmed == 0;
        }
        if is_settled {
            let waits = std::mem::take(&mut state.writes.settle_waits);
            let (now, later) = waits.into_iter().partition(|(number, _)| *number == write.node);
            state.writes.settle_waits = later;
            let now: Vec<(u64, Box<dyn FnOnce() + Send>)> = now;
            calls.extend(now.into_iter().map(|(_, call)| call));
        }
        while state.writes.bytes <= UNCONFIRMED_BYTES_MAX
            && let Some(call) = state.writes.room_waits.pop_front()
        {
            calls.push(call);
        }
        drop(state);
        calls.into_iter().for_each(|call| call());
    }

    /// Fails all writes when the server has been away for too long.
    pub(crate) fn expire_writes(self: &Arc<Self>, now: Instant) {
        let state = self.state();
        let is_late = |down: Instant| now.saturating_duration_since(down) >= self.settings.timeout;
        let late =
            if state.down.is_some_and(is_late) { state.writes.numbers() } else { Vec::new() };
        drop(state);
        late.into_iter().for_each(|id| self.on_written(id, Some(errno(ErrorKind::TimedOut))));
    }
}

impl State {
    /// The node that a handle may write to.
    fn writable(&mut self, handle: u64) -> Result<u64, Errno> {
        let open = self.handles.get_mut(&handle).ok_or(Errno::EBADF)?;
        if open.access == Access::Read {
            return Err(Errno::EBADF);
        }
        if let Some(error) = open.error.take() {
            return Err(error);
        }
        let number = open.number;
        let is_usable = |node: &&Node| !node.is_stale;
        self.nodes.at(number).filter(is_usable).map(|_| number).ok_or(Errno::ESTALE)
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, numbers: impl IntoIterator<Item = u64>) {
        self.lock().extend(numbers);
        self.came.notify_one();
    }

    fn next(&self) -> u64 {
        let mut numbers = self.lock();
        loop {
            if let Some(number) = numbers.pop_front() {
                return number;
            }
            numbers = self.came.wait(numbers).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The time that a file seems to have until the server tells its own.
fn now() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { secs: now.as_secs() as i64, nanos: now.subsec_nanos() }
}
