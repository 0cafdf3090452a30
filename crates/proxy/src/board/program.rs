//! The program of a flow, and the file that it writes.

use super::doing::{Doing, Threads};
use super::file::{Partial, Writers};
use std::time::Duration;

/// What is known of the program of a flow.
#[derive(Default)]
pub(super) struct Program {
    writers: Writers,
    file: Option<Partial>,
    /// Questions until the file is looked for again.
    pause: u32,
    threads: Threads,
}

/// A file that was not found is looked for again at every sixth question: that goes through all processes.
const SEEK_AGAIN: u32 = 6;

impl Program {
    /// The file into which the program writes what came through its socket, of which `arrived` bytes have come. It is found
    /// once, if it is found.
    pub(super) fn file(&mut self, inode: u32, arrived: u64) -> Option<&Partial> {
        // Another file that once had the right length does not grow with the download.
        self.file.take_if(|file| file.size() < arrived / 2);
        if self.file.is_none() && self.pause == 0 {
            self.pause = SEEK_AGAIN;
            if self.writers.is_empty() {
                self.writers = Writers::of_socket(inode);
            }
            self.file = self.writers.file(arrived);
        }
        self.pause = self.pause.saturating_sub(1);
        self.file.as_ref()
    }

    /// What it does, if its file was found. `time` has passed since the last question. This takes some 30 ms.
    pub(super) fn doing(&mut self, time: Duration) -> Doing {
        match &self.file {
            Some(file) => self.threads.look(self.writers.processes(), file, time),
            None => Doing::Other,
        }
    }
}
