//! What the user sees: totals, and the decisions of the tuner.

use hikyaku_console::{Audience, Board, Counts, Ending, Message, PathFigures, UPDATE_EVERY};
use hikyaku_tuner::{Phase, Sample};
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The rate is that of so much time.
const RATE_OVER: Duration = Duration::from_secs(2);

/// What is shown, as the threads of a command share it.
#[derive(Debug)]
pub(crate) struct Show {
    audience: Audience,
    begin: Instant,
    /// Bytes that have come.
    pub(crate) counted: AtomicU64,
    /// Bytes at an instant of late, and bytes a second before that.
    rate: Mutex<(Instant, u64, f64)>,
    counts: Mutex<Counts>,
    messages: Mutex<Vec<Message>>,
    is_over: AtomicBool,
}

/// What was measured for the tuner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    pub(crate) sample: Sample,
    pub(crate) phase: Phase,
}

/// The thread that shows.
pub(crate) struct Screen {
    show: Arc<Show>,
    thread: JoinHandle<()>,
}

impl Show {
    pub(crate) fn new(audience: Audience) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            audience,
            begin: now,
            counted: AtomicU64::new(0),
            rate: Mutex::new((now, 0, 0.0)),
            counts: Mutex::default(),
            messages: Mutex::default(),
            is_over: AtomicBool::new(false),
        })
    }

    /// Changes the counts; the bytes that come are counted apart.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut lock(&self.counts));
    }

    pub(crate) fn counts(&self) -> Counts {
        let counts = *lock(&self.counts);
        let counted = self.counted.load(Ordering::Relaxed);
        Counts { bytes: counts.kept_bytes.saturating_add(counted), ..counts }
    }

    /// Bytes that were counted are fetched again.
    pub(crate) fn forget(&self, bytes: u64) {
        let less = |counted: u64| Some(counted.saturating_sub(bytes));
        let _ = self.counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Bytes a second, of all connections together, of late.
    pub(crate) fn rate(&self) -> f64 {
        let (mut rate, now) = (lock(&self.rate), Instant::now());
        let bytes = self.counted.load(Ordering::Relaxed);
        let (since, before, known) = *rate;
        let elapsed = now.saturating_duration_since(since);
        let current = bytes.saturating_sub(before) as f64 / elapsed.as_secs_f64().max(1e-3);
        if elapsed >= RATE_OVER {
            *rate = (now, bytes, current);
        }
        if known > 0.0 { known } else { current }
    }

    pub(crate) fn tell(&self, message: Message) {
        lock(&self.messages).push(message);
    }

    pub(crate) fn remark(&self, text: String) {
        if self.audience != Audience::Quiet {
            self.tell(Message::Remark(text));
        }
    }

    /// An epoch of the tuner is over.
    pub(crate) fn epoch(&self, epoch: &Epoch) {
        let Epoch { sample, phase } = epoch;
        let (n, bytes, elapsed) = (sample.n, sample.bytes.bytes(), sample.elapsed.as_secs_f64());
        let goodput = 8.0 * bytes as f64 / elapsed.max(1e-6);
        let phase = phase.name();
        match self.audience {
            Audience::Program => {
                let event = json!({
                    "event": "epoch",
                    "seconds": self.begin.elapsed().as_secs_f64(),
                    "connections": n,
                    "bytes": bytes,
                    "took": elapsed,
                    "bits_per_second": goodput as u64,
                    "phase": phase,
                });
                self.tell(Message::Event(event.to_string()));
            }
            Audience::Lines => {
                let noun = if n == 1 { "connection" } else { "connections" };
                self.remark(format!("{n} {noun}: {:.1} Mbit/s ({phase})", goodput / 1e6));
            }
            Audience::Person | Audience::Quiet => {}
        }
    }
}

impl Screen {
    pub(crate) fn new(show: Arc<Show>) -> Self {
        let shown = Arc::clone(&show);
        Self { show, thread: thread::spawn(move || follow(&shown)) }
    }

    /// Shows the last figures and ends.
    pub(crate) fn finish(self) {
        self.show.is_over.store(true, Ordering::Release);
        self.thread.thread().unpark();
        // A thread that has panicked has said so.
        let _ = self.thread.join();
    }
}

fn follow(show: &Show) {
    let mut board = Board::new(show.audience, None);
    let id = board.add(None, Instant::now());
    loop {
        let is_over = show.is_over.load(Ordering::Acquire);
        let messages = std::mem::take(&mut *lock(&show.messages));
        let figures = (show.counts(), PathFigures::default());
        board.update(id, figures, &messages, Instant::now());
        if is_over {
            break;
        }
        thread::park_timeout(UPDATE_EVERY);
    }
    let counts = show.counts();
    let is_done = counts.is_counted && counts.files == counts.total_files;
    board.finish(id, if is_done { Ending::Done } else { Ending::Untold }, Instant::now());
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
