//! An executor of one task: the calling thread, which parks while the task waits.

use crate::sync::{AtomicBool, thread};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Runs `future` to its end on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    // Made for each call and not for each thread: a waker that an earlier call left behind wakes only
    // this thread, which then polls again.
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

/// A request to a thread to end. Clones share the request.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// Why a wait ended without a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// The thread was requested to stop.
    Stopped,
    /// The time was up.
    TooLate,
}

impl Stop {
    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Sets it. A thread that waits sees it when it is unparked.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Sleeps for `time`, or until it is set and the thread is unparked.
    pub fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_set() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::park_timeout(left);
        }
    }
}

/// Runs `future` on this thread until it ends, `stop` is set or `until` has come.
pub fn wait<T>(
    future: impl Future<Output = T>,
    stop: &Stop,
    until: Option<Instant>,
) -> Result<T, Cut> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        if stop.is_set() {
            return Err(Cut::Stopped);
        }
        match until {
            None => thread::park(),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Cut::TooLate);
                }
                thread::park_timeout(left);
            }
        }
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
