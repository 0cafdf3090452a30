//! The parts that threads share, as models: they promise no more than the real ones do.

use loom::sync::Condvar;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Places in a queue of a model: more than any test uses.
const PLACES: usize = 24;

/// Threads that sleep. In a model no time passes: a thread that only a time-out would wake sleeps for ever, and the model
/// reports it.
pub(crate) mod thread {
    use super::Bell;

    loom::thread_local! {
        static TOKEN: Bell = Bell::new();
    }

    /// A bell for each thread, which keeps its signal until the thread waits, as the token of `std`'s threads does. (That of
    /// `loom` wakes a thread from a lock as well.)
    pub(crate) struct Thread(Bell);

    impl Thread {
        pub(crate) fn unpark(&self) {
            self.0.wake();
        }
    }

    pub(crate) fn current() -> Thread {
        Thread(TOKEN.with(Bell::clone))
    }

    pub(crate) fn park() {
        current().0.wait();
    }

    pub(crate) fn park_timeout(_: std::time::Duration) {
        park();
    }
}

/// A queue of several threads. A thread that finds an item sees what was done before it was put there;
/// one that finds nothing has learned nothing.
pub(crate) struct SegQueue<T> {
    head: AtomicUsize,
    tail: AtomicUsize,
    written: [AtomicBool; PLACES],
    items: Mutex<[Option<T>; PLACES]>,
}

impl<T> Default for SegQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> SegQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            written: std::array::from_fn(|_| AtomicBool::new(false)),
            items: Mutex::new(std::array::from_fn(|_| None)),
        }
    }

    pub(crate) fn push(&self, item: T) {
        let at = self.tail.fetch_add(1, Ordering::AcqRel);
        self.items.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(item);
        self.written[at].store(true, Ordering::Release);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        let mut at = self.head.load(Ordering::Acquire);
        while at < self.tail.load(Ordering::Acquire) {
            match self.head.compare_exchange(at, at + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    while !self.written[at].load(Ordering::Acquire) {
                        loom::thread::yield_now();
                    }
                    return self.items.lock().unwrap_or_else(PoisonError::into_inner)[at].take();
                }
                Err(now) => at = now,
            }
        }
        None
    }

    pub(crate) fn len(&self) -> usize {
        let head = self.head.load(Ordering::Acquire);
        self.tail.load(Ordering::Acquire).saturating_sub(head)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A queue with a bound.
pub(crate) struct ArrayQueue<T>(SegQueue<T>);

impl<T> ArrayQueue<T> {
    pub(crate) fn new(_: usize) -> Self {
        Self(SegQueue::new())
    }

    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        self.0.push(item);
        Ok(())
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.0.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// No test puts as much into one.
    pub(crate) fn is_full(&self) -> bool {
        false
    }
}

pub(crate) struct AtomicWaker(loom::future::AtomicWaker);

impl Default for AtomicWaker {
    fn default() -> Self {
        Self::new()
    }
}

impl AtomicWaker {
    pub(crate) fn new() -> Self {
        Self(loom::future::AtomicWaker::new())
    }

    pub(crate) fn register(&self, waker: &Waker) {
        self.0.register_by_ref(waker);
    }

    pub(crate) fn wake(&self) {
        self.0.wake();
    }
}

/// A thread that sees that the cell is set sees its value.
pub(crate) struct OnceLock<T> {
    is_set: AtomicBool,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        Self { is_set: AtomicBool::new(false), value: std::sync::OnceLock::new() }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.value.get().filter(|_| self.is_set.load(Ordering::Acquire))
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }
}

/// Wakes a driver, or a thread that waits for a future.
#[derive(Clone)]
pub(crate) struct Bell(Arc<(loom::sync::Mutex<bool>, Condvar)>);

impl Bell {
    pub(crate) fn new() -> Self {
        Self(Arc::new((loom::sync::Mutex::new(false), Condvar::new())))
    }

    pub(crate) fn wake(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_one();
    }

    /// The sleeper's side: sleeps until it rings.
    pub(crate) fn wait(&self) {
        let mut rings = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *rings) {
            rings = self.0.1.wait(rings).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        Self::wake(&self);
    }
}

/// Runs a future to its end on this thread, as `blocking::block_on` does.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let bell = Bell::new();
    let waker = Waker::from(Arc::new(bell.clone()));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        bell.wait();
    }
}
