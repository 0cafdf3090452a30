//! The totals of a command, which its threads count and one thread shows.

use super::{Audience, Board, Counts, Ending, Message, PathFigures, UPDATE_EVERY, decision};
use hikyaku_tuner::{Measured, Phase};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What is shown of a command with one meter, as its threads share it.
#[derive(Debug)]
pub struct Totals {
    audience: Audience,
    begin: Instant,
    /// Bytes, counted apart by each part of the command.
    counted: Vec<AtomicU64>,
    counts: Mutex<Counts>,
    messages: Mutex<Vec<Message>>,
    is_over: AtomicBool,
}

/// The thread that shows them.
#[derive(Debug)]
pub struct Screen {
    totals: Arc<Totals>,
    thread: JoinHandle<()>,
}

impl Totals {
    /// For so many parts, each of which counts its bytes; at least one.
    pub fn new(audience: Audience, parts: usize) -> Arc<Self> {
        Arc::new(Self {
            audience,
            begin: Instant::now(),
            counted: (0..parts.max(1)).map(|_| AtomicU64::new(0)).collect(),
            counts: Mutex::default(),
            messages: Mutex::default(),
            is_over: AtomicBool::new(false),
        })
    }

    /// Who reads.
    pub const fn audience(&self) -> Audience {
        self.audience
    }

    /// The time since the command began.
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Shows a decision on the number of connections.
    pub fn decided(&self, measured: &Measured, phase: Phase) {
        let message = decision(self.audience, self.elapsed(), (measured, phase));
        message.into_iter().for_each(|message| self.tell(message));
    }

    /// Changes the counts; bytes are counted apart.
    pub fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut lock(&self.counts));
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let counts = *lock(&self.counts);
        let counted = self.counted.iter().map(|counted| counted.load(Ordering::Relaxed));
        let counted = counted.fold(0, u64::saturating_add);
        Counts { bytes: counts.kept_bytes.saturating_add(counted), ..counts }
    }

    /// Where a part counts its bytes. Parts are numbered from 0.
    pub fn counted(&self, part: usize) -> &AtomicU64 {
        &self.counted[part % self.counted.len()]
    }

    /// Tells a message once.
    pub fn tell(&self, message: Message) {
        lock(&self.messages).push(message);
    }

    /// Tells a person.
    pub fn remark(&self, text: String) {
        if self.audience != Audience::Quiet {
            self.tell(Message::Remark(text));
        }
    }
}

impl Screen {
    /// Begins to show.
    pub fn new(totals: Arc<Totals>) -> Self {
        let shown = Arc::clone(&totals);
        Self { totals, thread: thread::spawn(move || follow(&shown)) }
    }

    /// Shows the last figures and ends. The sums are told if all files are counted and copied.
    pub fn finish(self) {
        self.totals.is_over.store(true, Ordering::Release);
        self.thread.thread().unpark();
        // A thread that has panicked has said so.
        let _ = self.thread.join();
    }
}

fn follow(totals: &Totals) {
    let mut board = Board::new(totals.audience, None);
    let id = board.add(None, Instant::now());
    loop {
        let is_over = totals.is_over.load(Ordering::Acquire);
        let messages = std::mem::take(&mut *lock(&totals.messages));
        let figures = (totals.counts(), PathFigures::default());
        board.update(id, figures, &messages, Instant::now());
        if is_over {
            break;
        }
        thread::park_timeout(UPDATE_EVERY);
    }
    let counts = totals.counts();
    let is_done = counts.is_counted && counts.files == counts.total_files;
    board.finish(id, if is_done { Ending::Done } else { Ending::Untold }, Instant::now());
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_all_parts_and_what_was_there_are_one_sum() {
        let totals = Totals::new(Audience::Quiet, 2);
        totals.counted(0).store(5, Ordering::Relaxed);
        totals.counted(1).store(7, Ordering::Relaxed);
        totals.count(|counts| counts.kept_bytes = 100);
        assert_eq!(totals.counts().bytes, 112);
    }
}
