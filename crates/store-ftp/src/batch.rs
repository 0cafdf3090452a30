//! Small files over the same data connection, several of them requested at once.
//!
//! A file by itself costs a few round trips, however small it is. In a batch the commands of the next files are at the server
//! while it sends or stores the one before.

use hikyaku_gridftp::{Plan, Progress, Transferred, Wanted};
use std::collections::VecDeque;
use std::fmt;

/// The plan of a batch, whose files have numbers from 0.
pub struct Batch<'b, 'p, F, T> {
    files: usize,
    asked: usize,
    under_way: VecDeque<UnderWay<T>>,
    /// The number of files that may be under way.
    depth: usize,
    steps: Steps<'b, 'p, F, T>,
    done_bytes: u64,
    has_worked_ahead: bool,
}

/// The work of this end on a file.
pub struct Steps<'b, 'p, F, T> {
    /// Prepares a file. `None` if no byte is to be transferred, or if it fails, which the caller records.
    pub prepare: &'b mut dyn FnMut(usize) -> Option<(Wanted<'p, F>, T)>,
    /// The server has sent or stored a file.
    pub done: &'b mut dyn FnMut(usize, T),
}

impl<F, T> fmt::Debug for Steps<'_, '_, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").finish_non_exhaustive()
    }
}

impl<F, T> fmt::Debug for Batch<'_, '_, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("files", &self.files).field("asked", &self.asked).finish()
    }
}

struct UnderWay<T> {
    number: usize,
    bytes: u64,
    kept: T,
    /// It was requested before the end of the file before it.
    is_ahead: bool,
}

impl<'b, 'p, F, T> Batch<'b, 'p, F, T> {
    /// Files of which `depth` are under way at once.
    pub fn new(files: usize, depth: usize, steps: Steps<'b, 'p, F, T>) -> Self {
        let (under_way, has_worked_ahead) = (VecDeque::new(), false);
        Self { files, asked: 0, under_way, depth, steps, done_bytes: 0, has_worked_ahead }
    }

    /// The files that were requested and are not complete.
    pub fn left(&self) -> impl Iterator<Item = usize> {
        self.under_way.iter().map(|file| file.number)
    }

    /// Bytes of the complete files.
    pub(crate) const fn done_bytes(&self) -> u64 {
        self.done_bytes
    }

    /// Whether more than one file is under way.
    pub(crate) fn is_ahead(&self) -> bool {
        self.under_way.len() > 1
    }

    /// Whether a file that was requested before the end of another one is complete.
    pub(crate) const fn has_worked_ahead(&self) -> bool {
        self.has_worked_ahead
    }
}

impl<'p, F, T> Plan<'p, F> for Batch<'_, 'p, F, T> {
    fn next(&mut self, _: Option<&Progress>) -> Option<Wanted<'p, F>> {
        while self.under_way.len() < self.depth && self.asked < self.files {
            let number = self.asked;
            self.asked += 1;
            if let Some((wanted, kept)) = (self.steps.prepare)(number) {
                let (bytes, is_ahead) = (wanted.part.length, !self.under_way.is_empty());
                self.under_way.push_back(UnderWay { number, bytes, kept, is_ahead });
                return Some(wanted);
            }
        }
        None
    }

    fn done(&mut self, _: &Transferred) {
        if let Some(file) = self.under_way.pop_front() {
            self.done_bytes += file.bytes;
            self.has_worked_ahead |= file.is_ahead;
            (self.steps.done)(file.number, file.kept);
        }
    }
}
