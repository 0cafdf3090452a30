//! What the user sees: totals, and the decisions of the tuner.

use hikyaku_console::{Audience, Board, Counts, Ending, Message, PathFigures, UPDATE_EVERY};
use hikyaku_gridftp::Transferred;
use hikyaku_tuner::Decision;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// What is shown, as the threads of a command share it.
#[derive(Debug)]
pub(crate) struct Show {
    audience: Audience,
    begin: Instant,
    /// Bytes transferred by each session.
    counted: Vec<AtomicU64>,
    counts: Mutex<Counts>,
    messages: Mutex<Vec<Message>>,
    is_over: AtomicBool,
}

/// The thread that shows.
pub(crate) struct Screen {
    show: Arc<Show>,
    thread: JoinHandle<()>,
}

impl Show {
    /// For so many sessions.
    pub(crate) fn new(audience: Audience, sessions: u32) -> Arc<Self> {
        Arc::new(Self {
            audience,
            begin: Instant::now(),
            counted: (0..sessions.max(1)).map(|_| AtomicU64::new(0)).collect(),
            counts: Mutex::default(),
            messages: Mutex::default(),
            is_over: AtomicBool::new(false),
        })
    }

    /// Changes the counts; the bytes that are transferred are counted apart.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut lock(&self.counts));
    }

    pub(crate) fn counts(&self) -> Counts {
        let counts = *lock(&self.counts);
        let counted = self.counted.iter().map(|counted| counted.load(Ordering::Relaxed));
        let counted = counted.fold(0, u64::saturating_add);
        Counts { bytes: counts.kept_bytes.saturating_add(counted), ..counts }
    }

    /// Where a session counts its bytes. Sessions are numbered from 0.
    pub(crate) fn counted(&self, session: u32) -> &AtomicU64 {
        &self.counted[session as usize % self.counted.len()]
    }

    pub(crate) fn tell(&self, message: Message) {
        lock(&self.messages).push(message);
    }

    /// A chunk is done.
    pub(crate) fn chunk(&self, asked: &Decision, bytes: u64, done: &Transferred) {
        let goodput = 8.0 * bytes as f64 / done.elapsed.as_secs_f64().max(1e-6);
        let phase = asked.phase.name();
        match self.audience {
            Audience::Program => {
                let event = json!({
                    "event": "chunk",
                    "seconds": self.begin.elapsed().as_secs_f64(),
                    "connections": done.connections,
                    "bytes": bytes,
                    "took": done.elapsed.as_secs_f64(),
                    "bits_per_second": goodput as u64,
                    "phase": phase,
                    "retransmitted_packets": done.retransmitted,
                });
                self.tell(Message::Event(event.to_string()));
            }
            Audience::Lines => {
                let n = done.connections;
                let noun = if n == 1 { "connection" } else { "connections" };
                let text = format!("{n} {noun}: {:.1} Mbit/s ({phase})", goodput / 1e6);
                self.tell(Message::Remark(text));
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
