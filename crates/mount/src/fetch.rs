//! Blocks on their way from the server: whole segments as objects, short ranges as messages.

use crate::core::Core;
use crate::crew::{Line, Load, Places};
use crate::nodes::Node;
use hikyaku_read_ahead::{BLOCK_BYTES, Class, Content, SEGMENT_BYTES};
use hikyaku_remote::{Incoming, Outcome, Piece, RemoteError, Seen};
use hikyaku_store::{ErrorKind, StorePath};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

/// Blocks that are to be asked for together.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    /// The node, and the content that it had.
    node: u64,
    content: Content,
    path: StorePath,
    seen: Seen,
    /// The servers that have it.
    at: Places,
    class: Class,
    blocks: Range<u64>,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// As an object.
    Segments,
    /// As a message.
    Piece,
}

/// A request for segments that is under way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Give {
    pub(crate) content: Content,
    pub(crate) line: Line,
}

/// Requests for segments whose bytes are to be received, oldest first.
#[derive(Default)]
pub(crate) struct Gives {
    waiting: Mutex<VecDeque<Job>>,
    came: Condvar,
}

struct Job {
    fetch: Fetch,
    incoming: Incoming,
    line: Line,
    load: Load,
    epoch: u64,
}

/// Threads that receive objects. A server sends four at a time, and what is in flight behind a lost packet must be
/// received as well.
const THREADS: usize = 24;
/// Blocks of a segment, and of a message.
const SEGMENT_BLOCKS: u64 = SEGMENT_BYTES / BLOCK_BYTES;
const PIECE_BLOCKS: u64 = 2;

impl Fetch {
    pub(crate) const fn class(&self) -> Class {
        self.class
    }

    fn bytes(&self) -> Range<u64> {
        let end = (self.blocks.end * BLOCK_BYTES).min(self.seen.size);
        self.blocks.start * BLOCK_BYTES..end
    }
}

/// How to ask for these blocks of a node, which ascend.
pub(crate) fn plan(
    number: u64,
    node: &Node,
    absent: &[u64],
    class: Class,
    portion: u64,
) -> Vec<Fetch> {
    let seen = Seen::from(&node.found);
    let end = seen.size.div_ceil(BLOCK_BYTES);
    let fetch = |blocks, form| Fetch {
        node: number,
        content: node.content,
        path: node.path.clone(),
        seen,
        at: node.at,
        class,
        blocks,
        form,
    };
    let mut fetches = Vec::new();
    for run in absent.chunk_by(|a, b| a + 1 == *b) {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { continue };
        let run = first..last + 1;
        // The segments that lie within the run.
        let whole_from = run.start.next_multiple_of(SEGMENT_BLOCKS);
        let whole_to = if run.end == end { end } else { run.end / SEGMENT_BLOCKS * SEGMENT_BLOCKS };
        let is_worth_it = whole_to >= whole_from + SEGMENT_BLOCKS / 2;
        let whole = if is_worth_it { whole_from..whole_to } else { run.end..run.end };
        for rest in [run.start..whole.start, whole.end..run.end] {
            let starts = rest.clone().step_by(PIECE_BLOCKS as usize);
            let pieces = starts.map(|at| at..rest.end.min(at + PIECE_BLOCKS));
            fetches.extend(pieces.map(|blocks| fetch(blocks, Form::Piece)));
        }
        let step = (portion / BLOCK_BYTES).max(SEGMENT_BLOCKS) as usize;
        let portions = whole.clone().step_by(step);
        let portions = portions.map(|at| at..whole.end.min(at + step as u64));
        fetches.extend(portions.map(|blocks| fetch(blocks, Form::Segments)));
    }
    fetches
}

impl Core {
    /// Starts the threads that receive objects. They end with the process.
    pub(crate) fn start_receiving(self: &Arc<Self>) -> io::Result<()> {
        for _ in 0..THREADS {
            let core = self.clone();
            let named = thread::Builder::new().name("mount-receive".to_owned());
            named.spawn(move || {
                loop {
                    core.receive(core.gives.next());
                }
            })?;
        }
        Ok(())
    }

    /// Asks for blocks.
    pub(crate) fn fetch(self: &Arc<Self>, fetch: Fetch) {
        let state = self.state();
        let (crew, epoch) = (state.crew.clone(), state.epoch);
        drop(state);
        let path = fetch.path.as_bytes().to_vec();
        let bytes = fetch.bytes();
        match fetch.form {
            Form::Piece => {
                let length = (bytes.end - bytes.start) as u32;
                let piece = Piece { path, seen: fetch.seen, from: bytes.start, length };
                let core = self.clone();
                crew.piece_then(fetch.at, piece, move |piece| match piece {
                    Ok(bytes) => {
                        core.on_bytes(fetch.content, fetch.blocks.start * BLOCK_BYTES, &bytes);
                    }
                    Err(error) => core.on_refused(&fetch, &error, epoch),
                });
            }
            Form::Segments => {
                let class = match fetch.class {
                    Class::Fault => hikyaku_remote::Class::Urgent,
                    Class::Ahead => hikyaku_remote::Class::Bulk,
                };
                let ranges = vec![(bytes.start, bytes.end)];
                let give = hikyaku_remote::Give { path, seen: fetch.seen, ranges, class };
                match crew.give(fetch.at, give) {
                    Ok((incoming, line, load)) => {
                        let give = Give { content: fetch.content, line: line.clone() };
                        self.state().under_way.push(give);
                        self.gives.put(Job { fetch, incoming, line, load, epoch });
                    }
                    Err(error) => self.on_refused(&fetch, &error, epoch),
                }
            }
        }
    }

    fn receive(self: &Arc<Self>, job: Job) {
        let Job { fetch, incoming, line, load, epoch } = job;
        let received = incoming.receive(
            |_| load.arrived(),
            |segment| self.on_bytes(fetch.content, segment.offset, segment.bytes),
        );
        drop(load);
        self.state().under_way.retain(|give| give.line != line);
        match received {
            Ok(Outcome { missing, damaged }) => {
                for index in missing.into_iter().chain(damaged) {
                    let first = u64::from(index.0) * SEGMENT_BLOCKS;
                    let end = fetch.blocks.end.min(first + SEGMENT_BLOCKS);
                    self.on_failed(fetch.content, first..end, None);
                }
            }
            Err(error) => self.on_refused(&fetch, &error, epoch),
        }
    }

    fn on_refused(self: &Arc<Self>, fetch: &Fetch, error: &RemoteError, epoch: u64) {
        let (content, blocks) = (fetch.content, fetch.blocks.clone());
        match error {
            RemoteError::Closed(_) => self.on_cut_off(content, blocks, epoch),
            RemoteError::Refused { kind: ErrorKind::Changed | ErrorKind::NotFound, .. } => {
                self.on_changed(content, fetch.node, blocks);
            }
            RemoteError::Refused { kind, .. } => self.on_failed(content, blocks, Some(*kind)),
            RemoteError::Protocol(_) => {
                self.on_failed(content, blocks, Some(ErrorKind::Damaged));
            }
        }
    }

    /// No program reads the content any more: cancels the requests whose bytes have not been sent.
    pub(crate) fn abandon(&self, content: Content) {
        let mut state = self.state();
        state.pages.abandon(content);
        let wanted = state.under_way.iter().filter(|give| give.content == content);
        let lines: Vec<Line> = wanted.map(|give| give.line.clone()).collect();
        let crew = state.crew.clone();
        drop(state);
        lines.iter().for_each(|line| crew.cut(line));
    }
}

impl Gives {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, job: Job) {
        self.lock().push_back(job);
        self.came.notify_one();
    }

    fn next(&self) -> Job {
        let mut waiting = self.lock();
        loop {
            if let Some(job) = waiting.pop_front() {
                return job;
            }
            waiting = self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests;
