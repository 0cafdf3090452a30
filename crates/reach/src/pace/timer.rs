//! Waiting for an instant in tasks of any executor: one thread of the process wakes all of them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

/// Waits until then.
pub(super) fn sleep_until(until: Instant) -> Sleep {
    Sleep { until, told: None }
}

/// See [`sleep_until`].
pub(super) struct Sleep {
    until: Instant,
    /// The waker that the thread has.
    told: Option<Waker>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.until {
            return Poll::Ready(());
        }
        if !self.told.as_ref().is_some_and(|told| told.will_wake(context.waker())) {
            TIMER.add(self.until, context.waker().clone());
            self.told = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

static TIMER: LazyLock<Timer> = LazyLock::new(|| {
    let started = thread::Builder::new().name("pace".to_owned()).spawn(|| TIMER.work());
    Timer { is_running: started.is_ok(), ..Timer::default() }
});

#[derive(Default)]
struct Timer {
    waiting: Mutex<BinaryHeap<Reverse<Entry>>>,
    came: Condvar,
    is_running: bool,
}

/// A task that waits.
struct Entry {
    at: Instant,
    waker: Waker,
}

impl Timer {
    fn add(&self, at: Instant, waker: Waker) {
        if !self.is_running {
            // The system has no room for another thread. The task's own thread waits in its place.
            thread::sleep(at.saturating_duration_since(Instant::now()));
            return waker.wake();
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = waiting.peek().is_none_or(|Reverse(first)| at < first.at);
        waiting.push(Reverse(Entry { at, waker }));
        drop(waiting);
        if is_first {
            self.came.notify_one();
        }
    }

    fn work(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            let due = waiting.peek().map(|Reverse(first)| first.at.saturating_duration_since(now));
            waiting = match due {
                None => self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(left) if !left.is_zero() => {
                    let waited = self.came.wait_timeout(waiting, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let due = waiting.pop();
                    drop(waiting);
                    due.into_iter().for_each(|Reverse(entry)| entry.waker.wake());
                    self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}
