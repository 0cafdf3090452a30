//! Waiting for the transport on a thread of our own, until told to stop or until it is too late.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// Tells a thread that it is to end. Clones mean the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

/// Why a wait ended without a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    Stopped,
    TooLate,
}

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Sets it; who sleeps finds out when it wakes.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Sleeps for `time` or until it is set.
    pub(crate) fn sleep(&self, time: Duration) {
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

/// Runs `future` on this thread.
pub(crate) fn wait<T>(
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

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A thread that can be told to end. Dropping it tells it, and waits.
pub(crate) struct Worker {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn spawn(name: &str, work: impl FnOnce(&Stop) + Send + 'static) -> Self {
        let stop = Stop::default();
        let thread = thread::Builder::new().name(format!("perf-{name}")).spawn({
            let stop = stop.clone();
            move || work(&stop)
        });
        Self { stop, thread: Some(thread.expect("a thread can be started")) }
    }

    /// Tells the thread to end.
    pub(crate) fn stop(&self) {
        self.stop.set();
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic in it has been printed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    #[test]
    fn a_wait_ends_when_it_is_told_to() {
        let late = wait(pending::<()>(), &Stop::default(), Some(Instant::now()));
        assert_eq!(late, Err(Cut::TooLate));
        let worker = Worker::spawn("test", |stop| {
            assert_eq!(wait(pending::<()>(), stop, None), Err(Cut::Stopped));
        });
        drop(worker);
        assert_eq!(wait(async { 1 }, &Stop::default(), None), Ok(1));
    }
}
