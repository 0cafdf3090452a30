//! Reads of programs: answered from blocks that are here, or when the blocks have come.

use crate::core::{Core, Standing, State, errno};
use crate::fetch::{Fetch, plan};
use crate::nodes::Node;
use bytes::Bytes;
use fuser::Errno;
use hikyaku_read_ahead::{BLOCK_BYTES, Class, Content, Put, blocks_of};
use hikyaku_store::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Receives the bytes, or the error.
pub(crate) type OnBytes = Box<dyn FnOnce(Result<&[u8], Errno>) + Send>;

/// A read that waits.
pub(crate) struct Read {
    handle: u64,
    node: u64,
    bytes: Range<u64>,
    deadline: Instant,
    on_bytes: OnBytes,
}

/// A read that is answered once the lock is released.
pub(crate) struct Answer {
    on_bytes: OnBytes,
    result: Result<Vec<Bytes>, Errno>,
}

/// The next step of a read.
enum Step {
    Done(Result<Vec<Bytes>, Errno>),
    /// It waits for this block.
    Waits(Content, u64),
}

/// Work for the time after the lock is released.
#[derive(Default)]
pub(crate) struct Later {
    answers: Vec<Answer>,
    fetches: Vec<Fetch>,
}

impl Core {
    /// Reads from an open file.
    pub(crate) fn read(
        self: &Arc<Self>,
        handle: u64,
        (offset, size): (u64, u32),
        on_bytes: OnBytes,
    ) {
        let bytes = offset..offset.saturating_add(u64::from(size));
        let deadline = Instant::now() + self.settings.timeout;
        let mut later = Later::default();
        let mut state = self.state();
        let Some(number) = state.handles.get(&handle).map(|handle| handle.number) else {
            drop(state);
            return on_bytes(Err(Errno::EBADF));
        };
        if state.nodes.at(number).is_some_and(Node::is_own) {
            drop(state);
            // Bytes that were written here are read from the server, once it has them.
            let core = self.clone();
            return self.settle_node(number, move |settled| match settled {
                Ok(()) => core.read(handle, (offset, size), on_bytes),
                Err(errno) => on_bytes(Err(errno)),
            });
        }
        state.totals.reads += 1;
        let step = state.step((handle, number), &bytes, &mut later);
        if let Step::Done(Ok(_)) = step {
            state.totals.hits += 1;
        }
        state.read_ahead(handle, &bytes, &mut later);
        let read = Read { handle, node: number, bytes, deadline, on_bytes };
        state.settle(read, step, &mut later);
        state.pace_outstanding(self.now());
        drop(state);
        self.act(later);
    }

    /// Answers and asks.
    pub(crate) fn act(self: &Arc<Self>, later: Later) {
        for Answer { on_bytes, result } in later.answers {
            match result {
                Ok(parts) if parts.len() == 1 => on_bytes(Ok(&parts[0])),
                Ok(parts) => on_bytes(Ok(&parts.concat())),
                Err(errno) => on_bytes(Err(errno)),
            }
        }
        later.fetches.into_iter().for_each(|fetch| self.fetch(fetch));
    }

    /// Bytes of a file have come, beginning at a block.
    pub(crate) fn on_bytes(self: &Arc<Self>, content: Content, offset: u64, bytes: &[u8]) {
        let mut later = Later::default();
        // Copied before the lock is taken.
        let blocks = bytes.chunks(BLOCK_BYTES as usize).map(Bytes::copy_from_slice);
        let blocks: Vec<Bytes> = blocks.collect();
        let mut state = self.state();
        state.totals.arrived_bytes += bytes.len() as u64;
        let now = self.now();
        state.pace.handle_arrived(bytes.len() as u64, now);
        for (index, block) in (offset / BLOCK_BYTES..).zip(blocks) {
            let length = block.len() as u64;
            if state.pages.put(content, index, block, length) == Put::Here {
                state.wake(content, index, &mut later);
            }
        }
        state.pace_outstanding(now);
        drop(state);
        self.act(later);
    }

    /// Blocks will not arrive. Reads that wait for them request them again, or return the error.
    pub(crate) fn on_failed(
        self: &Arc<Self>,
        content: Content,
        blocks: Range<u64>,
        error: Option<ErrorKind>,
    ) {
        let mut later = Later::default();
        let mut state = self.state();
        for index in blocks.clone() {
            state.pages.fail(content, index);
        }
        for index in blocks {
            match error {
                Some(kind) => state.fail_waits(content, index, errno(kind), &mut later),
                None => state.wake(content, index, &mut later),
            }
        }
        state.pace_outstanding(self.now());
        drop(state);
        self.act(later);
    }

    /// Blocks will not arrive because the connection has ended. Reads that wait for them wait for the next connection.
    pub(crate) fn on_cut_off(self: &Arc<Self>, content: Content, blocks: Range<u64>, epoch: u64) {
        let mut state = self.state();
        for index in blocks.clone() {
            state.pages.fail(content, index);
        }
        state.pace_outstanding(self.now());
        let is_other = state.epoch != epoch && state.crew.is_up();
        drop(state);
        if is_other {
            self.on_failed(content, blocks, None);
        }
    }

    /// The server reports that the file has changed: requests its metadata, and continues the reads with the new content.
    pub(crate) fn on_changed(self: &Arc<Self>, content: Content, number: u64, blocks: Range<u64>) {
        let mut state = self.state();
        for index in blocks.clone() {
            state.pages.fail(content, index);
        }
        drop(state);
        let core = self.clone();
        self.look_node(number, move |looked| core.on_failed(content, blocks, looked.err()));
    }

    /// Takes these reads up again.
    pub(crate) fn drive_all(self: &Arc<Self>, reads: &[u64]) {
        let mut later = Later::default();
        let mut state = self.state();
        for id in reads {
            state.drive(*id, &mut later);
        }
        state.pace_outstanding(self.now());
        drop(state);
        self.act(later);
    }

    /// Takes up reads of a file again that wait for blocks of a content that it has no more.
    pub(crate) fn take_up(self: &Arc<Self>, reads: Vec<Read>) {
        for read in reads {
            let core = self.clone();
            self.settle_node(read.node, move |settled| {
                let mut later = Later::default();
                let mut state = core.state();
                match settled {
                    Ok(()) => {
                        let step = state.step((read.handle, read.node), &read.bytes, &mut later);
                        state.settle(read, step, &mut later);
                    }
                    Err(errno) => state.answer(read.on_bytes, Err(errno), &mut later),
                }
                state.pace_outstanding(core.now());
                drop(state);
                core.act(later);
            });
        }
    }

    /// Resumes reads that wait for a block without a request.
    pub(crate) fn tend_reads(self: &Arc<Self>) {
        let mut state = self.state();
        let forgotten = if state.crew.is_up() { state.forgotten(None) } else { Vec::new() };
        if state.reads.is_empty() {
            state.block_waits.clear();
        }
        drop(state);
        self.take_up(forgotten);
    }

    /// Fails reads whose time is up.
    pub(crate) fn expire_reads(self: &Arc<Self>, now: Instant) {
        let mut later = Later::default();
        let mut state = self.state();
        let late = state.reads.iter().filter(|(_, read)| read.deadline <= now);
        let late: Vec<u64> = late.map(|(&id, _)| id).collect();
        for id in late {
            if let Some(read) = state.reads.remove(&id) {
                state.answer(read.on_bytes, Err(Errno::EIO), &mut later);
            }
        }
        drop(state);
        self.act(later);
    }
}

impl State {
    /// The next step for a read: its bytes, or the block that it waits for. Absent blocks are requested.
    fn step(
        &mut self,
        (handle, number): (u64, u64),
        bytes: &Range<u64>,
        later: &mut Later,
    ) -> Step {
        if self.handles.get(&handle).is_some_and(|open| open.standing == Standing::Outdated) {
            return Step::Done(Err(Errno::ESTALE));
        }
        let Some(node) = self.nodes.at(number) else { return Step::Done(Err(Errno::ESTALE)) };
        let (content, end) = (node.content, bytes.end.min(node.found.size));
        if bytes.start >= end {
            return Step::Done(Ok(vec![Bytes::new()]));
        }
        let bytes = bytes.start..end;
        let blocks = blocks_of(&bytes);
        if self.pages.has(content, blocks.clone()) {
            let pages = &mut self.pages;
            let part = |index: u64| {
                let block = pages.read(content, index)?;
                let at = index * BLOCK_BYTES;
                let from = bytes.start.saturating_sub(at);
                let to = (bytes.end - at).min(block.len() as u64);
                (from <= to).then(|| block.slice(from as usize..to as usize))
            };
            let parts: Vec<Bytes> = blocks.filter_map(part).collect();
            let length: usize = parts.iter().map(Bytes::len).sum();
            // A short read must not look like an end.
            let is_whole = length as u64 == bytes.end - bytes.start;
            return Step::Done(if is_whole { Ok(parts) } else { Err(Errno::EIO) });
        }
        if node.is_stale {
            return Step::Done(Err(Errno::ESTALE));
        }
        let missing = blocks.clone().find(|&index| !self.pages.has(content, index..index + 1));
        let absent = self.pages.ask(content, blocks.clone(), Class::Fault);
        let portion = self.pace.window().portion;
        later.fetches.extend(plan(number, node, &absent, Class::Fault, portion));
        Step::Waits(content, missing.unwrap_or(blocks.start))
    }

    /// Asks for what the program will read next.
    fn read_ahead(&mut self, handle: u64, bytes: &Range<u64>, later: &mut Later) {
        let window = self.pace.window();
        let Some(handle) = self.handles.get_mut(&handle) else { return };
        let Some(node) = self.nodes.at(handle.number).filter(|node| !node.is_stale) else { return };
        let bytes = bytes.start..bytes.end.min(node.found.size);
        if bytes.is_empty() {
            return;
        }
        let was_absent = later.fetches.iter().any(|fetch| fetch.class() == Class::Fault);
        if was_absent {
            handle.reader.handle_lost(bytes.start);
        }
        for wanted in handle.reader.handle_read(bytes, window) {
            let blocks = blocks_of(&wanted);
            let room = self.pages.room_ahead() / BLOCK_BYTES;
            let end = blocks.end.min(blocks.start + room);
            if end < blocks.end {
                handle.reader.handle_lost(end * BLOCK_BYTES);
            }
            let absent = self.pages.ask(node.content, blocks.start..end, Class::Ahead);
            let fetches = plan(handle.number, node, &absent, Class::Ahead, window.portion);
            later.fetches.extend(fetches);
        }
    }

    /// Takes out the reads, of one node or of all, that wait for a block which is neither here nor asked for.
    pub(crate) fn forgotten(&mut self, node: Option<u64>) -> Vec<Read> {
        let (nodes, pages) = (&self.nodes, &self.pages);
        let is_forgotten = |read: &Read| {
            if node.is_some_and(|node| node != read.node) {
                return false;
            }
            let content = nodes.at(read.node).map(|node| node.content);
            content.is_none_or(|content| {
                let mut blocks = blocks_of(&read.bytes);
                blocks.any(|index| pages.is_absent(content, index))
                    || pages.has(content, blocks_of(&read.bytes))
            })
        };
        let found = self.reads.iter().filter(|(_, read)| is_forgotten(read));
        let found: Vec<u64> = found.map(|(&id, _)| id).collect();
        found.iter().filter_map(|id| self.reads.remove(id)).collect()
    }

    /// Answers a read, or lets it wait.
    fn settle(&mut self, read: Read, step: Step, later: &mut Later) {
        match step {
            Step::Done(result) => self.answer(read.on_bytes, result, later),
            Step::Waits(content, index) => {
                let id = self.next();
                self.reads.insert(id, read);
                self.block_waits.entry((content, index)).or_default().push(id);
            }
        }
    }

    fn answer(&mut self, on_bytes: OnBytes, result: Result<Vec<Bytes>, Errno>, later: &mut Later) {
        match &result {
            Ok(parts) => {
                self.totals.read_bytes += parts.iter().map(Bytes::len).sum::<usize>() as u64
            }
            Err(_) => self.totals.failed += 1,
        }
        later.answers.push(Answer { on_bytes, result });
    }

    /// Takes up the reads that wait for a block.
    fn wake(&mut self, content: Content, index: u64, later: &mut Later) {
        for id in self.block_waits.remove(&(content, index)).unwrap_or_default() {
            self.drive(id, later);
        }
    }

    /// Takes up a read.
    fn drive(&mut self, id: u64, later: &mut Later) {
        let Some(read) = self.reads.remove(&id) else { return };
        let step = self.step((read.handle, read.node), &read.bytes, later);
        self.settle(read, step, later);
    }

    /// The reads that wait for a block return an error.
    fn fail_waits(&mut self, content: Content, index: u64, errno: Errno, later: &mut Later) {
        for id in self.block_waits.remove(&(content, index)).unwrap_or_default() {
            if let Some(read) = self.reads.remove(&id) {
                self.answer(read.on_bytes, Err(errno), later);
            }
        }
    }

    pub(crate) fn pace_outstanding(&mut self, now: hikyaku_units::Instant) {
        let is_outstanding = self.pages.totals().asked_bytes > 0;
        self.pace.handle_outstanding(is_outstanding, now);
    }
}
