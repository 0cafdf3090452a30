//! Writes of programs: sent to the server in their order, and kept until it has confirmed them.
//!
//! A program's write returns as soon as its bytes are here, while fewer than a limit are unconfirmed. Closing the file
//! waits for all of them, unless this mount holds a lease for writing of the directory. After a lost connection
//! unconfirmed writes are sent again, which has no effect on those that had arrived. An error is kept for each open handle,
//! and returned once through each.

use crate::core::{Access, Core, State, errno};
use crate::nodes::Node;
use crate::refused::may_pass;
use crate::stage::{Confirmed, Place, Stage};
use crate::unconfirmed::{Sending, Sent, Write};
use bytes::Bytes;
use fuser::Errno;
use hikyaku_remote::{Edit, RemoteError, SMALL_BYTES_MAX};
use hikyaku_store::{ErrorKind, Identity, StorePath, Time};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{io, thread};

/// Where bytes of a program go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Where {
    At(u64),
    /// Behind the end, which this mount takes to be there.
    End(u64),
}

/// Called when all writes are confirmed, or with the error of a lost one.
type OnSettled = Box<dyn FnOnce(Result<(), Errno>) + Send>;

/// Numbers of writes that are to be sent, in their order.
#[derive(Default)]
pub(crate) struct Outbox {
    numbers: Mutex<VecDeque<u64>>,
    came: Condvar,
}

impl Core {
    /// Starts the thread that sends writes, so that no thread which reads the kernel's requests waits for the network.
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

    /// A program writes. `done` receives the number of accepted bytes.
    pub(crate) fn write(
        self: &Arc<Self>,
        handle: u64,
        (to, bytes): (Where, Bytes),
        done: impl FnOnce(Result<u32, Errno>) + Send + 'static,
    ) {
        let length = bytes.len() as u32;
        let mut state = self.state();
        if matches!(to, Where::End(_)) && state.writes_outdated(handle) {
            drop(state);
            return self.append_anew(handle, (to, bytes), done);
        }
        let number = match state.writable(handle) {
            Ok(number) => number,
            Err(errno) => {
                drop(state);
                return done(Err(errno));
            }
        };
        let path = state.decided_path(number);
        if path.is_none() && state.nodes.at(number).is_some_and(|node| node.held > 0) {
            // Earlier changes under a lease are sent by another thread, and must arrive first.
            let core = self.clone();
            let again = move || core.write(handle, (to, bytes), done);
            state.writes.settle_waits.push((number, Box::new(again)));
            return;
        }
        // Refused writes are sent first.
        if self.stage.is_none()
            && let Some(errno) = state.refusal(number)
        {
            drop(state);
            return done(Err(errno));
        }
        if let (Some(stage), Where::End(_)) = (&self.stage, to)
            && let Some(path) = state.nodes.at(number).map(|node| node.path.clone())
            && stage.has(&path)
        {
            drop(state);
            // Appended bytes do not go through the journal, which must not have earlier writes.
            let core = self.clone();
            return self.after_staged(&[&path], move |staged| match staged {
                Ok(()) => core.write(handle, (to, bytes), done),
                Err(errno) => done(Err(errno)),
            });
        }
        if let (Some(stage), Where::At(offset)) = (&self.stage, to) {
            drop(state);
            let written = self.write_staged(stage, handle, (offset, bytes));
            return match written {
                Ok(length) => self.with_room(move || done(Ok(length))),
                Err(errno) => done(Err(errno)),
            };
        }
        let (Where::At(offset) | Where::End(offset)) = to;
        let end = offset.saturating_add(u64::from(length));
        if let Some(old) = state.nodes.write(number, end, now()) {
            state.pages.drop_content(old);
        }
        let mut numbers = Vec::new();
        let step = SMALL_BYTES_MAX as usize;
        for from in (0..bytes.len()).step_by(step) {
            let part = bytes.slice(from..bytes.len().min(from + step));
            let place = match to {
                Where::At(_) => Where::At(offset + from as u64),
                Where::End(_) => Where::End(offset + from as u64),
            };
            numbers.push(state.keep(number, path.as_ref(), (place, part)));
        }
        state.totals.written_bytes += u64::from(length);
        match path {
            Some(_) => self.held_outbox.put(numbers),
            None => self.outbox.put(numbers),
        }
        // The kernel's own reads ahead, which wait for bytes of before.
        let forgotten = state.forgotten(Some(number));
        if state.writes.is_full() {
            state.writes.room_waits.push_back(Box::new(move || done(Ok(length))));
            drop(state);
        } else {
            drop(state);
            done(Ok(length));
        }
        self.take_up(forgotten);
    }

    /// A program closes a handle. Under a write lease no other client sees the file before the server has it.
    pub(crate) fn close_written(
        self: &Arc<Self>,
        handle: u64,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        if let Some(staged) = self.is_staged(handle) {
            return done(staged.map(drop));
        }
        let mut state = self.state();
        let number = state.handles.get(&handle).map(|open| open.number);
        if number.is_some_and(|number| state.decided_path(number).is_some()) {
            let error = state.handles.get_mut(&handle).and_then(|open| open.error.take());
            drop(state);
            return done(error.map_or(Ok(()), Err));
        }
        drop(state);
        self.settle_handle(handle, done);
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
        if let Some(errno) = state.refusal(number) {
            drop(state);
            return done(Err(errno));
        }
        if node.unconfirmed > 0 {
            let again = move || core.settle_node(number, done);
            state.writes.settle_waits.push((number, Box::new(again)));
            return;
        }
        drop(state);
        self.look_node(number, move |looked| match looked {
            Ok(()) => {
                let forgotten = core.state().forgotten(Some(number));
                core.settle_node(number, done);
                core.take_up(forgotten);
            }
            Err(kind) => done(Err(errno(kind))),
        });
    }

    /// Calls `done` when the server has answered all present writes to a node.
    pub(crate) fn after_writes(
        self: &Arc<Self>,
        number: u64,
        done: impl FnOnce() + Send + 'static,
    ) {
        let mut state = self.state();
        // Writes that a full server has refused are sent again later.
        let is_refused = state.refusal(number).is_some();
        if is_refused || state.nodes.at(number).is_none_or(|node| node.unconfirmed == 0) {
            drop(state);
            return done();
        }
        let core = self.clone();
        let again = move || core.after_writes(number, done);
        state.writes.settle_waits.push((number, Box::new(again)));
    }

    /// Calls `done` when the server has confirmed all present writes to a node, with the error that no call through the handle
    /// has returned.
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
        let (number, error) = (open.number, open.error);
        let refusal = state.refusal(number).filter(|_| error.is_none());
        if let Some(errno) = refusal {
            drop(state);
            return done(Err(errno));
        }
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
        if !state.crew.is_up() {
            return;
        }
        let staged = state.writes.at(id).and_then(|write| match write.sent {
            Sent::Staged { place, .. } => Some(place),
            _ => None,
        });
        if staged.is_some() && state.is_held_back() {
            return;
        }
        drop(state);
        let staged = staged.zip(self.stage.as_ref());
        let read = staged.map(|(place, stage)| {
            stage.take_room(place.length);
            stage.read(place)
        });
        let Ok(bytes) = read.transpose() else {
            self.give_room(staged);
            return self.on_written(id, Some(Errno::EIO));
        };
        if !self.send_bytes(id, bytes) {
            self.give_room(staged);
        }
    }

    fn give_room(&self, staged: Option<(Place, &Arc<Stage>)>) {
        if let Some((place, stage)) = staged {
            stage.give_room(place.length);
        }
    }

    /// Sends a write, whose bytes may be those from the journal. Returns whether it has been sent.
    fn send_bytes(self: &Arc<Self>, id: u64, staged: Option<Bytes>) -> bool {
        // Where the file will be is known when a change of its name, or of a directory above it, has been answered. The
        // server makes that change before the write in any case.
        let is_moving = |state: &mut State| {
            let write = state.writes.at(id);
            let node = write.and_then(|write| state.nodes.at(write.node));
            node.is_some_and(|node| state.changes.is_under_way(&node.path))
        };
        let state = self.names_told.wait_while(self.state(), is_moving);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if !state.crew.is_up() {
            return false;
        }
        let appended = state.writes.send_append(id);
        let is_append = appended.is_some();
        let Some(Write { node, sent }) = state.writes.at(id) else { return false };
        let Some(node) = state.nodes.at(*node) else { return false };
        let is_staged = staged.is_some();
        let (path, identity) = (node.path.as_bytes().to_vec(), node.found.identity);
        let (edit, bytes) = match (sent, appended.or(staged)) {
            (Sent::Bytes { at, bytes }, _) => {
                let length = bytes.len() as u32;
                (Edit::Write { path, identity, at: *at, length }, bytes.clone())
            }
            (Sent::Appended { .. }, Some(bytes)) => {
                (Edit::Append { path, identity, length: bytes.len() as u32 }, bytes)
            }
            (Sent::Staged { at, .. }, Some(bytes)) => {
                let length = bytes.len() as u32;
                (Edit::Write { path, identity, at: *at, length }, bytes)
            }
            _ => return false,
        };
        let length = bytes.len() as u32;
        let (crew, epoch) = (state.crew.clone(), state.epoch);
        state.writes.sending = Sending::UnderWay(Vec::new());
        drop(state);
        let core = self.clone();
        crew.edit_then(edit, &bytes, move |answer| {
            if let Some(stage) = core.stage.as_ref().filter(|_| is_staged) {
                stage.give_room(length);
            }
            match answer {
                Ok(_) => core.on_written(id, None),
                Err(RemoteError::Refused { kind, .. }) if is_staged && may_pass(kind) => {
                    core.hold_back(kind);
                }
                Err(RemoteError::Refused { kind, .. }) => core.on_written(id, Some(errno(kind))),
                Err(RemoteError::Protocol(_)) => core.on_written(id, Some(Errno::EIO)),
                // Whether the bytes were appended is unknown.
                Err(RemoteError::Closed(_)) if is_append => core.on_written(id, Some(Errno::EIO)),
                Err(RemoteError::Closed(_)) => {
                    let state = core.state();
                    let is_other = state.epoch != epoch && state.crew.is_up();
                    drop(state);
                    if is_other {
                        core.outbox.put([id]);
                    }
                }
            }
        });
        let sent = std::mem::take(&mut self.state().writes.sending);
        if let Sending::UnderWay(calls) = sent {
            calls.into_iter().for_each(|call| call());
        }
        true
    }

    /// A write is confirmed, or lost.
    fn on_written(self: &Arc<Self>, id: u64, error: Option<Errno>) {
        let mut state = self.state();
        let Some(write) = state.writes.remove(id) else { return };
        if let Some(error) = error {
            state.totals.failed += 1;
            let handles = state.handles.values_mut();
            let of_node = handles.filter(|open| open.number == write.node);
            let told = of_node.map(|open| open.error = Some(error)).count();
            // A file whose bytes are in the journal may have been closed.
            if let Some(node) = state.nodes.at_mut(write.node).filter(|_| told == 0) {
                node.lost = Some(error);
                let path = node.path.clone();
                state.lost_untold(&path, error);
            }
        }
        let staged = match write.sent {
            Sent::Staged { at, place } => Some(Confirmed { id, node: write.node, at, place }),
            _ => None,
        };
        let path = state.nodes.at(write.node).map(|node| node.path.clone());
        let mut settled = None;
        if let Some(node) = state.nodes.at_mut(write.node) {
            node.unconfirmed -= 1;
            node.staged -= u64::from(staged.is_some());
            node.written = Some(Instant::now());
            settled = (node.unconfirmed == 0).then(|| node.path.clone());
        }
        if let Some(path) = settled {
            // A listing of before has another size and time.
            state.doubt_listing(&path);
        }
        let calls = state.settled(write.node);
        if let Some(content) = state.nodes.prune_left(write.node) {
            state.pages.drop_content(content);
        }
        drop(state);
        calls.into_iter().for_each(|call| call());
        if let Some(staged) = staged {
            self.on_staged(path.as_ref(), staged, error);
        }
    }

    /// Fails all writes when the server has been away for too long.
    pub(crate) fn expire_writes(self: &Arc<Self>, now: Instant) {
        let state = self.state();
        let is_late = |down: Instant| now.saturating_duration_since(down) >= self.settings.timeout;
        let is_late = state.down.is_some_and(is_late);
        let (plain, all) = match is_late {
            true => (state.writes.numbers(), state.writes.mortal_numbers()),
            false => (Vec::new(), Vec::new()),
        };
        drop(state);
        for id in all {
            match plain.binary_search(&id) {
                Ok(_) => self.on_written(id, Some(errno(ErrorKind::TimedOut))),
                Err(_) => self.on_decided(id, Err(ErrorKind::TimedOut)),
            }
        }
        if is_late {
            self.expire_kept();
        }
    }
}

impl State {
    /// Keeps bytes that a program has written until the server has confirmed them. Returns the number of the write.
    fn keep(&mut self, node: u64, decided: Option<&StorePath>, (to, bytes): (Where, Bytes)) -> u64 {
        let (Where::At(at) | Where::End(at)) = to;
        if let Some(path) = decided {
            let (path, identity) = (path.as_bytes().to_vec(), Identity { device: 0, number: 0 });
            let edit = Edit::Write { path, identity, at, length: bytes.len() as u32 };
            return self.hold(node, edit, bytes);
        }
        let id = self.next();
        let sent = match to {
            Where::At(at) => Sent::Bytes { at, bytes },
            Where::End(_) => Sent::Appended { bytes, is_sent: false },
        };
        self.writes.insert(id, Write { node, sent });
        if let Some(node) = self.nodes.at_mut(node) {
            node.unconfirmed += 1;
        }
        id
    }

    /// The node that a handle may write to.
    pub(crate) fn writable(&mut self, handle: u64) -> Result<u64, Errno> {
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

    /// Replaces the numbers.
    pub(crate) fn replace(&self, numbers: Vec<u64>) {
        *self.lock() = numbers.into();
        self.came.notify_one();
    }

    pub(crate) fn next(&self) -> u64 {
        let mut numbers = self.lock();
        loop {
            if let Some(number) = numbers.pop_front() {
                return number;
            }
            numbers = self.came.wait(numbers).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The provisional time of a file until the server sends its own.
pub(crate) fn now() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { secs: now.as_secs() as i64, nanos: now.subsec_nanos() }
}
